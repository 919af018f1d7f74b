/** Keeps a session connected: dials, and after a loss gets a new ticket and dials again, until reconnecting is pointless. */
import { setTimeout as pause } from 'node:timers/promises';
import type { Contract } from '../../contract/contract.js';
import type { BodyOf } from '../../contract/route.js';
import type { Clock } from '../../kernel/clock.js';
import { Fault, type FaultCode, isFault } from '../../kernel/fault.js';
import type { Frame } from '../../terminal/frames.js';
import { TERMINAL_CLOSE } from '../../terminal/limits.js';
import type { ClientHello } from '../../terminal/notes.js';
import type { ApiClient } from '../api-client.js';
import { BASE } from '../calls.js';
import { retryAfterMs } from '../http-messages.js';
import { urlText } from '../server-url.js';
import { TerminalSocket } from './terminal-socket.js';

export interface TerminalLinkOptions {
  readonly api: ApiClient;
  readonly sessionId: string;
  readonly clock: Pick<Clock, 'monotonic'>;
  /** Returns a number from 0 to 1. */
  random(): number;
  /** Milliseconds after which reconnecting stops. */
  readonly reconnectMs: number;
  /** Returns the age in milliseconds of the oldest unacknowledged input. */
  inputAge(): number;
  /** Returns the hello; called for each connection. */
  hello(): ClientHello;
  /** Returns the mode to attach in. */
  attachAs(): BodyOf<Contract['attachTerminal']>;
  onFrame(frame: Frame): void;
  onRoundTrip(ms: number): void;
  onSilence(silent: boolean): void;
  /** Called once for each loss with its reason. */
  onLost(cause: Fault): void;
  /** Called last, when the server has closed for good or refuses this client. */
  onClosed(gone: Gone): void;
}

export type Gone =
  | { readonly kind: 'replaced' }
  /** The session is over. */
  | { readonly kind: 'over' }
  | { readonly kind: 'refused'; readonly fault: Fault };

/** Errors that may pass. */
const PASSING: readonly FaultCode[] = [
  'unreachable',
  'shutting_down',
  'rate_limited',
  'store_unavailable',
  'request_timeout',
  'internal',
];
const FIRST_PAUSE = 250;
const LONGEST_PAUSE = 5_000;
/** Time limit in milliseconds of a ticket request, whose connection may be dead. */
const TICKET_DEADLINE = 15_000;
/** Consecutive protocol violations after which reconnecting stops. */
const MOST_VIOLATIONS = 5;

export class TerminalLink {
  private readonly options: TerminalLinkOptions;
  private readonly ending = new AbortController();
  private socket: TerminalSocket | null = null;
  private lostSince: number | null = null;
  private failures = 0;
  private violations = 0;

  constructor(options: TerminalLinkOptions) {
    this.options = options;
  }

  /** Opens the first connection. */
  begin(wsUrl: string): void {
    this.dial(wsUrl);
  }

  send(frame: Buffer): void {
    this.socket?.send(frame);
  }

  ping(): void {
    this.socket?.ping();
  }

  /** Resets the pause between attempts after a working connection. */
  resetPause(): void {
    this.lostSince = null;
    this.failures = 0;
  }

  /** Resets the count of violations after output. */
  progressed(): void {
    this.violations = 0;
  }

  /** Detaches from the session. */
  drop(): void {
    this.ending.abort(new Fault('cancelled', 'the terminal was closed'));
    this.socket?.drop(TERMINAL_CLOSE.done);
    this.socket = null;
  }

  private dial(wsUrl: string): void {
    const { api, clock, hello, inputAge, onFrame, onRoundTrip, onSilence } = this.options;
    this.socket = new TerminalSocket({
      address: streamAddress(api.url, wsUrl),
      connections: api.connections,
      clock,
      hello: hello(),
      inputAge,
      onFrame,
      onRoundTrip,
      onSilence,
      onClosed: (code, cause) => this.closed(code, cause),
    });
  }

