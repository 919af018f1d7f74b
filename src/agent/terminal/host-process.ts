/** The agent's end of the process of its terminals: started with the first session, ended when it has none for a while. */
import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { Logger } from '../../kernel/logger.js';
import type { FromHost, ToHost } from './host-messages.js';

export interface HostProcessOptions {
  readonly dataDir: string;
  readonly logger: Logger;
  readonly onMessage: (message: Exclude<FromHost, { is: 'log' }>) => void;
  /** It broke down; nothing of it is left but what its programs have started. */
  readonly onLost: () => void;
}

/** After the word to stop, in milliseconds. */
const STOP_WITHIN = 4_000;

export class HostProcess {
  private readonly options: HostProcessOptions;
  private child: ChildProcess | null = null;

  constructor(options: HostProcessOptions) {
    this.options = options;
  }

  /** Starts the process when there is none. */
  send(message: ToHost): void {
    this.child ??= this.start();
    this.tell(this.child, message);
  }

  get isRunning(): boolean {
    return this.child !== null;
  }

  /** Lets a process go that has nothing to do: it ends by itself. */
  release(): void {
    const { child } = this;
    this.child = null;
    if (child?.connected) child.disconnect();
  }

  /** Ends the sessions and the process; resolves when it has ended. */
  async stop(): Promise<void> {
    const { child } = this;
    if (child === null) return;
    this.child = null;
    const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
    if (child.exitCode !== null || child.signalCode !== null) return;
    const deadline = setTimeout(() => child.kill('SIGKILL'), STOP_WITHIN);
    this.tell(child, { do: 'stop' });
    await ended;
    clearTimeout(deadline);
  }

  private start(): ChildProcess {
    const { dataDir } = this.options;
    const child = fork(fileURLToPath(new URL('./terminal-host.js', import.meta.url)), [dataDir], {
      // Nothing of the agent's: its environment may hold a token, its options a debugger's port.
      env: { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', LANG: 'C.UTF-8' },
      execArgv: [],
      cwd: '/',
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    });
    child.on('message', (message: FromHost) => this.hear(child, message));
    child.on('error', (error) =>
      this.options.logger.error('the process of the terminals does not answer', { reason: error.message }),
    );
    child.on('exit', (code, signal) => this.exited(child, code, signal));
    return child;
  }

  private tell(child: ChildProcess, message: ToHost): void {
    // Its end is told by its exit.
    if (child.connected) child.send(message, () => undefined);
  }

  private hear(child: ChildProcess, message: FromHost): void {
    if (message.is === 'log') this.options.logger[message.level](message.message, message.fields);
    else if (this.child === child) this.options.onMessage(message);
  }

  private exited(child: ChildProcess, code: number | null, signal: NodeJS.Signals | null): void {
    if (this.child !== child) return;
    this.child = null;
    this.options.logger.error('the process of the terminals broke down', { code, signal });
    this.options.onLost();
  }
}
