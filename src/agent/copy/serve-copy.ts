/** Serves one connection of `orch cp`: sends files of this machine, or receives them, at paths that its settings permit. */
import { realpath, stat } from 'node:fs/promises';
import { posix } from 'node:path';
import { CopyReader, CopyWriter, nameBytes, nameText } from '../../copy/copy-frames.js';
import { createCopyStream } from '../../copy/copy-stream.js';
import type { CopyTally } from '../../copy/copy-tally.js';
import { HeldDirectory, reasonOfError } from '../../copy/held-directory.js';
import { type PartialFile, removePartials } from '../../copy/incoming-file.js';
import { receiveEntries } from '../../copy/receive-entries.js';
import { Replies } from '../../copy/replies.js';
import { sendEntry } from '../../copy/send-entry.js';
import type { CopyTarget } from '../../kernel/copy-target.js';
import { Fault, messageOf, systemCodeOf } from '../../kernel/fault.js';
import type { LocalStream } from '../../terminal/channel.js';
import type { KeptParts } from './kept-parts.js';
import { notPermitted, permits } from './permitted-path.js';

/** Bits that new files do not get. The umask of the agent itself is for its own files. */
const UMASK = 0o022;

export interface ServeCopyOptions {
  readonly target: CopyTarget;
  /** Paths that the settings permit for the direction of the target. */
  readonly permitted: readonly string[];
  readonly parts: KeptParts;
  readonly tally: CopyTally;
  /** Called whenever the tally has grown, and with true when the connection has nothing more to copy. */
  readonly onTally: (isFinal?: boolean) => void;
}

interface Options extends ServeCopyOptions {
  readonly reader: CopyReader;
  readonly out: CopyWriter;
  /** Breaks the connection. */
  readonly abandon: () => void;
}

/** Serves the connection, and returns its stream. */
export function serveCopy(options: ServeCopyOptions): LocalStream {
  const { local, input, output } = createCopyStream();
  const abandon = () => local.destroy();
  const served = { ...options, reader: new CopyReader(input), out: new CopyWriter(output), abandon };
  serve(served).then(
    () => {
      options.onTally(true);
      output.end();
      // What the peer still sends is not needed.
      input.resume();
    },
    (error: unknown) => {
      const cause = error instanceof Error ? error : new Error(messageOf(error));
      output.destroy(cause);
      input.destroy(cause);
    },
  );
  return local;
}

async function serve(options: Options): Promise<void> {
  const { reader, out, target } = options;
  const request = await reader.next();
  if (request === null) return;
  if (request.type !== target.copy) throw new Fault('protocol_violation', 'the peer sent another request');
  try {
    if (request.type === 'read') await send(request, options);
    else if (request.type === 'write') await receive(request, options);
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    options.tally.refuse(error.message);
    await out.write({ type: 'failed', path: nameBytes(target.at), reason: error.message });
  }
}

/** The path cannot be copied from or to. */
class Refusal extends Error {}

interface Request<T extends 'read' | 'write'> {
  readonly request: Extract<NonNullable<Awaited<ReturnType<CopyReader['next']>>>, { type: T }>;
}

async function send({ recursive, after, resume, whole }: Request<'read'>['request'], options: Options): Promise<void> {
  const { target, out, reader, tally, onTally } = options;
  const real = await realOf(target.at);
  if (real === '/') throw new Refusal('the root directory is not copied as a whole: name directories below it');
  requireReal(options, real);
  const directory = await opened(posix.dirname(real));
  try {
    await out.write({ type: 'ready', as: false, whole: true });
    const fail = () => {
      tally.fail();
      onTally();
    };
    const replies = new Replies({
      reader,
      onSettled: ({ path, content }, reason) => {
        if (reason !== null && reason !== '') fail();
        if (reason !== null || content === null) return;
        tally.add(path, content.sha256, content.bytes);
        onTally();
      },
    });
    const label = nameBytes(posix.basename(posix.normalize(target.at)));
    await sendEntry(directory, nameBytes(posix.basename(real)), {
      ...{ out, replies, recursive, whole, after, label, source: 0, onFailed: fail, onBytes: () => undefined },
      resume: { isPending: resume },
    });
    await out.write({ type: 'done' });
    await replies.all();
  } finally {
    directory.close();
  }
}

async function receive(
  { id, preserve, resume, into, as }: Request<'write'>['request'],
  options: Options,
): Promise<void> {
  const { target, out, reader, tally, onTally, parts, permitted } = options;
  const { root, name } = await placeOf(target.at, { into, as });
  requireReal(options, name === null ? root : posix.join(root, name));
  const directory = await opened(root);
  // The connection before may not know yet that it is lost. It must not touch the file that this one goes on with.
  const release = await parts.begin(id, options.abandon);
  const earlier = resume ? parts.take(id) : [];
  const left: PartialFile[] = [];
  let isRootKept = false;
  try {
    await out.write({ type: 'ready', as: name !== null, whole: true });
    await receiveEntries({
      ...{ reader, out, root: directory, id, preserve, umask: UMASK },
      name: name === null ? null : nameBytes(name),
      permit: (entry) => {
        if (permits(permitted, posix.join(root, nameText(entry)))) return;
        throw notPermitted('write', posix.join(root, nameText(entry)), permitted);
      },
      onFile: (path, sha256, bytes) => {
        tally.add(path, sha256, bytes);
        onTally();
      },
      onFailed: () => {
        tally.fail();
        onTally();
      },
      onPartial: (file) => {
        isRootKept = file.directory === directory;
        left.push(isRootKept ? { ...file, close: () => directory.close() } : file);
      },
    });
    removePartials([...earlier, ...left]);
  } catch (error) {
    parts.keep(id, [...earlier, ...left]);
    throw error;
  } finally {
    release();
    if (!isRootKept) directory.close();
  }
}

function requireReal({ target, permitted }: Options, real: string): void {
  if (!permits(permitted, real)) throw new Refusal(notPermitted(target.copy, target.at, permitted, real).message);
}

/** Opens a directory whose path has no links. One that was exchanged for a link since fails. */
async function opened(path: string): Promise<HeldDirectory> {
  try {
    return await HeldDirectory.open(path);
  } catch (error) {
    throw new Refusal(reasonOfError(error));
  }
}

async function realOf(path: string): Promise<string> {
  try {
    return await realpath(path);
  } catch (error) {
    throw new Refusal(reasonOfError(error));
  }
}

/** Returns the directory that is written to, and the name in it; null when each source keeps its own. */
async function placeOf(
  path: string,
  { into, as }: { readonly into: boolean; readonly as: boolean },
): Promise<{ root: string; name: string | null }> {
  const needsDirectory = into || path.endsWith('/');
  let real: string;
  try {
    real = await realpath(path);
  } catch (error) {
    if (systemCodeOf(error) !== 'ENOENT' || needsDirectory) throw new Refusal(reasonOfError(error));
    const plain = posix.normalize(path);
    return { root: await realOf(posix.dirname(plain)), name: posix.basename(plain) };
  }
  const isDirectory = await stat(real).then(
    (stats) => stats.isDirectory(),
    (error: unknown) => {
      throw new Refusal(reasonOfError(error));
    },
  );
  if (isDirectory && !as) return { root: real, name: null };
  if (needsDirectory && !isDirectory) throw new Refusal('it is no directory');
  return { root: posix.dirname(real), name: posix.basename(real) };
}
