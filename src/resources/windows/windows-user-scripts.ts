/** What PowerShell does about local users. The scripts are fixed; what they work on is in `$data` and `$secret`. */

/**
 * All local users, and the local groups of those that are asked for. The groups come from the directory interface, because
 * Get-LocalGroupMember fails for a group that an account which is gone was a member of; names of users hold nothing
 * that a path of that interface is cut at.
 */
export const READ_USERS = `$wanted = @{}
foreach ($name in $data.names) { $wanted[$name] = $true }
$users = @(Get-CimInstance -ClassName Win32_UserAccount -Filter 'LocalAccount = TRUE' |
  Where-Object { $wanted.ContainsKey($_.Name) } |
  ForEach-Object {
    $groups = @(([ADSI]"WinNT://$env:COMPUTERNAME/$($_.Name),user").psbase.Invoke('Groups') |
      ForEach-Object { [string]$_.GetType().InvokeMember('Name', 'GetProperty', $null, $_, $null) })
    @{
      name = $_.Name
      full_name = $_.FullName
      description = $_.Description
      disabled = $_.Disabled
      password_expires = $_.PasswordExpires
      groups = $groups
    }
  })
Write-Answer @{ users = $users }
`;

/** Creates or changes a user. Without a password a new one gets 64 random characters that nobody knows. */
export const CHANGE_USER = `function Test-Given($name) { $data.PSObject.Properties.Match($name).Count -gt 0 }
if ($data.create) {
  if ($secret -eq $null) {
    $bytes = New-Object byte[] 46
    [System.Security.Cryptography.RandomNumberGenerator]::Create().GetBytes($bytes)
    $secret = New-Object System.Security.SecureString
    foreach ($c in ('aA1!' + [Convert]::ToBase64String($bytes).Substring(0, 60)).ToCharArray()) { $secret.AppendChar($c) }
  }
  $disabled = (Test-Given 'account_disabled') -and $data.account_disabled
  $null = New-LocalUser -Name $data.name -Password $secret -Disabled:$disabled
}
$change = @{}
if (-not $data.create -and $secret -ne $null) { $change.Password = $secret }
if (Test-Given 'full_name') { $change.FullName = $data.full_name }
if (Test-Given 'description') { $change.Description = $data.description }
if (Test-Given 'password_never_expires') { $change.PasswordNeverExpires = [bool]$data.password_never_expires }
if ($change.Count -gt 0) { Set-LocalUser -Name $data.name @change }
if (-not $data.create -and (Test-Given 'account_disabled')) {
  if ($data.account_disabled) { Disable-LocalUser -Name $data.name } else { Enable-LocalUser -Name $data.name }
}
$user = Get-LocalUser -Name $data.name
foreach ($group in $data.join) { Add-LocalGroupMember -Name $group -Member $user }
foreach ($group in $data.leave) { Remove-LocalGroupMember -Name $group -Member $user }
Write-Answer @{ done = $true }
`;

/** The profile directory stays. */
export const REMOVE_USER = `Remove-LocalUser -Name $data.name
Write-Answer @{ done = $true }
`;
