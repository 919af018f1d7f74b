/** Why an orchestrator could not be reached, in words that help to find the mistake. */
import { isIPv6 } from 'node:net';
import { Fault, messageOf, systemCodeOf } from '../../kernel/fault.js';

export type Reason =
  | 'refused'
  | 'timeout'
  | 'unknown_host'
  | 'no_route'
  | 'closed'
  | 'not_an_orchestrator'
  | 'tls'
  | 'other';

interface Place {
  readonly host: string;
  readonly port: number;
}

/** `host:port`, with brackets around an IPv6 address. */
export const placeOf = ({ host, port }: Place): string => (isIPv6(host) ? `[${host}]:${port}` : `${host}:${port}`);

const REASONS: Readonly<Record<string, Reason>> = {
  ECONNREFUSED: 'refused',
  ETIMEDOUT: 'timeout',
  ENOTFOUND: 'unknown_host',
  EAI_AGAIN: 'unknown_host',
  EHOSTUNREACH: 'no_route',
  ENETUNREACH: 'no_route',
  EADDRNOTAVAIL: 'no_route',
  ECONNRESET: 'closed',
  EPIPE: 'closed',
  // The two alerts of TLS that tell another kind of server: no protocol in common, no version in common.
  ERR_SSL_TLSV1_ALERT_NO_APPLICATION_PROTOCOL: 'not_an_orchestrator',
  ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION: 'not_an_orchestrator',
  ERR_SSL_WRONG_VERSION_NUMBER: 'not_an_orchestrator',
};

const SENTENCES: Readonly<Record<Reason, string>> = {
  refused: 'nothing listens there',
  timeout: 'it does not answer',
  unknown_host: 'the host name is not known',
  no_route: 'there is no way to it from here',
  closed: 'it closed the connection',
  not_an_orchestrator: "it is not an orchestrator's agent port",
  tls: 'the TLS handshake failed',
  other: 'the connection failed',
};

const HINTS: Readonly<Partial<Record<Reason, string>>> = {
  refused: 'is `orch serve` running there, and is this its agent_port (4747 unless changed)?',
  timeout: 'a firewall may be dropping packets on the way',
  unknown_host: 'check the spelling, and the name server of this machine',
  not_an_orchestrator: 'give the agent_port (4747 unless changed), not the port of the API',
};

/**
 * Fault `unreachable` that names the place; `data.reason` is for programs.
 * @param why a reason, or the error that the connection ended with
 * @param detail more about it than the reason says
 */
export function unreachable(place: Place, why: Reason | Error, detail?: string): Fault {
  const reason = why instanceof Error ? reasonOf(why) : why;
  const more =
    detail ?? (why instanceof Error && (reason === 'tls' || reason === 'other') ? messageOf(why) : undefined);
  const sentence = more ? `${SENTENCES[reason]} (${more.trim()})` : SENTENCES[reason];
  const hint = HINTS[reason];
  return new Fault('unreachable', `cannot reach ${placeOf(place)}: ${sentence}`, {
    data: { reason },
    ...(hint ? { hint } : {}),
    ...(why instanceof Error ? { cause: why } : {}),
  });
}

function reasonOf(error: Error): Reason {
  const code = systemCodeOf(error) ?? '';
  const known = REASONS[code];
  if (known) return known;
  return /^ERR_SSL|^EPROTO|^ERR_TLS/.test(code) ? 'tls' : 'other';
}
