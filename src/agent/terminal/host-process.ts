/** A child process for sessions, as the agent uses it: started with the first session, released after a while without sessions. */
import { type ChildProcess, fork } from 'node:child_process';
import { setPriority } from 'node:os';
import { fileURLToPath } from 'node:url';
import type { LogFields, Logger } from '../../kernel/logger.js';
import type { HostLog } from './host-messages.js';

/** @typeParam From messages of the child beside those of its log */
export interface HostProcessOptions<From> {
  /** Module that the child runs. */
  readonly program: URL;
  /** Name of the child in the log, such as `the process of the terminals`. */
  readonly name: string;
  readonly dataDir: string;
  readonly logger: Logger;
  /** Niceness of the child, from 0 to 19 [default: that of the agent]. */
  readonly niceness?: number;
  readonly onMessage: (message: From) => void;
  /** Called when the host has crashed, or could not be started. Only processes of its programs may be left. */
  readonly onLost: () => void;
}

/** Milliseconds that the host has to stop. */
const STOP_WITHIN = 4_000;

export class HostProcess<To extends object, From extends { readonly is: string }> {
  private readonly options: HostProcessOptions<From>;
  private child: ChildProcess | null = null;

  constructor(options: HostProcessOptions<From>) {
    this.options = options;
  }

  /** Sends a message, and starts the process first if needed. */
  send(message: To): void {
    this.child ??= this.start();
    this.post(this.child, message);
  }

  get isRunning(): boolean {
    return this.child !== null;
  }

  /** Releases an idle process, which then ends by itself. */
  release(): void {
    const { child } = this;
    this.child = null;
    if (child?.connected) child.disconnect();
  }

  /** Kills a process that does not answer, as if it had crashed. The next session gets another one, even if the system cannot end it yet. */
  kill(): void {
    const { child } = this;
    if (child === null) return;
    child.kill('SIGKILL');
    this.lost(child, { signal: 'SIGKILL' });
  }

  /** Ends sessions and process. Resolves when the process has ended. */
  async stop(): Promise<void> {
    const { child } = this;
    if (child === null) return;
    this.child = null;
    const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
    if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const deadline = setTimeout(() => child.kill('SIGKILL'), STOP_WITHIN);
    this.post(child, { do: 'stop' });
    await ended;
    clearTimeout(deadline);
  }

  private start(): ChildProcess {
    const { dataDir, program, niceness } = this.options;
    const child = fork(fileURLToPath(program), [dataDir], {
      // Inherits nothing, because the agent's environment may contain a token and its options a debugger's port.
      env: { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', LANG: 'C.UTF-8' },
      execArgv: [],
      cwd: '/',
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    });
    if (niceness !== undefined && child.pid !== undefined) makeNice(child.pid, niceness);
    child.on('message', (message: From | HostLog) => this.handle(child, message));
    child.on('error', (error) => {
      // A process that could not be started has no exit.
      if (child.pid === undefined) this.lost(child, { reason: error.message });
      else this.options.logger.error(`${this.options.name} does not answer`, { reason: error.message });
    });
    child.on('exit', (code, signal) => this.lost(child, { code, signal }));
    return child;
  }

  private post(child: ChildProcess, message: To | { readonly do: 'stop' }): void {
    // The exit event reports failures.
    if (child.connected) child.send(message, () => undefined);
  }

  private handle(child: ChildProcess, message: From | HostLog): void {
    if (isLog(message)) this.options.logger[message.level](message.message, message.fields);
    else if (this.child === child) this.options.onMessage(message);
  }

  private lost(child: ChildProcess, fields: LogFields): void {
    if (this.child !== child) return;
    this.child = null;
    this.options.logger.error(`${this.options.name} broke down`, fields);
    this.options.onLost();
  }
}

function makeNice(pid: number, niceness: number): void {
  try {
    setPriority(pid, niceness);
  } catch {
    // It has ended, or the agent is nicer already.
  }
}

const isLog = (message: { readonly is: string }): message is HostLog => message.is === 'log';
