/** Checks the name or address under which other hosts reach the orchestrator. */
import { lookup } from 'node:dns/promises';
import { isIP, isIPv6 } from 'node:net';
import { domainToASCII } from 'node:url';

/** Letters and digits of any script, hyphens, and underscores, which local networks use although DNS host names have none. */
const LABELS = /^(?!-)[\p{L}\p{M}\p{N}_-]{1,63}(\.(?!-)[\p{L}\p{M}\p{N}_-]{1,63})*\.?$/u;

/** Returns the text without the brackets of an IPv6 address. */
export const withoutBrackets = (host: string): string => {
  const inside = /^\[(.*)\]$/.exec(host)?.[1];
  return inside !== undefined && isIPv6(inside) ? inside : host;
};

/** Returns why the text is neither a host name nor an IP address, for a sentence that begins with it; null for a host. */
export function hostProblem(text: string): string | null {
  const host = withoutBrackets(text);
  if (isIP(host) !== 0) return null;
  if (/^[^:]+:\d+$|^\[.*\]:\d+$/.test(host)) return 'has a port, which agent_port and api_port set';
  if (host.includes('://')) return 'is a URL, and not a name or an address';
  const ascii = LABELS.test(host) ? domainToASCII(host.replace(/\.$/, '')) : '';
  if (ascii === '') return 'is neither a host name nor an IP address';
  // Labels of numbers alone would be taken for an IPv4 address.
  if (/^[\d.]+$/.test(host)) return 'is no complete IPv4 address';
  if (ascii.length > 253 || ascii.split('.').some((label) => label.length > 63)) return 'is too long for a host name';
  return null;
}

/** What the resolver says of a name without an address. It answers `EAI_AGAIN` while it does not know. */
const UNKNOWN: ReadonlySet<unknown> = new Set(['ENOTFOUND', 'ENODATA', 'EAI_NODATA', 'EAI_NONAME']);

/**
 * Tells if this host finds no address of a name. False for an address, and while the name service does not answer.
 * @param find throws an error with a code of `getaddrinfo` for a name without an address
 */
export async function isUnknownName(host: string, find: (name: string) => Promise<unknown> = lookup): Promise<boolean> {
  if (host === '' || isIP(withoutBrackets(host)) !== 0) return false;
  try {
    await find(host);
    return false;
  } catch (error) {
    return UNKNOWN.has((error as NodeJS.ErrnoException).code);
  }
}
