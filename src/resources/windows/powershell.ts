/**
 * Windows PowerShell 5.1, which every Windows has: fixed scripts that get their data on standard input and answer in JSON.
 * No name and no value ever becomes part of a script or of a command line.
 */
import { type Command, type CommandResult, commandFailure, exitedWith } from '../command.js';
import { isRecord } from '../json-answer.js';
import type { CommandRefusal } from '../kind.js';

/** Before each script. The streams are read and written as UTF-8 whatever the code page of the console is. */
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
 * Reads the second line of the input into \`$secret\`. It goes through no cmdlet, because Windows can be told to log what
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

/** A command that runs a fixed script with `$data`. */
export const powershell = (script: string, data: object): Command => ({
  argv: ARGUMENTS,
  input: `${asciiJson(data)}\n`,
  script: { text: PROLOGUE + script, suffix: '.ps1' },
});

/** As `powershell`, with a secret as the SecureString `$secret`; null is `$null` there. */
export const powershellWithSecret = (script: string, data: object, secret: string | null): Command => ({
  argv: ARGUMENTS,
  input: `${asciiJson(data)}\n${hexUnits(secret ?? '')}\n`,
  script: { text: PROLOGUE + READ_SECRET + script, suffix: '.ps1' },
});

/** JSON in ASCII, so that no code page can change it. */
const asciiJson = (data: object): string =>
  JSON.stringify(data).replace(/[\u007f-\uffff]/g, (unit) => `\\u${hex(unit)}`);

const hex = (unit: string): string => unit.charCodeAt(0).toString(16).padStart(4, '0');

/** Four digits for each UTF-16 unit. */
const hexUnits = (text: string): string => text.split('').map(hex).join('');

/** Why a script stopped: `id` is the same in every language of Windows, the message is not. */
export interface PowerShellError {
  readonly id: string;
  readonly message: string;
  /** The error number of Windows, when there is one. */
  readonly native: number | null;
}

/** What a script answered, or null when it did not answer in JSON. */
export function answerOf({ stdout }: CommandResult): Readonly<Record<string, unknown>> | null {
  try {
    const answer: unknown = JSON.parse(stdout.replace(/^\ufeff/, ''));
    return isRecord(answer) ? answer : null;
  } catch {
    return null;
  }
}

/** The error that a script ended with; null when it did not say. */
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

/** Of the accounts module, of WMI, and of Windows itself. */
const ACCESS_DENIED = /^AccessDenied\b|0x80041003|0x80070005/i;

/** Why a script did not do what it was to do, in its own words where it has any. */
export function powershellFailure(command: Pick<Command, 'argv'>, result: CommandResult): CommandRefusal {
  const error = errorOf(result);
  if (error === null) return commandFailure(command, result);
  if (error.native === 5 || ACCESS_DENIED.test(error.id)) {
    return {
      code: 'permission_denied',
      message: `Windows denies it; the agent has to be an administrator: ${error.message}`,
    };
  }
  return { code: 'command_failed', message: `Windows refuses it: ${error.message}` };
}

/** The answer of a script that is to read; the refusal when there is none. */
export function readAnswer(
  command: Pick<Command, 'argv'>,
  result: CommandResult,
): { readonly answer: Readonly<Record<string, unknown>> } | { readonly refusal: CommandRefusal } {
  const answer = answerOf(result);
  if (exitedWith(result, 0) && answer !== null && !('error' in answer)) return { answer };
  return { refusal: powershellFailure(command, result) };
}
