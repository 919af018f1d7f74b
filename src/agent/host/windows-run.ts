/** Runs one command on Windows, and captures what it writes. */
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync, readSync, statSync } from 'node:fs';
import { delimiter, isAbsolute, join } from 'node:path';
import type { Command, CommandEnd, CommandResult } from '../../resources/command.js';
import { Capture } from './capture.js';
import { problemOfDirectory } from './launch.js';
import {
  type CommandTask,
  endOf,
  GRACE_MS,
  type NotStarted,
  noteOpenOutput,
  type RunCommandOptions,
  runCommand,
  settleWithin,
  supervise,
} from './run-command.js';
import { type ScriptDirectory, writePrivately } from './script-directory.js';

interface WindowsRunOptions extends RunCommandOptions {
  /** Usually `C:\Windows`. */
  readonly systemRoot: string;
}

type WindowsEnvironment = Readonly<Record<string, string>>;

/** Never rejects: failures are in the result. */
export const runOnWindows = (command: Command, options: WindowsRunOptions): Promise<CommandResult> =>
  runCommand(command, options, {
    env: windowsEnvironment(command, process.env, options.systemRoot),
    find: (name, env) => {
      const problem = command.directory === undefined ? null : problemOfDirectory(command.directory);
      return problem ?? findProgram(name, env);
    },
    run: (task, workplace) => runIn(workplace, task, options),
  });

type Task = CommandTask<WindowsEnvironment>;

function runIn(workplace: ScriptDirectory | null, task: Task, options: WindowsRunOptions): Promise<CommandResult> {
  if (workplace === null) throw new Error('no directory can be written');
  const { argv, script } = task.command;
  const file = script ? [writePrivately(workplace, `script${script.suffix}`, script.text)] : [];
  const args = [...argv.slice(1), ...file];
  return task.command.lifetime === 'outlive'
    ? runWithFiles(workplace, { ...task, args }, options)
    : runWithPipes({ ...task, args }, options);
}

type Ready = Task & { readonly args: readonly string[] };

async function runWithPipes(
  { command, program, args, env }: Ready,
  options: WindowsRunOptions,
): Promise<CommandResult> {
  const child = spawn(program, args, { ...settings(options, env, command), stdio: 'pipe' });
  const [stdout, stderr] = [new Capture(), new Capture()];
  child.stdout.on('data', (data: Buffer) => stdout.add(data));
  child.stderr.on('data', (data: Buffer) => stderr.add(data));
  // A program need not read all of its input.
  child.stdin.on('error', () => {});
  child.stdin.end(command.input ?? '');
  const closed = new Promise<void>((resolve) => child.once('close', () => resolve()));
  const end = await untilEnd(child, command, options);
  if (!(await settleWithin(closed, GRACE_MS))) noteOpenOutput(command, stderr);
  for (const stream of [child.stdin, child.stdout, child.stderr]) stream.destroy();
  return { end, stdout: stdout.text(), stderr: stderr.text(), truncated: stdout.isCut || stderr.isCut };
}

/** Runs a command that may outlive the agent. It reads and writes files, because the end of the agent would cut off pipes. */
async function runWithFiles(
  workplace: ScriptDirectory,
  { command, program, args, env }: Ready,
  options: WindowsRunOptions,
): Promise<CommandResult> {
  const paths = [join(workplace.path, 'stdout'), join(workplace.path, 'stderr')] as const;
  const stdio = [
    openSync(writePrivately(workplace, 'input', command.input ?? ''), 'r'),
    openSync(paths[0], 'wx', 0o600),
    openSync(paths[1], 'wx', 0o600),
  ];
  let child: ChildProcess;
  try {
    child = spawn(program, args, { ...settings(options, env, command), stdio });
  } finally {
    for (const descriptor of stdio) closeSync(descriptor);
  }
  const end = await untilEnd(child, command, options);
  const [stdout, stderr] = paths.map(captureFile) as [Capture, Capture];
  return { end, stdout: stdout.text(), stderr: stderr.text(), truncated: stdout.isCut || stderr.isCut };
}

/** The system directory is where Windows looks for programs and libraries first, and only administrators can write to it. */
const settings = ({ systemRoot }: WindowsRunOptions, env: WindowsEnvironment, { directory }: Command) => ({
  cwd: directory ?? join(systemRoot, 'System32'),
  env,
  windowsHide: true,
});

function captureFile(path: string): Capture {
  const capture = new Capture();
  const descriptor = openSync(path, 'r');
  try {
    const buffer = Buffer.allocUnsafe(64 * 1024);
    for (let count = readSync(descriptor, buffer); count > 0; count = readSync(descriptor, buffer)) {
      capture.add(Buffer.from(buffer.subarray(0, count)));
    }
    return capture;
  } finally {
    closeSync(descriptor);
  }
}

/** Milliseconds that processes have to disappear after they were killed. */
const KILL_MS = 10_000;

/** Resolves when the program has ended or was ended together with its descendants. */
const untilEnd = (child: ChildProcess, command: Command, options: WindowsRunOptions): Promise<CommandEnd> =>
  supervise(child, command, options, async (exited) => {
    await endTree(child, options);
    await settleWithin(exited, KILL_MS);
  });

/** Ends a process and its descendants. Windows has no process groups; `taskkill` walks from parent to child. */
async function endTree(child: ChildProcess, { systemRoot }: WindowsRunOptions): Promise<void> {
  const { pid } = child;
  if (pid === undefined) return;
  const system = join(systemRoot, 'System32');
  const killer = spawn(join(system, 'taskkill.exe'), ['/PID', String(pid), '/T', '/F'], {
    cwd: system,
    stdio: 'ignore',
    windowsHide: true,
  });
  await settleWithin(endOf(killer), KILL_MS);
  // Where taskkill is missing or fails, at least the program itself is ended.
  child.kill('SIGKILL');
}

/** Variables that Windows and its installers need. Programs get nothing else of the environment of the agent. */
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

/** Uses the search path of the system, not that of the agent; Chocolatey and winget add themselves only for later logons. */
function windowsEnvironment(
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

/** Returns the path of a program. Scripts such as `.cmd` do not count: no quoting of arguments is safe from their interpreter. */
function findProgram(name: string, { PATH = '' }: WindowsEnvironment): string | NotStarted {
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
