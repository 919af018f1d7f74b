/** The addresses of this machine, and the interface of its default route. */
import type { NetworkInterfaceInfo } from 'node:os';
import { FACT_LIMITS, type PartedAttributes } from '../../kernel/facts.js';
import type { MachineFiles } from './machine-files.js';

type Interfaces = NonNullable<PartedAttributes['interfaces']>;
type SystemInterfaces = NodeJS.Dict<NetworkInterfaceInfo[]>;

interface Interface {
  mac?: string;
  readonly ipv4: string[];
  readonly ipv6: string[];
}

/**
 * Returns the addresses of each interface by its name. Leaves out loopback and what comes and goes by itself: link-local
 * addresses, which every container's pair of interfaces has, and temporary addresses of IPv6.
 */
export function readInterfaces(system: SystemInterfaces, files: MachineFiles): Interfaces {
  const temporary = temporaryAddresses(files);
  const found: [string, Interface][] = [];
  for (const [name, all = []] of Object.entries(system).sort(([a], [b]) => (a < b ? -1 : 1))) {
    const shown: Interface = { ipv4: [], ipv6: [] };
    for (const { address, family, internal, mac } of all) {
      if (internal || isLinkLocal(address) || temporary.has(address)) continue;
      if (mac !== '' && mac !== '00:00:00:00:00:00') shown.mac = mac;
      const list = family === 'IPv4' ? shown.ipv4 : shown.ipv6;
      if (list.length < FACT_LIMITS.parts) list.push(address);
    }
    if (shown.ipv4.length + shown.ipv6.length > 0 && found.length < FACT_LIMITS.parts) found.push([name, shown]);
  }
  return Object.fromEntries(found);
}

const isLinkLocal = (address: string): boolean => /^(169\.254\.|fe[89ab])/i.test(address);

const TEMPORARY = 0x01;

/** Returns the temporary addresses that if_inet6 of Linux marks, as Node writes them. */
function temporaryAddresses(files: MachineFiles): ReadonlySet<string> {
  const found = new Set<string>();
  for (const [address = '', , , , flags = '0'] of files.table('/proc/net/if_inet6')) {
    if (address.length === 32 && (Number.parseInt(flags, 16) & TEMPORARY) !== 0) found.add(shortAddress(address));
  }
  return found;
}

/** Returns 32 hex digits as RFC 5952 writes the address. */
function shortAddress(digits: string): string {
  const groups = (digits.match(/.{4}/g) ?? []).map((group) => group.replace(/^0{1,3}/, ''));
  return new URL(`http://[${groups.join(':')}]`).hostname.slice(1, -1);
}

interface DefaultRoute {
  readonly default_interface: string;
  readonly default_gateway?: string | undefined;
}

/** Returns the default route with the lowest metric, of IPv4 before IPv6; null without one. */
export function readDefaultRoute(files: MachineFiles): DefaultRoute | null {
  return routeOf4(files) ?? routeOf6(files);
}

const UP = 0x1;
const REJECTS = 0x200;
const isUsable = (flags: number): boolean => (flags & UP) !== 0 && (flags & REJECTS) === 0;

interface Candidate extends DefaultRoute {
  readonly metric: number;
}

const lowest = (all: readonly Candidate[]): DefaultRoute | null => {
  const [first] = [...all].sort((a, b) => a.metric - b.metric);
  return first === undefined
    ? null
    : { default_interface: first.default_interface, default_gateway: first.default_gateway };
};

function routeOf4(files: MachineFiles): DefaultRoute | null {
  const rows = files.table('/proc/net/route').slice(1);
  return lowest(
    rows.flatMap(([name = '', to = '', gateway = '', flags = '0', , , metric = '0', mask = '']) =>
      to === '00000000' && mask === '00000000' && isUsable(Number.parseInt(flags, 16))
        ? [{ default_interface: name, default_gateway: address4(gateway), metric: Number(metric) }]
        : [],
    ),
  );
}

/** Returns an address of the routing table, whose bytes are in the order of the processor; undefined for none. */
function address4(hex: string): string | undefined {
  const bytes = (hex.match(/../g) ?? []).map((pair) => Number.parseInt(pair, 16)).reverse();
  return bytes.length !== 4 || bytes.every((byte) => byte === 0) ? undefined : bytes.join('.');
}

function routeOf6(files: MachineFiles): DefaultRoute | null {
  const rows = files.table('/proc/net/ipv6_route');
  return lowest(
    rows.flatMap(([to = '', length = '', , , gateway = '', metric = '0', , , flags = '0', name = '']) =>
      /^0{32}$/.test(to) && length === '00' && name !== 'lo' && isUsable(Number.parseInt(flags, 16))
        ? [
            {
              default_interface: name,
              default_gateway: /^0{32}$/.test(gateway) ? undefined : shortAddress(gateway),
              metric: Number.parseInt(metric, 16),
            },
          ]
        : [],
    ),
  );
}

/**
 * Returns the full name of the machine without asking a name server: the host name if it has a domain, else its first name in
 * `/etc/hosts` with one, else with the domain of `resolv.conf`; undefined without a domain.
 */
export function readFullName(hostname: string, files: MachineFiles): string | undefined {
  if (hostname.includes('.')) return hostname;
  for (const line of files.text('/etc/hosts').split('\n')) {
    const [, ...names] = (line.split('#')[0] ?? '').trim().split(/\s+/);
    if (!names.includes(hostname)) continue;
    const full = names.find((name) => name.startsWith(`${hostname}.`));
    if (full !== undefined) return full;
  }
  const domains = files.table('/etc/resolv.conf').filter(([key]) => key === 'domain' || key === 'search');
  const domain = domains.at(-1)?.[1];
  return domain === undefined || domain === '.' ? undefined : `${hostname}.${domain.replace(/\.$/, '')}`;
}
