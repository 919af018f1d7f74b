/** The output of a real program in a terminal of 80 by 24, as it came. */
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';

/** Nothing more comes when nothing came for that long, in milliseconds. */
const QUIET = 200;
const MOST = 10_000;

export interface Recording {
  /** Run by a shell. */
  readonly command: string;
  /** Typed one after the other, each once the program has come to rest. */
  readonly keys: readonly string[];
  /** Ends what the program leaves behind; run by a shell. */
  readonly cleanup?: string;
}

/** The output of the program until it had answered the last keys; then it is ended. */
export async function record({ command, keys, cleanup = 'true' }: Recording): Promise<Buffer> {
  const home = mkdtempSync(join(tmpdir(), 'orch-screen-'));
  const env = {
    ...{ PATH: process.env.PATH, HOME: home, TMUX_TMPDIR: home, TERM: 'xterm-256color', LANG: 'C.UTF-8' },
    // A shell that hangs up would write its history into the directory while that is removed.
    HISTFILE: '/dev/null',
  };
  const inTerminal = `stty rows 24 cols 80; cd "$HOME"; ${command}`;
  const child = spawn('script', ['-qfec', inTerminal, '/dev/null'], { env, stdio: ['pipe', 'pipe', 'ignore'] });
  const ended = new Promise((resolve) => child.once('exit', resolve));
  const pieces: Buffer[] = [];
  let last = performance.now();
  child.stdout.on('data', (piece: Buffer) => {
    pieces.push(piece);
    last = performance.now();
  });
  const rest = async (): Promise<void> => {
    const before = pieces.length;
    const deadline = performance.now() + MOST;
    while (performance.now() < deadline) {
      await wait(20);
      if (pieces.length > before && performance.now() - last > QUIET) return;
    }
  };
  try {
    await rest();
    for (const typed of keys) {
      child.stdin.write(typed);
      await rest();
    }
    return Buffer.concat(pieces);
  } finally {
    spawnSync('sh', ['-c', cleanup], { env, stdio: 'ignore' });
    // Without it the terminal hangs up, and its program ends.
    child.kill('SIGKILL');
    await ended;
    // The program inside may still be writing its last.
    rmSync(home, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
  }
}
