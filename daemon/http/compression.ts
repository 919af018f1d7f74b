/** Compression of whole answers with gzip, for clients that accept it. */
import { promisify } from 'node:util';
import { constants, gzip } from 'node:zlib';

/** Runs in the thread pool, so that a large answer does not hold up the event loop. */
const compress = promisify(gzip);

/** Characters below which an answer is sent as it is, because it hardly gets shorter than a packet. */
const MINIMUM = 1_024;

/** A text that never changes. It is compressed once, as well as possible, and kept. */
export class StaticText<T = string> {
  declare readonly of: T;
  readonly text: string;
  private compressed: Promise<Buffer> | null = null;

  constructor(text: string) {
    this.text = text;
  }

  gzipped(): Promise<Buffer> {
    this.compressed ??= compress(this.text, { level: constants.Z_BEST_COMPRESSION });
    return this.compressed;
  }
}

/** What compression reads and sets of an answer. */
export interface Compressible {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Body; null for an answer without one. */
  readonly payload: string | null;
  /** The text that `payload` comes from, when it never changes. */
  readonly fixed?: StaticText<unknown>;
  /** Compressed body, which is sent instead of `payload`. */
  readonly encoded?: Buffer;
}

/**
 * Returns a successful answer as it is sent to a client that accepts these codings. Its ETag stays: it names the state of a
 * record for `If-Match`, whatever the coding. No cache compares it, because answers are not stored (`Cache-Control`).
 * @param accepted `Accept-Encoding` of the request
 */
export async function encoded<A extends Compressible>(answer: A, accepted: string | undefined): Promise<A> {
  const { status, payload, fixed } = answer;
  if (status >= 300 || payload === null || payload.length < MINIMUM) return answer;
  const headers = { ...answer.headers, vary: 'Accept-Encoding' };
  if (!acceptsGzip(accepted)) return { ...answer, headers };
  const bytes = await (fixed?.gzipped() ?? compress(payload, { level: constants.Z_BEST_SPEED }));
  return { ...answer, headers: { ...headers, 'content-encoding': 'gzip' }, encoded: bytes };
}

const GZIP = /^(?:x-)?gzip$/;

/** Returns true when `Accept-Encoding` names gzip, or any coding, with a weight above 0 (RFC 9110, section 12.5.3). */
export function acceptsGzip(accepted: string | undefined): boolean {
  const codings = (accepted ?? '').toLowerCase().split(',').map(codingOf);
  const named = codings.find(({ name }) => GZIP.test(name)) ?? codings.find(({ name }) => name === '*');
  return named !== undefined && named.weight > 0;
}

function codingOf(text: string): { readonly name: string; readonly weight: number } {
  const [name = '', ...parameters] = text.split(';').map((part) => part.trim());
  const weight = parameters.find((parameter) => parameter.startsWith('q='))?.slice(2);
  return { name, weight: weight === undefined ? 1 : Number(weight) };
}
