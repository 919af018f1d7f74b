/** The address of an orchestrator, and its text form. */
import { isIPv6 } from 'node:net';
import { Fault } from '../../kernel/fault.js';
import { AGENT_PORT } from '../../kernel/ports.js';

export interface OrchestratorAddress {
  readonly host: string;
  readonly port: number;
}

/** `HOST`, `HOST:PORT`, `[IPv6]:PORT` or a bare IPv6 address. Throws `usage`. */
export function parseAddress(text: string): OrchestratorAddress {
  const bracketed = /^\[([^\]]+)\](?::(\d{1,5}))?$/.exec(text);
  const plain = /^([^:[\]\s/]+)(?::(\d{1,5}))?$/.exec(text);
  const bare = /^[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*$/.test(text) ? text : undefined;
  const host = bracketed?.[1] ?? plain?.[1] ?? bare;
  const port = Number(bracketed?.[2] ?? plain?.[2] ?? AGENT_PORT);
  if (host === undefined || port < 1 || port > 65535) {
    throw new Fault('usage', `${JSON.stringify(text)} is no address of an orchestrator`, {
      hint: `write HOST or HOST:PORT, such as orch.example.org:${AGENT_PORT}`,
    });
  }
  return { host, port };
}

/** `host:port`, with brackets around an IPv6 address. */
export const formatAddress = ({ host, port }: OrchestratorAddress): string =>
  isIPv6(host) ? `[${host}]:${port}` : `${host}:${port}`;
