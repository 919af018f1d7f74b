/** How much, and for how long, the API takes from a client. */
export interface HttpLimits {
  readonly handshakeTimeoutMs: number;
  /** Until the last header has come. */
  readonly headersTimeoutMs: number;
  /** Until the last byte of the request has come. */
  readonly requestTimeoutMs: number;
  /** How often the two above are looked at. */
  readonly checkIntervalMs: number;
  /** How long an idle connection is kept. */
  readonly keepAliveTimeoutMs: number;
  readonly headerBytes: number;
  readonly urlBytes: number;
  readonly bodyBytes: number;
  /** Body of a request that needs no login. */
  readonly publicBodyBytes: number;
  /** Nesting of a JSON body. */
  readonly jsonDepth: number;
  /** What may wait in memory for one slow reader of a stream. */
  readonly streamBacklogBytes: number;
  /** A reader of events that takes nothing for so long is cut off. */
  readonly stallMs: number;
  /** How long a stream of events is silent at most. */
  readonly heartbeatMs: number;
  /** How long a stop waits for running requests. */
  readonly drainMs: number;
}

export const HTTP_LIMITS: HttpLimits = {
  handshakeTimeoutMs: 10_000,
  headersTimeoutMs: 10_000,
  requestTimeoutMs: 30_000,
  checkIntervalMs: 2_000,
  keepAliveTimeoutMs: 15_000,
  headerBytes: 16 * 1024,
  urlBytes: 4 * 1024,
  bodyBytes: 2 * 1024 * 1024,
  publicBodyBytes: 4 * 1024,
  jsonDepth: 64,
  streamBacklogBytes: 32 * 1024 * 1024,
  stallMs: 30_000,
  heartbeatMs: 15_000,
  drainMs: 8_000,
};
