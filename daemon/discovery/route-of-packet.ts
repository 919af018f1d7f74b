/** Chooses the routes of discovery packets out of this machine, and the host that each packet names. */
import { type IpAddress, parseIpAddress, sameAddress } from '../../src/kernel/ip-network.js';
import { DISCOVERY } from '../../src/wire/discovery-packet.js';

/** An interface address, as reported by the system. */
export interface InterfaceAddress {
  /** Name of the interface. */
  readonly name: string;
  readonly family: 'IPv4' | 'IPv6';
  readonly address: string;
  readonly netmask: string;
}

/** Address at which agents connect. */
export interface AgentPlace {
  /** Address that the agent port listens on; `0.0.0.0` and `::` stand for every address. */
  readonly listening: string;
  /** Name or address to announce instead; empty for none. */
  readonly advertised: string;
}

interface PacketRoute {
  /** Source address, or for a multicast group the name of the interface. */
  readonly from: string;
  readonly host: string;
  readonly port: number;
  /** Host that the packet names. */
  readonly names: string;
}

/**
 * Returns one packet to the broadcast address of each IPv4 address, and one to all nodes of each interface with IPv6.
 */
export function broadcastRoutes(addresses: readonly InterfaceAddress[], place: AgentPlace): readonly PacketRoute[] {
  const interfaces = [...new Set(addresses.map(({ name }) => name))].map((name) => {
    return addresses.filter((address) => address.name === name);
  });
  const reached = interfaces.filter((own) => isReached(place, own));
  // IPv4 first: an agent follows the first packet it receives, and more agents can connect over IPv4.
  return [
    ...reached.flatMap((own) => own.flatMap((address) => routeOfFour(address, place))),
    ...reached.flatMap((own) => routeOfSix(own, place)),
  ];
}

function routeOfFour(address: InterfaceAddress, place: AgentPlace): readonly PacketRoute[] {
  const host = address.family === 'IPv4' ? broadcastOf(address) : null;
  const names = hostOf(place, address.address);
  return host === null || names === null ? [] : [{ from: address.address, host, port: DISCOVERY.port, names }];
}

/**
 * Returns the IPv6 route of an interface. It names a global address before a link-local one, and an IPv4 address when
 * the port listens only there.
 */
function routeOfSix(own: readonly InterfaceAddress[], place: AgentPlace): readonly PacketRoute[] {
  // The loopback interface has no multicast groups.
  const six = own.filter(({ family, address }) => family === 'IPv6' && !isLoopback(address));
  const [first] = six;
  if (first === undefined) return [];
  const candidates = [...six.filter(isGlobal), ...six, ...own.filter(({ family }) => family === 'IPv4')];
  const names = candidates.map(({ address }) => hostOf(place, address)).find((host) => host !== null);
  if (names === undefined) return [];
  return [{ from: first.name, host: `${DISCOVERY.group}%${first.name}`, port: DISCOVERY.port, names }];
}

/**
 * Returns the host to name in a packet sent from `from`, or null when an agent there could not reach the port. The
 * zone is dropped, because it is only valid on this machine.
 */
export function hostOf({ listening, advertised }: AgentPlace, from: string): string | null {
  if (advertised !== '') return advertised;
  const plain = from.replace(/%.*$/, '');
  if (listening === '::') return plain;
  if (listening === '0.0.0.0') return plain.includes(':') ? null : plain;
  return isLoopback(listening) && !isLoopback(from) ? null : listening;
}

/** Returns true when agents on that interface can reach the port. */
function isReached({ listening, advertised }: AgentPlace, own: readonly InterfaceAddress[]): boolean {
  if (advertised !== '' || listening === '0.0.0.0' || listening === '::') return true;
  const wanted = parseIpAddress(listening);
  return own.some(({ address }) => isSame(parseIpAddress(address), wanted));
}

/** Returns the broadcast address of a network, or null when it has none. */
function broadcastOf({ address, netmask }: InterfaceAddress): string | null {
  const own = parseIpAddress(address);
  const mask = parseIpAddress(netmask);
  if (own?.bits !== 32 || mask?.bits !== 32) return null;
  const hosts = ~mask.value & 0xffff_ffffn;
  if (hosts <= 1n) return null;
  const value = own.value | hosts;
  return [24n, 16n, 8n, 0n].map((shift) => (value >> shift) & 255n).join('.');
}

/** Returns true for the address of a single machine: no multicast, broadcast or unspecified address. */
export function isUnicast(address: string): boolean {
  const parsed = parseIpAddress(address);
  if (parsed === null) return false;
  const { bits, value } = parsed;
  if (bits === 128) return value !== 0n && value >> 120n !== 0xffn;
  const first = value >> 24n;
  return first > 0n && first < 224n;
}

const isSame = (one: IpAddress | null, other: IpAddress | null): boolean =>
  one !== null && other !== null && sameAddress(one, other);

const isLoopback = (address: string): boolean => address === '::1' || address.startsWith('127.');

const isGlobal = ({ address }: InterfaceAddress): boolean => !/^fe[89ab]/i.test(address);
