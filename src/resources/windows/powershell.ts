/**
 * Runs fixed scripts in Windows PowerShell 5.1, which every Windows has. Data come on standard input, answers are JSON; no name
 * and no value ever becomes part of a script or a command line.
 */

import type { CommandRefusal } from '../command.js';
import { type Command, type CommandResult, commandFailure, exitedWith } from '../command.js';
import { isRecord } from '../json-answer.js';

/** Precedes each script. The streams are UTF-8, whatever the code page of the console is. */
const PROLOGUE = `$ErrorActionPreference = 'Stop'
$ProgressPreference = 'SilentlyContinue'
$utf8 = New-Object System.Text.UTF8Encoding $false
try { [Console]::OutputEncoding = $utf8 } catch { }
function Write-Answer($value) {
  $bytes = $utf8.GetBytes((ConvertTo-Json -InputObject $value -Compress -Depth 6))
  $stream = [Console]::OpenStandardOutput()
  $stream.Write($bytes, 0, $bytes.Length)
  $stream.Flush()
}
trap {
  $native = $null
  for ($e = $_.Exception; $e -ne $null; $e = $e.InnerException) {
    if ($e -is [System.ComponentModel.Win32Exception]) { $native = $e.NativeErrorCode }
  }
  Write-Answer @{ error = @{ id = [string]$_.FullyQualifiedErrorId; message = [string]$_.Exception.Message; native = $native } }
  exit 1
}
$reader = New-Object System.IO.StreamReader ([Console]::OpenStandardInput()), $utf8
$data = ConvertFrom-Json -InputObject $reader.ReadLine()
`;

/**
 * Reads the second line of the input into \`$secret\`. It goes through no cmdlet, because Windows can be configured to log what
 * cmdlets are given.
 */
const READ_SECRET = `$secret = $null
$digits = $reader.ReadLine()
if ($digits) {
  $secret = New-Object System.Security.SecureString
  for ($i = 0; $i -lt $digits.Length; $i += 4) { $secret.AppendChar([char][Convert]::ToInt32($digits.Substring($i, 4), 16)) }
}
`;

const ARGUMENTS = [
  'powershell.exe',
  '-NoLogo',
  '-NoProfile',
  '-NonInteractive',
  '-ExecutionPolicy',
  'Bypass',
  '-File',
] as const;

/** Returns the command that runs a fixed script with `$data`. */
export const powershell = (script: string, data: object): Command => ({
  argv: ARGUMENTS,
  input: `${asciiJson(data)}\n`,
  script: { text: PROLOGUE + script, suffix: '.ps1' },
});

/** Like `powershell`, with a secret as the SecureString `$secret`, which is `$null` for null. */
export const powershellWithSecret = (script: string, data: object, secret: string | null): Command => ({
  argv: ARGUMENTS,
  input: `${asciiJson(data)}\n${hexUnits(secret ?? '')}\n`,
  script: { text: PROLOGUE + READ_SECRET + script, suffix: '.ps1' },
});

/** Returns JSON in ASCII, which no code page can change. */
const asciiJson = (data: object): string =>
  JSON.stringify(data).replace(/[\u007f-\uffff]/g, (unit) => `\\u${hex(unit)}`);

const hex = (unit: string): string => unit.charCodeAt(0).toString(16).padStart(4, '0');

/** Returns four hex digits for each UTF-16 unit. */
const hexUnits = (text: string): string => text.split('').map(hex).join('');

/** The error of a script; `id` is the same in every language of Windows, the message is not. */
interface PowerShellError {
  readonly id: string;
  readonly message: string;
  /** Error number of Windows, or null. */
  readonly native: number | null;
}

/** Returns the answer of a script, or null for other output than JSON. */
export function answerOf({ stdout }: CommandResult): Readonly<Record<string, unknown>> | null {
  try {
    const answer: unknown = JSON.parse(stdout.replace(/^\ufeff/, ''));
    return isRecord(answer) ? answer : null;
  } catch {
    return null;
  }
}

/** Returns the error that a script reported, or null. */
export function errorOf(result: CommandResult): PowerShellError | null {
  const error = answerOf(result)?.error;
  if (!isRecord(error)) return null;
  const { id, message, native } = error;
  return {
    id: typeof id === 'string' ? id : '',
    message: typeof message === 'string' ? message.trim() : '',
    native: typeof native === 'number' ? native : null,
  };
}

/** Error IDs of the accounts module, WMI and Windows itself. */
const ACCESS_DENIED = /^AccessDenied\b|0x80041003|0x80070005/i;

/** Returns the refusal for a failed script, with its own message if it has one. */
export function powershellFailure(command: Pick<Command, 'argv'>, result: CommandResult): CommandRefusal {
  const error = errorOf(result);
  if (error === null) return commandFailure(command, result);
  const said = result.withheld ?? error.message;
  if (error.native === 5 || ACCESS_DENIED.test(error.id)) {
    return {
      code: 'permission_denied',
      message: `Windows denies it; the agent has to be an administrator: ${said}`,
    };
  }
  return { code: 'command_failed', message: `Windows refuses it: ${said}` };
}

/** Returns the answer of a query script, or the refusal without one. */
export function readAnswer(
  command: Pick<Command, 'argv'>,
  result: CommandResult,
): { readonly answer: Readonly<Record<string, unknown>> } | { readonly refusal: CommandRefusal } {
  const answer = answerOf(result);
  if (exitedWith(result, 0) && answer !== null && !('error' in answer)) return { answer };
  return { refusal: powershellFailure(command, result) };
}