  private closed(code: number | null, cause: Fault): void {
    this.socket = null;
    if (code === TERMINAL_CLOSE.violation || isFault(cause, 'protocol_violation')) this.violations += 1;
    if (code === TERMINAL_CLOSE.replaced) this.close({ kind: 'replaced' });
    else if (code === TERMINAL_CLOSE.revoked) this.close({ kind: 'refused', fault: revoked() });
    else if (this.violations >= MOST_VIOLATIONS) this.close({ kind: 'refused', fault: cause });
    else {
      this.reportLost(cause);
      void this.reconnect();
    }
  }

  private reportLost(cause: Fault): void {
    if (this.lostSince !== null) return;
    this.lostSince = this.options.clock.monotonic();
    this.options.onLost(cause);
  }

  private async reconnect(): Promise<void> {
    const { signal } = this.ending;
    let advised = 0;
    while (!signal.aborted) {
      try {
        await pause(Math.max(this.nextPause(), advised), undefined, { signal });
        const wsUrl = await this.ticket();
        if (!signal.aborted) this.dial(wsUrl);
        return;
      } catch (error) {
        if (signal.aborted) return;
        const gone = this.verdict(error);
        if (gone === null) {
          advised = retryAfterMs(error, 0);
          continue;
        }
        this.close(gone);
        return;
      }
    }
  }

  private nextPause(): number {
    const most = Math.min(FIRST_PAUSE * 2 ** this.failures, LONGEST_PAUSE);
    this.failures += 1;
    return most * (0.5 + this.options.random() / 2);
  }

  private async ticket(): Promise<string> {
    const { api, sessionId, attachAs } = this.options;
    const attempt = new AbortController();
    const giveUp = (reason: unknown) => attempt.abort(reason);
    const late = () => giveUp(new Fault('unreachable', 'the orchestrator does not answer'));
    const timer = setTimeout(late, TICKET_DEADLINE);
    const end = () => giveUp(this.ending.signal.reason);
    this.ending.signal.addEventListener('abort', end, { once: true });
    try {
      const params = { session_id: sessionId };
      return (await api.call('attachTerminal', { params, body: attachAs(), signal: attempt.signal })).ws_url;
    } finally {
      clearTimeout(timer);
      this.ending.signal.removeEventListener('abort', end);
    }
  }

  /** Returns why reconnecting is pointless, or null. */
  private verdict(error: unknown): Gone | null {
    if (isFault(error, 'terminal_over')) return { kind: 'over' };
    const fault = isFault(error) ? error : new Fault('internal', String(error), { cause: error });
    if (!PASSING.includes(fault.code)) return { kind: 'refused', fault };
    const waited = this.options.clock.monotonic() - (this.lostSince ?? 0);
    return waited > this.options.reconnectMs ? { kind: 'refused', fault } : null;
  }

  private close(gone: Gone): void {
    this.ending.abort(new Fault('cancelled', 'the terminal is gone'));
    this.options.onClosed(gone);
  }
}

const revoked = (): Fault =>
  new Fault(
    'role_forbidden',
    'the orchestrator has ended this connection: you are no longer allowed to use this terminal',
  );

const STREAM = new RegExp(`${BASE}/(?:terminal|forward)/`);

/**
 * Returns the address of a session's stream, always at the server that the client trusts.
 * @param server address of the server, whose path is kept, because a proxy may have added it
 * @param wsUrl URL from the server, of which only the path and the ticket are used
 * @throws Fault `unreachable` when `wsUrl` is not the URL of a stream
 */
export function streamAddress(server: URL, wsUrl: string): URL {
  const given = URL.canParse(wsUrl) ? new URL(wsUrl) : null;
  const at = given?.pathname.search(STREAM) ?? -1;
  if (given === null || at < 0) {
    throw new Fault('unreachable', `${urlText(server)} names no address of a terminal`, {
      hint: 'check that it is an orchestrator of this version',
    });
  }
  const address = new URL(server);
  address.protocol = server.protocol === 'https:' ? 'wss:' : 'ws:';
  address.pathname = server.pathname.replace(/\/$/, '') + given.pathname.slice(at);
  address.search = given.search;
  return address;
}
