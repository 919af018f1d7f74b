/** Parses IP addresses and networks. An IPv4-mapped IPv6 address (`::ffff:192.0.2.1`) becomes the IPv4 address. */

export interface IpAddress {
  readonly bits: 32 | 128;
  readonly value: bigint;
}

/** All addresses whose first `prefix` bits are those of `value`. */
export interface IpNetwork extends IpAddress {
  readonly prefix: number;
}

/** Upper 96 bits of an IPv4-mapped IPv6 address. */
const MAPPED = 0xffffn << 32n;

/** Returns the address without its zone (`%eth0`), or null for other text. */
export function parseIpAddress(text: string): IpAddress | null {
  const address = readAddress(text.replace(/%.*$/s, ''));
  return address === null ? null : unmapped({ ...address, prefix: address.bits });
}

/** Parses `10.0.0.0/8`, `fd00::/8` or a single address. Ignores bits after the prefix; returns null for other text. */
export function parseIpNetwork(text: string): IpNetwork | null {
  const [, head = '', length] = /^([^/]+)(?:\/(\d{1,3}))?$/.exec(text.trim()) ?? [];
  const address = readAddress(head);
  if (address === null) return null;
  const prefix = length === undefined ? address.bits : Number(length);
  return prefix > address.bits ? null : unmapped({ ...address, prefix });
}

export function containsAddress({ bits, value, prefix }: IpNetwork, address: IpAddress): boolean {
  if (address.bits !== bits) return false;
  const behind = BigInt(bits - prefix);
  return address.value >> behind === value >> behind;
}

export const sameAddress = (one: IpAddress, other: IpAddress): boolean =>
  one.bits === other.bits && one.value === other.value;

/**
 * Returns a key that counts all addresses of one host together: the IPv4 address, or the first 64 bits of an IPv6 address,
 * because a host chooses the other bits freely. Returns other text unchanged.
 */
export function hostNetworkOf(text: string): string {
  const address = parseIpAddress(text);
  if (address === null) return text;
  return address.bits === 32 ? `4:${address.value.toString(16)}` : `6:${(address.value >> 64n).toString(16)}`;
}

function unmapped({ bits, value, prefix }: IpNetwork): IpNetwork {
  const isMapped = bits === 128 && prefix >= 96 && value >> 32n === MAPPED >> 32n;
  return isMapped ? { bits: 32, value: value & 0xffff_ffffn, prefix: prefix - 96 } : { bits, value, prefix };
}

function readAddress(text: string): IpAddress | null {
  const value = text.includes(':') ? readSix(text) : readFour(text);
  return value === null ? null : { bits: text.includes(':') ? 128 : 32, value };
}

function readFour(text: string): bigint | null {
  const parts = text.split('.');
  const isAddress = parts.length === 4 && parts.every((part) => /^(0|[1-9]\d{0,2})$/.test(part) && Number(part) < 256);
  return isAddress ? parts.reduce((value, part) => (value << 8n) | BigInt(part), 0n) : null;
}

function readSix(text: string): bigint | null {
  const [head = '', tail, more] = withoutFour(text)?.split('::') ?? [];
  if (more !== undefined) return null;
  const [first, last] = [groupsOf(head), groupsOf(tail ?? '')];
  if (first === null || last === null) return null;
  const missing = 8 - first.length - last.length;
  if (tail === undefined ? missing !== 0 : missing < 1) return null;
  return [...first, ...Array<bigint>(missing).fill(0n), ...last].reduce((value, group) => (value << 16n) | group, 0n);
}

/** Replaces a dotted IPv4 address at the end by two groups; null when it is invalid. */
function withoutFour(text: string): string | null {
  const [, head = '', four] = /^(.*:)([^:]*\.[^:]*)$/.exec(text) ?? [];
  if (four === undefined) return text;
  const value = readFour(four);
  return value === null ? null : `${head}${(value >> 16n).toString(16)}:${(value & 0xffffn).toString(16)}`;
}

function groupsOf(text: string): readonly bigint[] | null {
  if (text === '') return [];
  const groups = text.split(':');
  return groups.every((group) => /^[0-9a-f]{1,4}$/i.test(group)) ? groups.map((group) => BigInt(`0x${group}`)) : null;
}
