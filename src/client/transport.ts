/** What the client needs of the network: one request, one answer, and whose certificate it came under. */
import type { Agent } from 'node:http';

export interface TransportRequest {
  readonly method: string;
  /** From the root of the server, with the query. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | undefined;
  readonly signal: AbortSignal | undefined;
}

export interface TransportAnswer {
  readonly status: number;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** Leaving it early closes the connection. Throws Fault `unreachable` when it breaks. */
  readonly body: AsyncIterable<Uint8Array>;
  /** SHA-256 of the SPKI of the certificate that was seen on this very connection; null over plain HTTP. */
  readonly serverSpki: Uint8Array | null;
}

export interface Transport {
  /** The pool of connections to the server, each of them checked when it was made: for upgrades to a WebSocket. */
  readonly connections: Agent;
  /**
   * Throws Fault `unreachable` when there is no answer (`data.broke` is true when the connection was lost), `tls_unknown`
   * or `tls_mismatch` before anything was sent, and the signal's reason.
   */
  request(request: TransportRequest): Promise<TransportAnswer>;
  close(): void;
}

/** The whole body as text. */
export async function textOf({ body }: TransportAnswer): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of body) chunks.push(chunk);
  return new TextDecoder().decode(Buffer.concat(chunks));
}
