/** Which ways discovery packets take out of this machine, and the host that each names. */
import { type IpAddress, parseIpAddress, sameAddress } from '../../src/kernel/ip-network.js';
import { DISCOVERY } from '../../src/wire/discovery-packet.js';

/** An address of an interface, as the system tells it. */
export interface InterfaceAddress {
  /** Of the interface. */
  readonly name: string;
  readonly family: 'IPv4' | 'IPv6';
  readonly address: string;
  readonly netmask: string;
}

/** Where agents can connect to. */
export interface AgentPlace {
  /** What the agent port listens on; `0.0.0.0` and `::` are every address. */
  readonly listening: string;
  /** The name or address that is to be told instead; empty for none. */
  readonly advertised: string;
}

interface PacketRoute {
  /** The address that it is sent from, or for a group, the name of the interface. */
  readonly from: string;
  readonly host: string;
  readonly port: number;
  /** The host that the packet names. */
  readonly names: string;
}

/** One packet to the broadcast address of each IPv4 address, and one to all nodes of each interface that has IPv6. */
export function broadcastRoutes(addresses: readonly InterfaceAddress[], place: AgentPlace): readonly PacketRoute[] {
  const interfaces = [...new Set(addresses.map(({ name }) => name))].map((name) => {
    return addresses.filter((address) => address.name === name);
  });
  const reached = interfaces.filter((own) => isReached(place, own));
  // IPv4 first: an agent follows the first packet that it hears, and more agents can connect over IPv4.
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

/** An address that is good beyond the link before one of the link, and IPv4 where the port listens on that alone. */
function routeOfSix(own: readonly InterfaceAddress[], place: AgentPlace): readonly PacketRoute[] {
  // The loopback interface has no groups.
  const six = own.filter(({ family, address }) => family === 'IPv6' && !isLoopback(address));
  const [first] = six;
  if (first === undefined) return [];
  const candidates = [...six.filter(isGlobal), ...six, ...own.filter(({ family }) => family === 'IPv4')];
  const names = candidates.map(({ address }) => hostOf(place, address)).find((host) => host !== null);
  if (names === undefined) return [];
  return [{ from: first.name, host: `${DISCOVERY.group}%${first.name}`, port: DISCOVERY.port, names }];
}

/**
 * The host to name in a packet that leaves from one of our addresses; null when an agent there could not reach the port.
 * A zone is only known to the machine that has it.
 */
export function hostOf({ listening, advertised }: AgentPlace, from: string): string | null {
  if (advertised !== '') return advertised;
  const plain = from.replace(/%.*$/, '');
  if (listening === '::') return plain;
  if (listening === '0.0.0.0') return plain.includes(':') ? null : plain;
  return isLoopback(listening) && !isLoopback(from) ? null : listening;
}

/** Whether agents on that interface can reach the port at all. */
function isReached({ listening, advertised }: AgentPlace, own: readonly InterfaceAddress[]): boolean {
  if (advertised !== '' || listening === '0.0.0.0' || listening === '::') return true;
  const wanted = parseIpAddress(listening);
  return own.some(({ address }) => isSame(parseIpAddress(address), wanted));
}

/** Null for a network without a broadcast address. */
function broadcastOf({ address, netmask }: InterfaceAddress): string | null {
  const own = parseIpAddress(address);
  const mask = parseIpAddress(netmask);
  if (own?.bits !== 32 || mask?.bits !== 32) return null;
  const hosts = ~mask.value & 0xffff_ffffn;
  if (hosts <= 1n) return null;
  const value = own.value | hosts;
  return [24n, 16n, 8n, 0n].map((shift) => (value >> shift) & 255n).join('.');
}

/** Whether packets to one machine may go to that address: not to groups, nor to all machines. */
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
