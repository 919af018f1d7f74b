/** Runs one command on Windows to its end, and captures what it writes. */
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { messageOf } from '../../kernel/fault.js';
import type { Command, CommandEnd, CommandResult } from '../../resources/command.js';
import { Capture } from './capture.js';
import { findWindowsProgram, type WindowsEnvironment, windowsEnvironment } from './windows-launch.js';
import { isToEnd, type SupervisionOptions, supervise, within } from './windows-supervision.js';
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
