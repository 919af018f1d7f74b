/** The typed client of the API: every method follows from the contract. */
import type { Agent } from 'node:http';
import type { RouteId } from '../contract/contract.js';
import type { Method } from '../contract/route.js';
import type {
  CallArguments,
  DownloadRouteId,
  EventArguments,
  EventRouteId,
  FullAnswer,
  ReceivedEvent,
  RequestOptions,
  StreamingRouteId,
  StreamLine,
  SuccessBody,
} from './request.js';

export interface RawRequest extends RequestOptions {
  /** Text is sent as it is, anything else as JSON; undefined is no body. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

/** An answer of any status, problems included. */
export interface RawAnswer {
  readonly status: number;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
}

/**
 * Every method logs in by itself when the session is missing or over. What fails is a Fault: the server's own with its
 * code, errors and data (`data.request_id` and `data.status` among them), `unreachable` when there was no answer,
 * `tls_unknown` and `tls_mismatch` before a single byte of the request was sent.
 */
export interface ApiClient {
  readonly url: URL;
  /** The pool of its connections, each of them checked when it was made: for upgrades to a WebSocket. */
  readonly connections: Agent;
  /** The body of the successful answer. */
  call<I extends RouteId>(id: I, ...input: CallArguments<I>): Promise<SuccessBody<I>>;
  /** The successful answer with status and headers. */
  callFull<I extends RouteId>(id: I, ...input: CallArguments<I>): Promise<FullAnswer<I>>;
  /** The lines of a streaming route. Leaving the loop ends the request; an `error` line is thrown as its Fault. */
  stream<I extends StreamingRouteId>(id: I, ...input: CallArguments<I>): AsyncIterable<StreamLine<I>>;
  /**
   * Connects to a route of events, and gives those that come until the server ends the stream. A problem that the server ends
   * it with is thrown as its Fault, a connection that breaks or falls silent as `unreachable`. See `followEvents`.
   */
  events<I extends EventRouteId>(id: I, ...input: EventArguments<I>): Promise<AsyncIterable<ReceivedEvent<I>>>;
  /**
   * The bytes of a route that answers with something else than JSON, as they come. Leaving the loop ends the request; a
   * connection that breaks or falls silent is thrown as `unreachable`.
   */
  download<I extends DownloadRouteId>(id: I, ...input: CallArguments<I>): Promise<AsyncIterable<Uint8Array>>;
  /**
   * Any request below the server's address, with the login. Never throws for a status.
   * @param path such as `/api/v1/status?…`; `/status` stands for the same
   */
  raw(method: Method | (string & {}), path: string, request?: RawRequest): Promise<RawAnswer>;
  /** Ends the session at the server and forgets the cached token. Does nothing without a session. */
  logOut(): Promise<void>;
  /** Closes idle connections. */
  close(): void;
}
