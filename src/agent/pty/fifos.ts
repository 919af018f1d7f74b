/** Pipes that a program can open again by name, as scripts do with `/dev/stderr`; those that Node makes are sockets. */
import { execFile } from 'node:child_process';
import { chownSync, closeSync, constants, mkdtempSync, openSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

/** The two ends of one; ours does not block. */
export interface Fifo {
  readonly ours: number;
  readonly theirs: number;
}

export interface Fifos {
  /** We write it; null when the program reads nothing. */
  readonly input: Fifo | null;
  readonly output: Fifo;
  readonly errors: Fifo;
}

export interface FifoOptions {
  readonly input: boolean;
  /** Who may open them by name beside root; null for the agent's own user. */
  readonly owner: { readonly uid: number; readonly gid: number } | null;
}

const run = promisify(execFile);

/** No name of them is left. Throws when the system does not let it. */
export async function openFifos({ input, owner }: FifoOptions): Promise<Fifos> {
  const directory = mkdtempSync(join(tmpdir(), 'orch-exec-'));
  const path = (name: string) => join(directory, name);
  try {
    const names = ['input', 'output', 'errors'].map(path);
    await run('mkfifo', ['-m', '600', ...names], { env: { PATH: '/usr/local/bin:/usr/bin:/bin' } });
    if (owner !== null) for (const name of names) chownSync(name, owner.uid, owner.gid);
    return {
      input: input ? openToWrite(path('input')) : null,
      output: openToRead(path('output')),
      errors: openToRead(path('errors')),
    };
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

function openToRead(path: string): Fifo {
  // The end to write to cannot be opened before the other one is.
  const ours = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  return { ours, theirs: openSync(path, constants.O_WRONLY) };
}

function openToWrite(path: string): Fifo {
  // Neither end can be opened before the other one; this one is both, and in the way of noticing that nobody reads.
  const both = openSync(path, constants.O_RDWR | constants.O_NONBLOCK);
  const theirs = openSync(path, constants.O_RDONLY);
  const ours = openSync(path, constants.O_WRONLY | constants.O_NONBLOCK);
  closeSync(both);
  return { ours, theirs };
}
