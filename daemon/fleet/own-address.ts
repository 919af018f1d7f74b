/** Under which addresses the orchestrator is reached, as far as its settings tell. */
import { isIPv4, isIPv6 } from 'node:net';
import { type NetworkInterfaceInfo, networkInterfaces } from 'node:os';
import type { Settings } from '../../src/settings/serve.js';

/** Where agents reach it, as far as it can be known here. */
export const agentAddress = ({ agent_host: host, advertised_host: advertised }: Settings, port: number) => ({
  agent_host: isEverywhere(host) ? advertised || null : host,
  agent_port: port,
});

const isEverywhere = (host: string): boolean => host === '0.0.0.0' || host === '::';

/**
 * Returns under which host an address is reached: one that listens everywhere under the name it advertises, else under the first address
 * of this machine that others can reach, and on loopback only where there is none.
 */
export function reachable(
  host: string,
  advertised: string,
  interfaces: NodeJS.Dict<NetworkInterfaceInfo[]> = networkInterfaces(),
): string {
  if (!isEverywhere(host)) return host;
  if (advertised !== '') return advertised;
  const outward = Object.values(interfaces).flatMap((all) => (all ?? []).filter(({ internal }) => !internal));
  const addresses = outward.map(({ address }) => address).filter((address) => !address.startsWith('fe80:'));
  return addresses.find(isIPv4) ?? addresses[0] ?? '127.0.0.1';
}

export const authority = (host: string, port: number): string =>
  isIPv6(host) ? `[${host}]:${port}` : `${host}:${port}`;
