/** Runs one command to its end, in a process group of its own, and captures what it writes. */
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { isFault, messageOf } from '../../kernel/fault.js';
import { COMMAND_TIMEOUT_SECS, type Command, type CommandEnd, type CommandResult } from '../../resources/command.js';
import { isAlive } from './alive.js';
import { type Environment, environmentOf, findProgram, launchArguments } from './launch.js';
import { type OutputStreams, openStreams } from './output-streams.js';
import { type Workplace, type Workplaces, writePrivately } from './workplace.js';

export interface RunCommandOptions {
  /** What `timeoutSecs: 'script'` means. */
  readonly scriptTimeoutSecs: number;
  readonly workplaces: Workplaces;
  /** Aborted when the run is cancelled or, with the Fault `interrupted` as reason, when the agent stops. */
  readonly signal?: AbortSignal | undefined;
}

/** What the streams have after the end of the program: processes that it leaves behind may hold them for ever. */
const GRACE_MS = 1_000;

/** Never rejects: what goes wrong is in the result. */
export async function runCommand(command: Command, options: RunCommandOptions): Promise<CommandResult> {
  if (isToEnd(command, options.signal)) return withoutOutput({ how: 'cancelled' });
  const env = environmentOf(command);
  const program = findProgram(command.argv[0], env);
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
  readonly env: Environment;
}

async function runIn(workplace: Workplace, task: Task, options: RunCommandOptions): Promise<CommandResult> {
  const streams = await openStreams(workplace, task.command.lifetime === 'outlive');
  const { stdout, stderr } = streams;
  let end: CommandEnd;
  try {
    end = await supervise(start(task, workplace, streams), task, { ...options, streams });
  } finally {
    stdout.stop();
    stderr.stop();
  }
  const truncated = stdout.capture.isCut || stderr.capture.isCut;
  return { end, stdout: stdout.capture.text(), stderr: stderr.capture.text(), truncated };
}

function start({ command, program, env }: Task, workplace: Workplace, { stdout, stderr }: OutputStreams): ChildProcess {
  const { argv, script, lifetime } = command;
  const file = script ? [writePrivately(workplace, `script${script.suffix}`, script.text)] : [];
  const given = [...argv.slice(1), ...file];
  const [first, ...args] = launchArguments(program, given, { outlives: lifetime === 'outlive', env });
  const stdin = inputFor(command, workplace);
  try {
    const stdio = [stdin, stdout.descriptor, stderr.descriptor];
    return spawn(first, args, { cwd: '/', detached: true, env, stdio });
  } finally {
    if (typeof stdin === 'number') closeSync(stdin);
  }
}

/** What outlives the agent gets its input as a file: the end of the agent would end a pipe in the middle. */
function inputFor({ input, lifetime }: Command, workplace: Workplace): 'ignore' | 'pipe' | number {
  if (input === undefined) return 'ignore';
  return lifetime === 'outlive' ? openSync(writePrivately(workplace, 'input', input), 'r') : 'pipe';
}

type Supervision = RunCommandOptions & { readonly streams: OutputStreams };

/** Resolves when the program has ended or was ended, and with it what is left of its group. */
async function supervise(child: ChildProcess, { command }: Task, options: Supervision): Promise<CommandEnd> {
  const { stdout, stderr } = options.streams;
  const exited = endOf(child);
  const closed = Promise.all([stdout.start(), stderr.start()]);
  // A program need not read all that it is given.
  child.stdin?.on('error', () => {});
  child.stdin?.end(command.input);
  const stop = stopOf(command, options);
  try {
    const end = await Promise.race([exited, stop.asked]);
    if (isStop(end) && child.pid !== undefined) await new ProcessGroup(child.pid).end();
    stdout.look();
    stderr.look();
    await within(closed, GRACE_MS);
    return end;
  } finally {
    stop.dispose();
    child.stdin?.destroy();
    child.unref();
  }
}

const isStop = ({ how }: CommandEnd): boolean => how === 'timed-out' || how === 'cancelled';

/** How the program ends by itself. */
function endOf(child: ChildProcess): Promise<CommandEnd> {
  return new Promise((resolve) => {
    child.once('error', (error) => resolve({ how: 'not-started', missing: false, message: messageOf(error) }));
    child.once('exit', (code, signal) => {
      resolve(code === null ? { how: 'killed', signal: signal ?? 'an unknown signal' } : { how: 'exited', code });
    });
  });
}

/** Tells when the program has to be ended. */
function stopOf(command: Command, { scriptTimeoutSecs, signal }: RunCommandOptions) {
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
const isToEnd = ({ lifetime }: Command, signal: AbortSignal | undefined): boolean =>
  lifetime === 'end' && signal !== undefined && signal.aborted && !isFault(signal.reason, 'interrupted');

async function within(promise: Promise<unknown>, milliseconds: number): Promise<void> {
  const over = new AbortController();
  const time = delay(milliseconds, undefined, { signal: over.signal }).catch(() => {});
  await Promise.race([promise, time]);
  over.abort();
}

/** What processes have to end by themselves after SIGTERM, and to be gone after SIGKILL, in milliseconds. */
const TERMINATE_MS = 10_000;
const KILL_MS = 5_000;
/** Between two looks, so that a number that the system gives to others is not signalled. */
const LOOK_MS = 50;

export class ProcessGroup {
  private readonly leader: number;

  constructor(leader: number) {
    this.leader = leader;
  }

  /** Asks all of them to end, and ends those that do not. What not even that ends is left to the system. */
  async end(): Promise<void> {
    this.signal('SIGTERM');
    // A stopped process would not hear it.
    this.signal('SIGCONT');
    if (await this.isGoneWithin(TERMINATE_MS)) return;
    this.signal('SIGKILL');
    await this.isGoneWithin(KILL_MS);
  }

  private async isGoneWithin(milliseconds: number): Promise<boolean> {
    const end = performance.now() + milliseconds;
    while (isAlive(-this.leader)) {
      if (performance.now() >= end) return false;
      await delay(LOOK_MS);
    }
    return true;
  }

  private signal(name: NodeJS.Signals): void {
    try {
      process.kill(-this.leader, name);
    } catch {
      // They are gone, or belong to another user.
    }
  }
}
