/**
 * Pipes that a program can open again by name, as scripts do with `/dev/stdin` and `/dev/stderr`. Those of Node are sockets, which
 * cannot be opened.
 */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, closeSync, constants, fchownSync, openSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { promisify } from 'node:util';
import { makeTemporaryDirectory } from '../host/script-directory.js';

/** The two ends of a pipe; ours is non-blocking. */
export interface Pipe {
  readonly ownEnd: number;
  readonly programEnd: number;
}

export interface Pipes {
  /** Input, which we write; null for a program without input. */
  readonly input: Pipe | null;
  readonly output: Pipe;
  readonly errors: Pipe;
}

export interface PipesOptions {
  readonly input: boolean;
  /** Owner, who may open the pipes by name; null for the agent's own user. */
  readonly owner: { readonly uid: number; readonly gid: number } | null;
}

/**
 * Opens anonymous pipes on Linux, and FIFOs elsewhere and where there is no shell. Throws the system error if both fail.
 *
 * On Linux, opening a FIFO by name blocks until another process opens its other end, even if the last writer has closed it. Opening
 * an anonymous pipe never blocks (`fifo_open`). On other systems, `/dev/stdin` duplicates the descriptor and never blocks either.
 */
export async function openPipes(options: PipesOptions): Promise<Pipes> {
  if (process.platform !== 'linux') return openFifos(options);
  return openAnonymous(options).catch(() => openFifos(options));
}

const PATH = '/usr/local/bin:/usr/bin:/bin';

/** Holds three pipes as descriptors 3, 4 and 5, says its process ID, and ends with its input. */
const HOLDER = `exec 6<&0; : | { exec 3<&0; : | { exec 4<&0; : | { exec 5<&0; exec sh -c 'echo $$; read -r _ <&6'; }; }; }`;

/** Lets a shell make the pipes, because Node has no pipe(2), and opens them in its `/proc/PID/fd`. */
async function openAnonymous({ input, owner }: PipesOptions): Promise<Pipes> {
  const holder = spawn('/bin/sh', ['-c', HOLDER], { stdio: ['pipe', 'pipe', 'ignore'], env: { PATH }, cwd: '/' });
  const ended = once(holder, 'close').catch(() => undefined);
  // The end of a shell that could not be started is that of its output.
  holder.on('error', () => undefined);
  holder.stdin.on('error', () => undefined);
  const opened: number[] = [];
  try {
    const pid = await numberFrom(holder.stdout);
    const open = (descriptor: number, flags: number) => {
      const end = openSync(`/proc/${pid}/fd/${descriptor}`, flags);
      opened.push(end);
      if (owner !== null) fchownSync(end, owner.uid, owner.gid);
      return end;
    };
    const toRead = (descriptor: number): Pipe => ({
      ownEnd: open(descriptor, constants.O_RDONLY | constants.O_NONBLOCK),
      programEnd: open(descriptor, constants.O_WRONLY),
    });
    const toWrite = (descriptor: number): Pipe => ({
      programEnd: open(descriptor, constants.O_RDONLY),
      ownEnd: open(descriptor, constants.O_WRONLY | constants.O_NONBLOCK),
    });
    return { input: input ? toWrite(3) : null, output: toRead(4), errors: toRead(5) };
  } catch (error) {
    for (const end of opened) closeSync(end);
    throw error;
  } finally {
    holder.stdin.end();
    await ended;
  }
}

/** Reads a line with a number. Throws if the stream ends without one. */
async function numberFrom(stream: Readable): Promise<number> {
  let text = '';
  for await (const chunk of stream.iterator({ destroyOnReturn: false })) {
    text += String(chunk);
    if (text.endsWith('\n')) return Number(text);
  }
  throw new Error('the shell that makes pipes has ended');
}

const run = promisify(execFile);

/** Removes the names at once. They are made in the temporary directory or, if that cannot be used, in memory. */
async function openFifos({ input, owner }: PipesOptions): Promise<Pipes> {
  const directory = makeTemporaryDirectory('orch-exec-');
  const path = (name: string) => join(directory, name);
  try {
    const names = ['input', 'output', 'errors'].map(path);
    await run('mkfifo', ['-m', '600', ...names], { env: { PATH } });
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

function openToRead(path: string): Pipe {
  // The write end cannot be opened before the read end.
  const ownEnd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  return { ownEnd, programEnd: openSync(path, constants.O_WRONLY) };
}

function openToWrite(path: string): Pipe {
  // Neither end can be opened first. This one is both, and must close so that the end of the reader is noticed.
  const both = openSync(path, constants.O_RDWR | constants.O_NONBLOCK);
  const programEnd = openSync(path, constants.O_RDONLY);
  const ownEnd = openSync(path, constants.O_WRONLY | constants.O_NONBLOCK);
  closeSync(both);
  return { ownEnd, programEnd };
}
