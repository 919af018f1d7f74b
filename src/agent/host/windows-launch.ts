/** What it takes to start a program on Windows: where it is, and its environment. */
import { statSync } from 'node:fs';
import { delimiter, isAbsolute, join } from 'node:path';
import type { Command, CommandEnd } from '../../resources/command.js';

export type WindowsEnvironment = Readonly<Record<string, string>>;

/** What Windows and its installers do not work without. Nothing else of the agent's environment is handed on. */
const KEPT = [
  'ALLUSERSPROFILE',
  'APPDATA',
  'ChocolateyInstall',
  'CommonProgramFiles',
  'CommonProgramFiles(x86)',
  'COMPUTERNAME',
  'ComSpec',
  'HOMEDRIVE',
  'HOMEPATH',
  'LOCALAPPDATA',
  'NUMBER_OF_PROCESSORS',
  'OS',
  'PATHEXT',
  'PROCESSOR_ARCHITECTURE',
  'ProgramData',
  'ProgramFiles',
  'ProgramFiles(x86)',
  'ProgramW6432',
  'PUBLIC',
  'SystemDrive',
  'SystemRoot',
  'TEMP',
  'TMP',
  'USERDOMAIN',
  'USERNAME',
  'USERPROFILE',
  'windir',
] as const;

/** The search path of the system, whatever that of the agent is; Chocolatey and winget add themselves only for later logons. */
export function windowsEnvironment(
  { env }: Pick<Command, 'env'>,
  own: Readonly<Record<string, string | undefined>>,
  systemRoot: string,
): WindowsEnvironment {
  const kept = KEPT.flatMap((name) => (own[name] === undefined ? [] : [[name, own[name]] as const]));
  const system = join(systemRoot, 'System32');
  const places = [
    system,
    systemRoot,
    join(system, 'Wbem'),
    join(system, 'WindowsPowerShell', 'v1.0'),
    ...(own.ProgramData === undefined ? [] : [join(own.ProgramData, 'chocolatey', 'bin')]),
    ...(own.LOCALAPPDATA === undefined ? [] : [join(own.LOCALAPPDATA, 'Microsoft', 'WindowsApps')]),
  ];
  return { ...Object.fromEntries(kept), SystemRoot: systemRoot, PATH: places.join(delimiter), ...env };
}

type NotStarted = Extract<CommandEnd, { how: 'not-started' }>;

/** The file of a program. Scripts such as `.cmd` are none: no quoting of arguments is safe from the interpreter. */
export function findWindowsProgram(name: string, { PATH = '' }: WindowsEnvironment): string | NotStarted {
  const file = /\.exe$/i.test(name) ? name : `${name}.exe`;
  const places = isAbsolute(name) ? [name] : PATH.split(delimiter).map((directory) => join(directory, file));
  const found = places.find(isFile);
  return found ?? { how: 'not-started', missing: true, message: `there is no ${name}` };
}

function isFile(path: string): boolean {
  try {
    return statSync(path).isFile();
  } catch {
    return false;
  }
}
