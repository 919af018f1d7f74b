/** What this machine knows of names and of its own addresses. */
import { lookup } from 'node:dns/promises';
import { networkInterfaces } from 'node:os';

/** Every address of a name, also of those in the hosts file. */
export const resolveHost = async (host: string): Promise<readonly string[]> =>
  (await lookup(host, { all: true, verbatim: true })).map(({ address }) => address);

/** Of all interfaces. */
export const ownAddresses = (): readonly string[] =>
  Object.values(networkInterfaces()).flatMap((all) => (all ?? []).map(({ address }) => address));
