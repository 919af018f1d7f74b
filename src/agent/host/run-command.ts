/** Runs one command to its end, in a process group of its own, and captures what it writes. */
import { spawn } from 'node:child_process';
import { messageOf, systemCodeOf } from '../../kernel/fault.js';
import { COMMAND_TIMEOUT_SECS, type Command, type CommandEnd, type CommandResult } from '../../resources/command.js';
import { Capture } from './capture.js';

export interface RunCommandOptions {
  /** What `timeoutSecs: 'script'` means. */
  readonly scriptTimeoutSecs: number;
  /** Aborted when the run is cancelled. */
  readonly signal?: AbortSignal | undefined;
}

const ENVIRONMENT = {
  PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
  LANG: 'C.UTF-8',
} as const;

/** Never rejects: what goes wrong is in the result. */
export function runCommand(command: Command, { scriptTimeoutSecs }: RunCommandOptions): Promise<CommandResult> {
  const seconds = command.timeoutSecs === 'script' ? scriptTimeoutSecs : (command.timeoutSecs ?? COMMAND_TIMEOUT_SECS);
  const [program, ...args] = command.argv;
  return new Promise((resolve) => {
    const stdout = new Capture();
    const stderr = new Capture();
    const end = (how: CommandEnd) =>
      resolve({ end: how, stdout: stdout.text(), stderr: stderr.text(), truncated: stdout.isCut || stderr.isCut });
    const child = spawn(program, args, {
      cwd: '/',
      detached: true,
      env: { ...ENVIRONMENT, HOME: process.env.HOME ?? '/', ...command.env },
    });
    let timedOut = false;
    const timer = setTimeout(() => {
      timedOut = true;
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
    }, seconds * 1000);
    child.stdout.on('data', (data: Buffer) => stdout.add(data));
    child.stderr.on('data', (data: Buffer) => stderr.add(data));
    child.stdin.on('error', () => {});
    child.stdin.end(command.input ?? '');
    child.on('error', (error) => {
      clearTimeout(timer);
      end({ how: 'not-started', missing: systemCodeOf(error) === 'ENOENT', message: messageOf(error) });
    });
    child.on('close', (code, signal) => {
      clearTimeout(timer);
      if (timedOut) end({ how: 'timed-out', seconds });
      else if (code === null) end({ how: 'killed', signal: signal ?? 'unknown' });
      else end({ how: 'exited', code });
    });
  });
}
