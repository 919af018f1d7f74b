/** IP addresses as the 4 or 16 bytes that certificates hold. */
import { isIPv4, isIPv6 } from 'node:net';

/** The bytes of an address in text form (a zone such as `%eth0` is left out), or null when it is none. */
export function ipBytes(address: string): Buffer | null {
  const text = address.replace(/%.*$/, '');
  if (isIPv4(text)) return Buffer.from(text.split('.').map(Number));
  return isIPv6(text) ? ipv6Bytes(text) : null;
}

function ipv6Bytes(text: string): Buffer {
  const [head = '', tail] = withoutDots(text).split('::');
  const left = groups(head);
  const right = tail === undefined ? [] : groups(tail);
  const zeros = new Array<string>(8 - left.length - right.length).fill('0');
  return Buffer.from([...left, ...zeros, ...right].map((group) => group.padStart(4, '0')).join(''), 'hex');
}

/** Turns a dotted last part (`::ffff:192.0.2.1`) into two groups. */
const withoutDots = (text: string): string =>
  text.replace(/(\d+)\.(\d+)\.(\d+)\.(\d+)$/, (_, a, b, c, d) => {
    const pair = (high: string, low: string) => (Number(high) * 256 + Number(low)).toString(16);
    return `${pair(a, b)}:${pair(c, d)}`;
  });

const groups = (text: string): readonly string[] => (text === '' ? [] : text.split(':'));
