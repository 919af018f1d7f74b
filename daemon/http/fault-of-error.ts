/** Turns whatever was thrown while a request was served into the Fault that the client may see. */
import { FAULTS } from '../../src/contract/faults.js';
import { Fault, systemCodeOf } from '../../src/kernel/fault.js';
import type { FaultCode } from '../../src/kernel/fault-code.js';

/** What Fastify refuses by itself. */
const REFUSED: Readonly<Record<string, readonly [FaultCode, string]>> = {
  FST_ERR_CTP_BODY_TOO_LARGE: ['body_too_large', 'the request body is larger than this server takes'],
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: ['bad_request', 'the request body is not as long as Content-Length says'],
  FST_ERR_BAD_URL: ['bad_request', 'the path is not valid percent-encoding'],
  FST_ERR_MAX_PARAM_LENGTH: ['url_too_long', 'the URL is longer than this server takes'],
};

/** True when the client went away while it was sending. */
export const isHangUp = (error: unknown): boolean => ['ECONNRESET', 'EPIPE'].includes(systemCodeOf(error) ?? '');

/**
 * A fault of a code that is no HTTP answer, and everything that is no Fault, becomes `internal`: its message could
 * tell of paths and keys of this machine.
 * @param declared codes of status 500 that the route has in its contract
 */
export function faultOfError(error: unknown, declared: readonly FaultCode[] = []): Fault {
  if (error instanceof Fault) {
    const isShowable = FAULTS[error.code].status !== 500 || error.code === 'internal' || declared.includes(error.code);
    return isShowable ? error : internal(error);
  }
  const refused = REFUSED[systemCodeOf(error) ?? ''];
  if (refused) return new Fault(...refused, { cause: error });
  if (isHangUp(error)) return new Fault('bad_request', 'the connection broke', { cause: error });
  return isRefusal(error) ? new Fault('bad_request', 'the request is malformed', { cause: error }) : internal(error);
}

/** Another refusal of Fastify. */
const isRefusal = (error: unknown): boolean =>
  error instanceof Error &&
  (systemCodeOf(error)?.startsWith('FST_ERR_') ?? false) &&
  'statusCode' in error &&
  Number(error.statusCode) < 500;

const internal = (cause: unknown): Fault =>
  new Fault('internal', 'something went wrong in the orchestrator', {
    hint: 'its log tells more under the request id',
    cause,
  });
