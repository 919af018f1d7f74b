/** Classifies PostgreSQL's errors and translates them into faults. Codes: https://www.postgresql.org/docs/current/errcodes-appendix.html */
import { Fault, messageOf, systemCodeOf } from '../../../src/kernel/fault.js';
import { StoreOutage } from '../store-outage.js';

/** Server-side codes after which the session is gone or useless: lost connections, a server that stops, starts or only reads. */
const SESSION_LOST = ['08', '57P01', '57P02', '57P03', '57P05', '53300', '25006', '25P03'];
/** System errors of a connection. */
const NETWORK =
  /^(ECONN(REFUSED|RESET|ABORTED)|EPIPE|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|ENOTFOUND|EAI_AGAIN|ENOENT|EACCES|EADDRNOTAVAIL)$/;
/** Errors of this program's own library that carry no code. */
const TEXTS =
  /^(Connection terminated|Query read timeout|timeout exceeded|timeout expired|Client (was|has) |Cannot use a pool)/;

const hasCode = (error: unknown, codes: readonly string[]): boolean => {
  const code = systemCodeOf(error) ?? '';
  return codes.some((known) => code.startsWith(known));
};

/** Thrown in place of an answer that will not come, because the connection was given up. */
export class ConnectionLost extends Error {
  override readonly name = 'ConnectionLost';
}

/** Returns true when the session that threw the error has ended, so that the outcome of a commit in it is unknown. */
export const isConnectionError = (error: unknown): boolean =>
  error instanceof ConnectionLost ||
  hasCode(error, SESSION_LOST) ||
  NETWORK.test(systemCodeOf(error) ?? '') ||
  TEXTS.test(messageOf(error)) ||
  (typeof error === 'object' && error !== null && 'severity' in error && error.severity === 'FATAL');

/** Returns the fault for a store that does not answer. */
export const unreachable = (place: string, cause: unknown): Fault =>
  new StoreOutage(`the database ${place} cannot be reached: ${reasonOf(cause)}`, {
    hint: 'start the database or mend the network to it; the orchestrator connects again by itself',
    cause,
  });

/** A refused connection to several addresses of one name has no message of its own. */
const reasonOf = (cause: unknown): string =>
  messageOf(cause) || (cause instanceof AggregateError && cause.errors.map(messageOf).join(', ')) || 'no answer';

/** Returns `store_unavailable` for errors of the server, its disk or the connection. Other errors are bugs and are returned unchanged. */
export function postgresFault(place: string, error: unknown): unknown {
  if (error instanceof Fault) return error;
  if (isConnectionError(error)) return unreachable(place, error);
  if (hasCode(error, ['53100'])) {
    return new StoreOutage(`the disk of the database ${place} is full, nothing was written`, {
      hint: 'free some space there, then try again',
      data: {},
      cause: error,
    });
  }
  if (hasCode(error, ['53', '55P03', '57014', '40', '58', 'XX001', 'XX002'])) {
    return new StoreOutage(`the database ${place} refused: ${messageOf(error)}`, {
      hint: 'try again; if it stays so, look at the log of the database',
      cause: error,
    });
  }
  return error;
}
