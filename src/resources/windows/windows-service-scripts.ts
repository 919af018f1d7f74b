/** What PowerShell does about services of Windows. The scripts are fixed; what they work on is in `$data`. */

/** The services that are asked for, with what others they wait for: the registry has that without asking the services. */
export const READ_SERVICES = `$wanted = @{}
foreach ($name in $data.names) { $wanted[$name] = $true }
$services = @(Get-CimInstance -ClassName Win32_Service |
  Where-Object { $wanted.ContainsKey($_.Name) } |
  ForEach-Object {
    $key = [Microsoft.Win32.Registry]::LocalMachine.OpenSubKey("SYSTEM\\CurrentControlSet\\Services\\$($_.Name)")
    $depend = @()
    if ($key -ne $null) {
      $depend = @($key.GetValue('DependOnService', @())) + @($key.GetValue('DependOnGroup', @()) | ForEach-Object { "+$_" })
      $key.Close()
    }
    @{
      Name = $_.Name
      DisplayName = $_.DisplayName
      Description = $_.Description
      PathName = $_.PathName
      StartMode = $_.StartMode
      DelayedAutoStart = $_.DelayedAutoStart
      StartName = $_.StartName
      State = $_.State
      DependOn = $depend
    }
  })
Write-Answer @{ computer = $env:COMPUTERNAME; services = $services }
`;

const CONTROL = `Add-Type -AssemblyName System.ServiceProcess
$limit = [TimeSpan]::FromSeconds(90)
function Stop-One($service) {
  $service.Refresh()
  if ($service.Status -eq 'StartPending') { $service.WaitForStatus('Running', $limit) }
  $service.Refresh()
  if ($service.Status -ne 'Stopped' -and $service.Status -ne 'StopPending') { $service.Stop() }
  $service.WaitForStatus('Stopped', $limit)
}
function Start-One($service) {
  $service.Refresh()
  if ($service.Status -eq 'StopPending') { $service.WaitForStatus('Stopped', $limit) }
  $service.Refresh()
  if ($service.Status -eq 'Paused' -or $service.Status -eq 'PausePending') { $service.Continue() }
  elseif ($service.Status -eq 'Stopped') { $service.Start() }
  $service.WaitForStatus('Running', $limit)
}
$service = New-Object System.ServiceProcess.ServiceController $data.name
`;

export const START_SERVICE = `${CONTROL}Start-One $service
Write-Answer @{ done = $true }
`;

/** Services that need this one are stopped first, as Windows asks for. */
export const STOP_SERVICE = `${CONTROL}Stop-One $service
Write-Answer @{ done = $true }
`;

/** Services that need this one and run are started again after it. */
export const RESTART_SERVICE = `${CONTROL}$dependents = @($service.DependentServices | Where-Object { $_.Status -eq 'Running' })
Stop-One $service
Start-One $service
foreach ($dependent in $dependents) { Start-One $dependent }
Write-Answer @{ done = $true }
`;
