/** Converts network errors into faults with a hint. */
import { existsSync } from 'node:fs';
import { Fault, isFault, messageOf, systemCodeOf } from '../kernel/fault.js';
import { API_PORT } from '../kernel/ports.js';
import { hostOf, isLoopback, urlText } from './server-url.js';

const REASONS: Readonly<Record<string, readonly [reason: string, hint: string]>> = {
  ECONNREFUSED: ['nothing listens there', 'check the address, and whether "orch serve" runs'],
  ENOTFOUND: ['there is no such host', 'check the name in the address'],
  EAI_AGAIN: ['the name could not be looked up', 'check the name service of this machine'],
  EHOSTUNREACH: ['there is no way to that host', 'check the network'],
  ENETUNREACH: ['there is no way to that network', 'check the network'],
  ETIMEDOUT: ['it does not answer', 'check the network and firewalls in between'],
  ERR_TLS_HANDSHAKE_TIMEOUT: [
    'it accepts the connection, but does not finish the TLS handshake',
    'it may be overloaded or stopped: look at it and try again',
  ],
  ECONNRESET: ['the connection broke', 'try again; the log of the orchestrator may tell more'],
  EPIPE: ['the connection broke', 'try again; the log of the orchestrator may tell more'],
  EPROTO: ['it does not speak TLS as this program does', 'check the port, or use http:// if TLS is turned off there'],
  ERR_SSL_WRONG_VERSION_NUMBER: ['it does not speak TLS', 'check the port, or use http:// if TLS is turned off there'],
  ERR_SSL_PACKET_LENGTH_TOO_LONG: [
    'it does not speak TLS',
    'check the port, or use http:// if TLS is turned off there',
  ],
};
/** Units of an orchestrator that runs as a service, own and packaged. */
const UNITS = ['/etc/systemd/system/orch-serve.service', '/usr/lib/systemd/system/orch-serve.service'];

/** Hints for a loopback address, which is usually the default. Started by hand beside its service, orch would make files of another user. */
const STOPPED_HERE = 'start its service: systemctl start orch-serve, or see why it ended: journalctl -u orch-serve';
const NONE_HERE = `start "orch serve" here, or choose an orchestrator elsewhere: orch profile create NAME --url https://HOST:${API_PORT}`;

const BROKEN: readonly string[] = ['ECONNRESET', 'EPIPE'];

/**
 * Returns the fault of a network error; a fault is returned unchanged. `data.broke` is true for a lost connection.
 *
 * @param units files of which one exists where the orchestrator is a service of this host
 */
export function unreachable(error: unknown, url: URL, units: readonly string[] = UNITS): Fault {
  if (isFault(error)) return error;
  const code = codeOf(error);
  const [reason, general] = REASONS[code] ?? [plain(messageOf(error)), 'check the address and the network'];
  const hint = code === 'ECONNREFUSED' && isLoopback(hostOf(url)) ? hintHere(units) : general;
  return new Fault('unreachable', `${urlText(url)} cannot be reached: ${reason}`, {
    hint,
    cause: error,
    data: { url: urlText(url), reason: code, broke: BROKEN.includes(code) },
  });
}

const hintHere = (units: readonly string[]): string =>
  units.some((path) => existsSync(path)) ? STOPPED_HERE : NONE_HERE;

/** Returns the fault of an answer that no orchestrator sends, such as that of a proxy whose server is down. */
export const notOurs = (url: URL, status: number, what: string): Fault =>
  new Fault('unreachable', `${urlText(url)} answers ${status}, but not as an orchestrator does: ${what}`, {
    hint: 'check the address, and any proxy in between',
    data: { url: urlText(url), status },
  });

/** Returns true when a request may have been lost with its connection. */
export const isBroken = (error: unknown): boolean => isFault(error, 'unreachable') && error.data?.broke === true;

function codeOf(error: unknown): string {
  // Node tries every address of a name and combines all errors into one.
  const first: unknown = error instanceof AggregateError ? error.errors[0] : undefined;
  return systemCodeOf(error) ?? systemCodeOf(first) ?? '';
}

/** Removes OpenSSL's source file from a message. */
const plain = (message: string): string =>
  /:SSL routines:[^:]*:([^:]+):/.exec(message)?.[1] ?? message.split('\n')[0] ?? message;
