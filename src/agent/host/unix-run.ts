/** Runs one command on Linux or macOS, in a process group of its own, and captures what it writes. */
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import type { Command, CommandEnd, CommandResult } from '../../resources/command.js';
import { isAlive } from './alive.js';
import {
  type Environment,
  environmentOf,
  environmentOfUser,
  findProgram,
  launchArguments,
  problemOfDirectory,
} from './launch.js';
import { argumentsAs, type OtherUser, otherUser, variablesFile } from './other-user.js';
import { type OutputStreams, openStreams } from './output-streams.js';
import {
  type CommandTask,
  GRACE_MS,
  noteOpenOutput,
  type RunCommandOptions,
  runCommand,
  settleWithin,
  supervise,
  withoutOutput,
} from './run-command.js';
import { type ScriptDirectory, writePrivately } from './script-directory.js';

/** Never rejects: failures are in the result. */
export async function runOnUnix(command: Command, options: RunCommandOptions): Promise<CommandResult> {
  const user = otherUser(command.user);
  if (user !== null && 'how' in user) return withoutOutput(user);
  return runCommand(command, options, {
    // Another user's variables are set after the switch, because they decide which code runs.
    env: user === null ? environmentOf(command) : environmentOfUser(user),
    find: (name, env) => {
      const problem = command.directory === undefined ? null : problemOfDirectory(command.directory);
      if (problem !== null) return problem;
      const found = findProgram(name, { ...env, ...command.env });
      return typeof found === 'string' ? found : (options.held?.pathOf(name) ?? found);
    },
    ...(user !== null && { open: () => options.workplaces.openForOthers() }),
    run: (task, workplace) => runIn(workplace, { ...task, user }, options),
  });
}

interface Task extends CommandTask<Environment> {
  /** Null for the agent's own. */
  readonly user: OtherUser | null;
}

async function runIn(
  workplace: ScriptDirectory | null,
  task: Task,
  options: RunCommandOptions,
): Promise<CommandResult> {
  const streams = await openStreams(workplace, task.command.lifetime === 'outlive', task.user);
  const { stdout, stderr } = streams;
  let end: CommandEnd;
  try {
    end = await untilEnd(start(task, workplace, streams), task.command, streams, options);
  } finally {
    stdout.stop();
    stderr.stop();
  }
  const truncated = stdout.capture.isCut || stderr.capture.isCut;
  return { end, stdout: stdout.capture.text(), stderr: stderr.capture.text(), truncated };
}

function start(task: Task, workplace: ScriptDirectory | null, { stdout, stderr }: OutputStreams): ChildProcess {
  const { command, env, user } = task;
  const [file, ...given] = argumentsOf(task, workplace);
  const [first, ...args] = launchArguments(file, given, { outlives: command.lifetime === 'outlive', env });
  const stdin = inputFor(command, workplace);
  try {
    const stdio = [stdin, stdout.descriptor, stderr.descriptor];
    const cwd = user === null ? (command.directory ?? '/') : '/';
    const child = spawn(first, args, { cwd, detached: true, env, stdio });
    stdout.attach?.(child.stdout);
    stderr.attach?.(child.stderr);
    return child;
  } finally {
    if (typeof stdin === 'number') closeSync(stdin);
  }
}

/** Returns the program and its arguments, with those that switch to its user. */
function argumentsOf(
  { command, program, user }: Task,
  workplace: ScriptDirectory | null,
): readonly [string, ...string[]] {
  const { argv, script, env = {}, directory = '/' } = command;
  const owner = user ?? undefined;
  const file = script && workplace ? [writePrivately(workplace, `script${script.suffix}`, script.text, owner)] : [];
  const plain = [program, ...argv.slice(1), ...file] as const;
  if (user === null || workplace === null) return plain;
  const variables = writePrivately(workplace, 'variables', variablesFile(env), user);
  const [first = program, ...rest] = argumentsAs(user, { directory, variables }, plain);
  return [first, ...rest];
}

/** Opens the input. A command that outlives the agent gets a file, because the end of the agent would cut off a pipe. */
function inputFor({ input, lifetime }: Command, workplace: ScriptDirectory | null): 'ignore' | 'pipe' | number {
  if (input === undefined) return 'ignore';
  return lifetime === 'outlive' && workplace ? openSync(writePrivately(workplace, 'input', input), 'r') : 'pipe';
}

/** Resolves when the program has ended or was ended together with its process group. */
async function untilEnd(
  child: ChildProcess,
  command: Command,
  { stdout, stderr }: OutputStreams,
  options: RunCommandOptions,
): Promise<CommandEnd> {
  const ended = supervise(child, command, options, async () => {
    if (child.pid !== undefined) await endGroup(child.pid);
  });
  const closed = Promise.all([stdout.start(), stderr.start()]);
  // A program need not read all of its input.
  child.stdin?.on('error', () => {});
  child.stdin?.end(command.input);
  try {
    const end = await ended;
    stdout.captureAvailable();
    stderr.captureAvailable();
    if (!(await settleWithin(closed, GRACE_MS))) noteOpenOutput(command, stderr.capture);
    return end;
  } finally {
    child.stdin?.destroy();
  }
}

/** Milliseconds that processes have to end by themselves after SIGTERM, and to disappear after SIGKILL. */
const TERMINATE_MS = 10_000;
const KILL_MS = 5_000;
/** Milliseconds between two checks; short, so that no reused process group ID is signalled. */
const LOOK_MS = 50;

/** Asks all processes of a group to end, and kills those that do not. */
async function endGroup(leader: number): Promise<void> {
  signalGroup(leader, 'SIGTERM');
  // A stopped process handles SIGTERM only once it continues.
  signalGroup(leader, 'SIGCONT');
  if (await isGoneWithin(leader, TERMINATE_MS)) return;
  signalGroup(leader, 'SIGKILL');
  await isGoneWithin(leader, KILL_MS);
}

async function isGoneWithin(leader: number, milliseconds: number): Promise<boolean> {
  const end = performance.now() + milliseconds;
  while (isAlive(-leader)) {
    if (performance.now() >= end) return false;
    await delay(LOOK_MS);
  }
  return true;
}

function signalGroup(leader: number, name: NodeJS.Signals): void {
  try {
    process.kill(-leader, name);
  } catch {
    // The processes are gone, or belong to another user.
  }
}
