/** PowerShell scripts for services of Windows, whose data are in `$data`, and explanations of failures. */

import type { CommandRefusal } from '../command.js';
import { type CommandResult, commandFailure } from '../command.js';
import type { RunStep } from '../host.js';
import { errorOf, powershellFailure } from './powershell.js';

/** Reads the wanted services with their dependencies, which come from the registry. */
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

/** Stops the services that depend on this one first, as Windows requires. */
export const STOP_SERVICE = `${CONTROL}Stop-One $service
Write-Answer @{ done = $true }
`;

/** Restarts running dependents after the service. */
export const RESTART_SERVICE = `${CONTROL}$dependents = @($service.DependentServices | Where-Object { $_.Status -eq 'Running' })
Stop-One $service
Start-One $service
foreach ($dependent in $dependents) { Start-One $dependent }
Write-Answer @{ done = $true }
`;

/** Meaning of an error number, as text after "the service NAME". */
const MEANINGS: Readonly<Record<number, string>> = {
  2: 'cannot be started: its program does not exist',
  3: 'cannot be started: its program does not exist',
  193: 'cannot be started: its program is not one that Windows can run',
  1053: 'did not answer in time when it was started',
  1054: 'could not be started: no thread could be made for it',
  1056: 'is running already',
  1057: 'cannot run as that account: it does not exist, or lacks the right to log on as a service',
  1058: 'is disabled, or what it needs is; give it another start_type',
  1059: 'depends on itself through its dependencies',
  1066: 'ended with an error of its own; see its log',
  1067: 'ended unexpectedly while it was started',
  1068: 'cannot be started because a service that it depends on failed',
  1069: 'cannot be started because its account cannot log on; check the password and the right to log on as a service',
  1072: 'is marked for deletion: something still holds it open, such as the Services window; close that, or restart the machine',
  1073: 'exists already',
  1075: 'depends on a service that does not exist',
  1078: 'cannot have that display name: another service has it',
};

const SERVICE_MISSING = 1060;
const ACCESS_DENIED = 5;
/** The .NET timeout, for which PowerShell has no number. */
const TIMED_OUT = /TimeoutException/;

export function serviceFailure(name: string, { command }: RunStep, result: CommandResult): CommandRefusal {
  const error = errorOf(result);
  // The exit status of sc.exe is the error number.
  const number = error
    ? error.native
    : command.argv[0] === 'sc.exe' && result.end.how === 'exited'
      ? result.end.code
      : null;
  if (number === SERVICE_MISSING)
    return { code: 'unit_missing', message: `there is no service ${name} on this machine` };
  if (number === ACCESS_DENIED) {
    return {
      code: 'permission_denied',
      message: `Windows denies access to the service ${name}; the agent has to be an administrator`,
    };
  }
  const meaning = number === null ? undefined : MEANINGS[number];
  if (meaning !== undefined)
    return { code: 'service_failed', message: `the service ${name} ${meaning} (error ${number})` };
  if (error && TIMED_OUT.test(error.id)) {
    return { code: 'service_failed', message: `the service ${name} did not get there in 90 seconds` };
  }
  if (error === null) return commandFailure(command, result);
  return { ...powershellFailure(command, result), code: 'service_failed' };
}
