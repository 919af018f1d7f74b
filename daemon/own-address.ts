/** Under which addresses the orchestrator is reached, as far as its settings tell. */
import { isIPv6 } from 'node:net';
import type { Settings } from './config/settings.js';

/** Where agents reach it, as far as it can be known here. */
export const agentAddress = ({ agent_host: host, advertised_host: advertised }: Settings, port: number) => ({
  agent_host: isEverywhere(host) ? advertised || null : host,
  agent_port: port,
});

const isEverywhere = (host: string): boolean => host === '0.0.0.0' || host === '::';

/** A host that listens everywhere is reached under the name it advertises, or here on loopback. */
export const reachable = (host: string, advertised: string): string =>
  isEverywhere(host) ? advertised || '127.0.0.1' : host;

export const authority = (host: string, port: number): string =>
  isIPv6(host) ? `[${host}]:${port}` : `${host}:${port}`;
