/** Limits of the HTTPS server. */

/** Size limits and timeouts of the API. */
export interface HttpLimits {
  readonly handshakeTimeoutMs: number;
  /** Timeout until the last header has arrived. */
  readonly headersTimeoutMs: number;
  /** Timeout until the last byte of the request has arrived. */
  readonly requestTimeoutMs: number;
  /** Interval at which the two timeouts above are checked. */
  readonly checkIntervalMs: number;
  /** Timeout of an idle keep-alive connection. */
  readonly keepAliveTimeoutMs: number;
  readonly headerBytes: number;
  readonly urlBytes: number;
  readonly bodyBytes: number;
  /** Maximum body of a public route. */
  readonly publicBodyBytes: number;
  /** Maximum nesting of a JSON body. */
  readonly jsonDepth: number;
  /** Maximum bytes buffered for one slow reader of a stream. */
  readonly streamBacklogBytes: number;
  /** Timeout after which a stalled reader of events is disconnected. */
  readonly stallMs: number;
  /** Maximum silence of an event stream. */
  readonly heartbeatMs: number;
  /** Timeout for requests in flight when the server stops. */
  readonly drainMs: number;
}
