/** Forwards local connections to the targets of one agent, over a session that is opened again after a loss. */
import type { Socket } from 'node:net';
import type { ApiClient } from '../../client/api-client.js';
import { ForwardConnection } from '../../client/forward/forward-connection.js';
import type { Clock } from '../../kernel/clock.js';
import { type Fault, messageOf } from '../../kernel/fault.js';
import { breakSocket } from '../../terminal/channel.js';
import { type ForwardSpec, type ListenPlace, placeText } from './forward-spec.js';
import { type LocalListener, listenLocally } from './local-listener.js';

export interface ForwarderOptions {
  readonly api: ApiClient;
  readonly clock: Clock;
  readonly nodeId: string;
  readonly specs: readonly [ForwardSpec, ...ForwardSpec[]];
  readonly signal: AbortSignal;
  /** Shows a problem to the operator. */
  readonly warn: (text: string) => void;
}

export interface Forwarder {
  /** Where it listens, in the order of the specs. */
  readonly places: readonly ListenPlace[];
  /** Ends the session, its connections and the listeners. */
  close(): void;
}

/** Opens the session, then listens. Throws what `openForward` and `listenLocally` throw. */
export async function startForwarder(options: ForwarderOptions): Promise<Forwarder> {
  const session = new Session(options);
  const listeners: LocalListener[] = [];
  const close = () => {
    for (const listener of listeners) listener.close();
    session.close();
  };
  try {
    // Refusals of the agent come first, before anything listens.
    await session.connection();
    for (const [target, spec] of options.specs.entries()) {
      listeners.push(await listenLocally(spec.listen, (socket) => session.forward(target, spec, socket)));
    }
  } catch (error) {
    close();
    throw error;
  }
  return { places: listeners.map(({ place }) => place), close };
}

class Session {
  private readonly options: ForwarderOptions;
  private current: Promise<ForwardConnection> | null = null;
  private isClosed = false;

  constructor(options: ForwarderOptions) {
    this.options = options;
  }

  /** Returns the open session, and opens one if there is none. */
  connection(): Promise<ForwardConnection> {
    if (this.current === null) {
      const opening = this.open();
      this.current = opening;
      opening.catch(() => this.forget(opening));
    }
    return this.current;
  }

  /** Forwards a connection; breaks it when the session cannot be opened. */
  forward(target: number, { targetText }: ForwardSpec, socket: Socket): void {
    const failed = (reason: string) => {
      if (!this.isClosed) this.options.warn(`${targetText}: ${reason}`);
    };
    const local = { source: socket, sink: socket, destroy: () => breakSocket(socket) };
    this.connection().then(
      (connection) => {
        connection.connect(target, local, (reason) => {
          if (reason !== null && !isOrdinary(reason)) failed(reason);
        });
      },
      (error: unknown) => {
        local.destroy();
        failed(messageOf(error));
      },
    );
  }

  close(): void {
    this.isClosed = true;
    void this.current?.then(
      (connection) => connection.close(),
      () => undefined,
    );
  }

  private async open(): Promise<ForwardConnection> {
    const { api, clock, nodeId, specs, signal, warn } = this.options;
    const body = { targets: specs.map(({ target }) => target) };
    const opened = await api.call('openForward', { params: { node_id: nodeId }, body, signal });
    const onLost = (cause: Fault) => {
      this.forget();
      if (!this.isClosed) warn(`${cause.message}; open connections were ended, and the next one connects anew`);
    };
    const connection = new ForwardConnection({ api, clock, opened, onLost });
    await connection.ready;
    if (this.isClosed) connection.close();
    return connection;
  }

  private forget(opening = this.current): void {
    if (this.current === opening) this.current = null;
  }
}

/** Ends that programs cause on purpose, as with any TCP connection. */
const isOrdinary = (reason: string): boolean =>
  /ECONNRESET|EPIPE|the connection was closed|has gone|connection to the orchestrator/.test(reason);

/** Returns the line that tells the operator about a forward. */
export const forwardLine = (place: ListenPlace, node: string, { targetText }: ForwardSpec): string =>
  `${placeText(place)} -> ${node} ${targetText}`;
