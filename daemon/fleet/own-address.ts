/** Addresses at which the orchestrator is reached, as far as its settings reveal them. */
import { isIPv4, isIPv6 } from 'node:net';
import { type NetworkInterfaceInfo, networkInterfaces } from 'node:os';
import type { Logger } from '../../src/kernel/logger.js';
import { isUnknownName } from '../../src/settings/advertised-host.js';
import type { Settings } from '../../src/settings/serve.js';

/** Returns the address for agents; the host is null when it cannot be known here. */
export const agentAddress = ({ agent_host: host, advertised_host: advertised }: Settings, port: number) => ({
  agent_host: isEverywhere(host) ? advertised || null : host,
  agent_port: port,
});

const isEverywhere = (host: string): boolean => host === '0.0.0.0' || host === '::';

/**
 * Returns the host at which others reach an address. For one that listens everywhere, it is the advertised name, else
 * the first address of this machine that others can reach, else loopback.
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

/** Warns if this host finds no address of the advertised name. Never rejects. @param find see `isUnknownName` */
export async function warnOfUnknownName(
  host: string,
  logger: Logger,
  find?: (name: string) => Promise<unknown>,
): Promise<void> {
  if (!(await isUnknownName(host, find))) return;
  logger.warn('this host finds no address of the name under which others are to reach it', {
    advertised_host: host,
    hint: 'correct advertised_host, or give the name an address: in the DNS, or in /etc/hosts of each machine',
  });
}
