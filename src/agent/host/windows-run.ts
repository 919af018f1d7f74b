/** Runs one command on Windows to its end, and captures what it writes. */
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync, readSync, statSync } from 'node:fs';
import { delimiter, isAbsolute, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { isFault, messageOf } from '../../kernel/fault.js';
import { COMMAND_TIMEOUT_SECS, type Command, type CommandEnd, type CommandResult } from '../../resources/command.js';
import { Capture } from './capture.js';
import { type Workplace, type Workplaces, writePrivately } from './workplace.js';

export interface WindowsRunOptions extends SupervisionOptions {
  readonly workplaces: Workplaces;
}

/** What the streams have after the end of the program: processes that it leaves behind may hold them for ever. */
const GRACE_MS = 1_000;

/** Never rejects: what goes wrong is in the result. */
export async function runOnWindows(command: Command, options: WindowsRunOptions): Promise<CommandResult> {
  if (isToEnd(command, options.signal)) return withoutOutput({ how: 'cancelled' });
  const env = windowsEnvironment(command, process.env, options.systemRoot);
  const program = findWindowsProgram(command.argv[0], env);
  if (typeof program !== 'string') return withoutOutput(program);
  let workplace: Workplace | null = null;
  try {
    workplace = options.workplaces.open();
    return await runIn(workplace, { command, program, env }, options);
  } catch (error) {
    return withoutOutput({ how: 'not-started', missing: false, message: messageOf(error) });
  } finally {
    workplace?.remove();
  }
}

const withoutOutput = (end: CommandEnd): CommandResult => ({ end, stdout: '', stderr: '', truncated: false });

interface Task {
  readonly command: Command;
  /** The path of the program. */
  readonly program: string;
  readonly env: WindowsEnvironment;
}

async function runIn(workplace: Workplace, task: Task, options: WindowsRunOptions): Promise<CommandResult> {
  const { argv, script } = task.command;
  const file = script ? [writePrivately(workplace, `script${script.suffix}`, script.text)] : [];
  const args = [...argv.slice(1), ...file];
  return task.command.lifetime === 'outlive'
    ? await runWithFiles(workplace, { ...task, args }, options)
    : await runWithPipes({ ...task, args }, options);
}

type Ready = Task & { readonly args: readonly string[] };

async function runWithPipes(
  { command, program, args, env }: Ready,
  options: WindowsRunOptions,
): Promise<CommandResult> {
  const child = spawn(program, args, { ...settings(options, env), stdio: 'pipe' });
  const [stdout, stderr] = [new Capture(), new Capture()];
  child.stdout.on('data', (data: Buffer) => stdout.add(data));
  child.stderr.on('data', (data: Buffer) => stderr.add(data));
  // A program need not read all that it is given.
  child.stdin.on('error', () => {});
  child.stdin.end(command.input ?? '');
  const closed = new Promise<void>((resolve) => child.once('close', () => resolve()));
  const end = await supervise(child, command, options);
  await within(closed, GRACE_MS);
  for (const stream of [child.stdin, child.stdout, child.stderr]) stream.destroy();
  return { end, stdout: stdout.text(), stderr: stderr.text(), truncated: stdout.isCut || stderr.isCut };
}

/** What outlives the agent reads and writes files: the end of the agent would end a pipe in the middle. */
async function runWithFiles(
  workplace: Workplace,
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
    child = spawn(program, args, { ...settings(options, env), stdio });
  } finally {
    for (const descriptor of stdio) closeSync(descriptor);
  }
  const end = await supervise(child, command, options);
  const [stdout, stderr] = paths.map(captureFile) as [Capture, Capture];
  return { end, stdout: stdout.text(), stderr: stderr.text(), truncated: stdout.isCut || stderr.isCut };
}

/** The directory of the system is where Windows looks for programs and libraries first, and nobody else can put one there. */
const settings = ({ systemRoot }: WindowsRunOptions, env: WindowsEnvironment) => ({
  cwd: join(systemRoot, 'System32'),
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

/** Watches over a program on Windows until it has ended, in time or not. */
export interface SupervisionOptions {
  /** Usually `C:\Windows`. */
  readonly systemRoot: string;
  /** What `timeoutSecs: 'script'` means. */
  readonly scriptTimeoutSecs: number;
  /** Aborted when the run is cancelled or, with the Fault `interrupted` as reason, when the agent stops. */
  readonly signal?: AbortSignal | undefined;
}

/** What programs have to be gone after they were ended. */
const KILL_MS = 10_000;

/** Resolves when the program has ended or was ended, and with it all that it has started. */
export async function supervise(
  child: ChildProcess,
  command: Command,
  options: SupervisionOptions,
): Promise<CommandEnd> {
  const exited = endOf(child);
  const stop = stopOf(command, options);
  try {
    const end = await Promise.race([exited, stop.asked]);
    if (end.how === 'timed-out' || end.how === 'cancelled') {
      await endTree(child, options);
      await within(exited, KILL_MS);
    }
    return end;
  } finally {
    stop.dispose();
    child.unref();
  }
}

/** How the program ends by itself. */
function endOf(child: ChildProcess): Promise<CommandEnd> {
  return new Promise((resolve) => {
    child.once('error', (error) => resolve({ how: 'not-started', missing: false, message: messageOf(error) }));
    child.once('exit', (code, signal) => {
      resolve(code === null ? { how: 'killed', signal: signal ?? 'an unknown signal' } : { how: 'exited', code });
    });
  });
}

/** Ends a process and its descendants. Windows has no groups of processes; `taskkill` walks from parent to child. */
async function endTree(child: ChildProcess, { systemRoot }: SupervisionOptions): Promise<void> {
  const { pid } = child;
  if (pid === undefined) return;
  const system = join(systemRoot, 'System32');
  const killer = spawn(join(system, 'taskkill.exe'), ['/PID', String(pid), '/T', '/F'], {
    cwd: system,
    stdio: 'ignore',
    windowsHide: true,
  });
  await within(endOf(killer), KILL_MS);
  // Where taskkill is missing or fails, at least the program itself is ended.
  child.kill('SIGKILL');
}

/** Tells when the program has to be ended. */
function stopOf(command: Command, { scriptTimeoutSecs, signal }: SupervisionOptions) {
  const { timeoutSecs = COMMAND_TIMEOUT_SECS } = command;
  const seconds = timeoutSecs === 'script' ? scriptTimeoutSecs : timeoutSecs;
  let ask: (end: CommandEnd) => void = () => {};
  const asked = new Promise<CommandEnd>((resolve) => {
    ask = resolve;
  });
  const timer = setTimeout(() => ask({ how: 'timed-out', seconds }), seconds * 1000);
  const cancel = () => {
    if (isToEnd(command, signal)) ask({ how: 'cancelled' });
  };
  signal?.addEventListener('abort', cancel, { once: true });
  const dispose = () => {
    clearTimeout(timer);
    signal?.removeEventListener('abort', cancel);
  };
  return { asked, dispose };
}

/** An agent that stops lets its commands finish. */
export const isToEnd = ({ lifetime }: Command, signal: AbortSignal | undefined): boolean =>
  lifetime === 'end' && signal !== undefined && signal.aborted && !isFault(signal.reason, 'interrupted');

/** Resolves with the promise, or when it takes longer. */
export async function within(promise: Promise<unknown>, milliseconds: number): Promise<void> {
  const over = new AbortController();
  const time = delay(milliseconds, undefined, { signal: over.signal }).catch(() => {});
  await Promise.race([promise, time]);
  over.abort();
}

/** What it takes to start a program on Windows: where it is, and its environment. */
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
