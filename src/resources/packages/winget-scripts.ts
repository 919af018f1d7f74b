/**
 * What PowerShell does with `winget`. Its tables are cut to a width, so what is installed comes from an export, and
 * versions come from a table of one column. The scripts are fixed; what they work on is in `$data`.
 */

/** `winget.exe` is an alias that the account of the system does not have; the program itself lies below WindowsApps. */
const FIND = `function Find-Winget {
  $alias = Get-Command -Name winget.exe -CommandType Application -ErrorAction SilentlyContinue | Select-Object -First 1
  if ($alias -ne $null) { return $alias.Path }
  $pattern = Join-Path $env:ProgramFiles 'WindowsApps\\Microsoft.DesktopAppInstaller_*_8wekyb3d8bbwe\\winget.exe'
  $found = @(Get-Item -Path $pattern -ErrorAction SilentlyContinue |
    Sort-Object -Property { [version](($_.Directory.Name -split '_')[1]) })
  if ($found.Count -gt 0) { return $found[$found.Count - 1].FullName }
  return $null
}
$winget = Find-Winget
if ($winget -eq $null) { Write-Answer @{ missing = $true }; exit 0 }
`;

export const READ_WINGET = `${FIND}$file = Join-Path ([System.IO.Path]::GetTempPath()) ('orch-' + [Guid]::NewGuid().ToString() + '.json')
try {
  $output = (& $winget export --output $file --include-versions --source winget --accept-source-agreements --disable-interactivity) -join [Environment]::NewLine
  $code = $LASTEXITCODE
  $exported = $null
  if (Test-Path -LiteralPath $file) { $exported = [System.IO.File]::ReadAllText($file) }
} finally {
  Remove-Item -LiteralPath $file -Force -ErrorAction SilentlyContinue
}
$shown = @($data.versions_of | ForEach-Object {
  $lines = @(& $winget show --id $_ --exact --versions --source winget --accept-source-agreements --disable-interactivity)
  @{ id = $_; code = $LASTEXITCODE; output = ($lines -join [Environment]::NewLine) }
})
Write-Answer @{ code = $code; output = $output; exported = $exported; shown = $shown }
`;

/** Runs \`winget\` with \`$data.arguments\`; ends with 0 for 0 and for the codes in \`$data.ok\`. */
export const RUN_WINGET = `${FIND}$arguments = @($data.arguments)
$lines = @(& $winget @arguments)
$code = $LASTEXITCODE
$tail = @($lines | Where-Object { $_ -match '\\w' } | Select-Object -Last 6) -join [Environment]::NewLine
Write-Answer @{ code = $code; output = $tail }
if ($code -eq 0 -or @($data.ok) -contains $code) { exit 0 }
exit 1
`;
