/** `orch term` in a real terminal, against a scripted orchestrator. */
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';
import { Sandbox, until } from '../../support/orch.js';
import { Pty } from '../../support/pty.js';
import { startTerminalServer, type TerminalServer } from '../../support/terminal-server.js';

const ORCH = fileURLToPath(new URL('../../../dist/orch/orch.js', import.meta.url));

export interface TermRun {
  readonly pty: Pty;
  readonly server: TerminalServer;
  readonly sandbox: Sandbox;
  /** Waits for the end: the exit status of `orch`, and whether the terminal's settings are those from before. */
  finished(): Promise<{ readonly status: number; readonly restored: boolean }>;
}

export interface TermOptions {
  readonly server?: TerminalServer;
  readonly cols?: number;
  readonly rows?: number;
  /** The shell's treatment of the command, such as to redirect its input. */
  readonly around?: (command: string) => string;
}

const quote = (word: string): string => `'${word.replaceAll("'", "'\\''")}'`;

/** The words of an `orch` command that reaches the server, for a shell. */
export const orchWords = (server: TerminalServer, args: readonly string[]): string =>
  [process.execPath, ORCH, ...args, '--url', server.url, '--tls-fingerprint', server.fingerprint].map(quote).join(' ');

export async function runTerm(args: readonly string[], options: TermOptions = {}): Promise<TermRun> {
  const server = options.server ?? (await startTerminalServer());
  const sandbox = new Sandbox();
  const around = options.around ?? ((command: string) => command);
  // The shell stays, as the last output of a program that ends may be lost in a terminal.
  const script = `stty -g; ${around(orchWords(server, args))}; echo "STATUS=$?="; stty -g; echo DONE; exec sleep 60`;
  const pty = new Pty(['/bin/bash', '--norc', '-c', script], {
    env: { ...sandbox.env, ORCH_TOKEN: 'token', PS1: '$ ' },
    cwd: sandbox.root,
    ...(options.cols === undefined ? {} : { cols: options.cols }),
    ...(options.rows === undefined ? {} : { rows: options.rows }),
  });
  onTestFinished(async () => {
    pty.kill();
    await server.stop();
    await sandbox.dispose();
  });
  return {
    pty,
    server,
    sandbox,
    finished: async () => {
      const [, status, after] = await pty.shows(/STATUS=(\d+)=\s+(\S+)\s+DONE/);
      const [, before] = await pty.shows(/^(\S+)/);
      return { status: Number(status), restored: before === after };
    },
  };
}

/** Waits until the client has said hello and has its place. */
export const attached = ({ server }: TermRun): Promise<void> =>
  until(() => server.session.hellos.length > 0 && server.session.connected, 'orch is attached');
