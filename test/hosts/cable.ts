/** The network of one host: a namespace that outlives reboots, and a cable from it to the bridge of the run. */
import { writeFileSync } from 'node:fs';
import { mustRun } from './command.js';

export interface CableSpec {
  /** Name of the bridge. */
  readonly bridge: string;
  /** Name of the cable's end in the bridge, at most 15 characters. */
  readonly port: string;
  /** IPv4 address of the host, in a /24. */
  readonly address: string;
  /** File that names the network namespace. */
  readonly namespace: string;
}

/** IPv6 addresses are usable at once instead of after a second of duplicate detection. */
const configure = `
echo 0 >/proc/sys/net/ipv6/conf/default/accept_dad && echo 0 >/proc/sys/net/ipv6/conf/eth0/accept_dad || true
ip address add "$1/24" brd + dev eth0
ip link set lo up
ip link set eth0 up`;

/** Creates the namespace and lays the cable, plugged in. */
export async function layCable({ bridge, port, address, namespace }: CableSpec): Promise<void> {
  writeFileSync(namespace, '');
  await mustRun(['unshare', `--net=${namespace}`, 'true']);
  const peer = ['peer', 'name', 'eth0', 'address', hardwareAddress(address), 'netns', namespace];
  await mustRun(['ip', 'link', 'add', port, 'type', 'veth', ...peer]);
  await mustRun(['ip', 'link', 'set', port, 'master', bridge, 'up']);
  await mustRun(['nsenter', `--net=${namespace}`, 'sh', '-ec', configure, 'sh', address]);
}

export async function removeCable({ port, namespace }: CableSpec): Promise<void> {
  await mustRun(['ip', 'link', 'delete', port]);
  await mustRun(['umount', namespace]);
}

/** The host loses its carrier and keeps its address, as with a real cable. */
export async function setCable({ port }: CableSpec, state: 'up' | 'down'): Promise<void> {
  await mustRun(['ip', 'link', 'set', port, state]);
}

/** The same for a host's whole life, so that its peers find it again at once after it was dead. */
function hardwareAddress(address: string): string {
  const octets = address.split('.').map((octet) => Number(octet).toString(16).padStart(2, '0'));
  return ['02', '00', ...octets].join(':');
}
