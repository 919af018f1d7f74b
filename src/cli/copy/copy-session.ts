/** One session of a copy with a machine, and the streams of its connections. */
import type { Readable, Writable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ApiClient } from '../../client/api-client.js';
import { ForwardConnection } from '../../client/forward/forward-connection.js';
import { type CopyFrame, CopyReader, CopyWriter, nameText } from '../../copy/copy-frames.js';
import { createCopyStream } from '../../copy/copy-stream.js';
import type { Clock } from '../../kernel/clock.js';
import type { CopyDirection } from '../../kernel/copy-target.js';
import { Fault } from '../../kernel/fault.js';

export interface CopySessionOptions {
  readonly api: ApiClient;
  readonly clock: Clock;
  readonly nodeId: string;
  readonly direction: CopyDirection;
  readonly paths: readonly string[];
  readonly signal: AbortSignal;
}

type ReadyFrame = Extract<CopyFrame, { readonly type: 'ready' }>;

export interface CopyConnection {
  readonly reader: CopyReader;
  readonly out: CopyWriter;
  /** Says that nothing more is sent, and waits until the machine has ended, too. */
  finish(): Promise<void>;
}

/** Milliseconds in which a machine learns that the operator gave up. */
const PARTING = 500;

export class CopySession {
  private readonly connection: ForwardConnection;
  private readonly open = new Set<Writable>();
  private readonly signal: AbortSignal;
  private readonly onAbort = () => this.part();
  private readonly ends: Promise<void>[] = [];
  private loss: Fault | null = null;
  private failure: Fault | null = null;

  private constructor(options: CopySessionOptions, opened: { readonly session_id: string; readonly ws_url: string }) {
    const { api, clock, signal } = options;
    this.signal = signal;
    const onLost = (cause: Fault) => {
      this.loss = cause;
    };
    this.connection = new ForwardConnection({ api, clock, opened, onLost });
    signal.addEventListener('abort', this.onAbort, { once: true });
  }

  /** Opens a session. Throws the faults of `openCopy`, and that of a connection that is lost at once. */
  static async open(options: CopySessionOptions): Promise<CopySession> {
    const { api, nodeId, direction, paths, signal } = options;
    const body = { direction, paths: [...paths] };
    const opened = await api.call('openCopy', { params: { node_id: nodeId }, body, signal });
    const session = new CopySession(options, opened);
    await session.connection.ready;
    return session;
  }

  /** Why the session was lost; null while it is not. */
  get lostBy(): Fault | null {
    return this.loss;
  }

  /** Why a connection broke although the session was there; null if none did. */
  get brokenBy(): Fault | null {
    return this.failure;
  }

  /** Opens the connection for the path with this number. */
  connect(path: number): CopyConnection {
    const { local, input, output } = createCopyStream();
    this.open.add(output);
    const ended = new Promise<void>((resolve, reject) => {
      this.connection.connect(path, local, (reason) => {
        this.open.delete(output);
        if (reason === null) resolve();
        else {
          this.failure ??= new Fault('protocol_violation', `the copy broke off: ${reason}`);
          reject(this.failure);
        }
      });
    });
    const quiet = ended.catch(() => undefined);
    this.ends.push(quiet);
    const finish = () => {
      output.end();
      input.resume();
      return ended;
    };
    return { ...readerOf(input), out: new CopyWriter(output), finish };
  }

  /** Ends the session. When the operator gave up, the machine has a moment to notice. */
  async close(): Promise<void> {
    this.signal.removeEventListener('abort', this.onAbort);
    if (this.signal.aborted) await Promise.race([Promise.all(this.ends), sleep(PARTING)]);
    this.connection.close();
  }

  /** Ends the streams, so that the machine removes what is incomplete, and then the session. */
  private part(): void {
    for (const output of this.open) output.end();
    void this.close();
  }
}

const readerOf = (input: Readable): Pick<CopyConnection, 'reader'> => ({ reader: new CopyReader(input) });

/** Waits until the machine has found its path, and returns what it says of it. Throws `copy_refused` with the reason if it has not. */
export async function requireReady({ reader }: CopyConnection): Promise<ReadyFrame> {
  const frame = await reader.next();
  if (frame?.type === 'ready') return frame;
  if (frame?.type === 'failed') throw new Fault('copy_refused', nameText(frame.reason));
  throw new Fault('unreachable', 'the machine has ended the copy');
}
