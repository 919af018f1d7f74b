/** Connects to the target of a forward on behalf of the agent. */
import { constants } from 'node:fs';
import { type FileHandle, open, readlink, realpath } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { messageOf, systemCodeOf } from '../../kernel/fault.js';
import { type ForwardTarget, targetText } from '../../kernel/forward-target.js';
import { FORWARD_LIMITS } from '../../terminal/forward-limits.js';

/**
 * Opens a file only to refer to it (`O_PATH` of Linux). Node does not name the flag.
 */
const O_PATH = 0o10000000;
/** Milliseconds until the next address of a name is tried too. */
const NEXT_ADDRESS = 1_000;

/** Connects. Rejects with an error whose message tells the operator why. The signal gives the attempt up. */
export async function connectTarget(target: ForwardTarget, signal: AbortSignal): Promise<Socket> {
  try {
    return 'path' in target ? await connectSocket(target.path, signal) : await connectTcp(target, signal);
  } catch (error) {
    throw new Error(explain(target, error));
  }
}

const connectTcp = ({ host, port }: { readonly host: string; readonly port: number }, signal: AbortSignal) =>
  connected(
    connect({
      host,
      port,
      allowHalfOpen: true,
      noDelay: true,
      autoSelectFamily: true,
      autoSelectFamilyAttemptTimeout: NEXT_ADDRESS,
    }),
    signal,
  );

/**
 * Connects to a Unix socket at exactly this path. Links in the path are refused: their owners could point a permitted name at any
 * socket of the machine, and the agent connects as root. The opened file is the one that is connected to.
 */
async function connectSocket(path: string, signal: AbortSignal): Promise<Socket> {
  if (process.platform !== 'linux') {
    await requireSame(path, await realpath(path));
    return connected(connect({ path, allowHalfOpen: true }), signal);
  }
  let file: FileHandle | null = null;
  try {
    file = await open(path, O_PATH | constants.O_NOFOLLOW);
    // With O_PATH, the open of a link succeeds and refers to the link.
    if ((await file.stat()).isSymbolicLink()) throw new Error('it is a link; name the socket itself');
    const through = `/proc/self/fd/${file.fd}`;
    await requireSame(path, await readlink(through));
    return await connected(connect({ path: through, allowHalfOpen: true }), signal);
  } finally {
    await file?.close();
  }
}

async function requireSame(path: string, real: string): Promise<void> {
  if (real !== path) throw new Error(`it is a link or lies behind one; name ${real} instead`);
}

function connected(socket: Socket, signal: AbortSignal): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const giveUp = () => socket.destroy(new Error('the attempt was given up'));
    const deadline = setTimeout(
      () => socket.destroy(Object.assign(new Error('timeout'), { code: 'ETIMEDOUT' })),
      FORWARD_LIMITS.connectTimeout,
    );
    const settle = () => {
      clearTimeout(deadline);
      signal.removeEventListener('abort', giveUp);
      socket.off('error', failed);
      socket.off('connect', opened);
    };
    const failed = (error: Error) => {
      settle();
      reject(error);
    };
    const opened = () => {
      settle();
      resolve(socket);
    };
    socket.once('error', failed);
    socket.once('connect', opened);
    if (signal.aborted) giveUp();
    else signal.addEventListener('abort', giveUp, { once: true });
  });
}

const REASONS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nothing listens there',
  ETIMEDOUT: 'it does not answer',
  ENOTFOUND: 'the name is not known on the machine',
  EAI_AGAIN: 'the name server of the machine does not answer',
  EHOSTUNREACH: 'the machine has no route to it',
  ENETUNREACH: 'the machine has no route to it',
  ENOENT: 'there is no such socket',
  ENOTDIR: 'there is no such socket',
  ELOOP: 'it is a link; name the socket itself',
  EACCES: 'the agent may not open it',
  EPERM: 'the agent may not open it',
  ENOTSOCK: 'it is no socket',
};

function explain(target: ForwardTarget, error: unknown): string {
  // With several addresses, Node reports the error of each.
  const one = error instanceof AggregateError ? error.errors[0] : error;
  return `cannot connect to ${targetText(target)}: ${REASONS[systemCodeOf(one) ?? ''] ?? messageOf(one)}`;
}
