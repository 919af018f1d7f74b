/** Allows channels to send to public addresses over TLS on the usual ports, and to networks allowed in the settings. */
import { lookup } from 'node:dns/promises';
import { networkInterfaces } from 'node:os';
import {
  containsAddress,
  type IpAddress,
  type IpNetwork,
  parseIpAddress,
  parseIpNetwork,
} from '../../src/kernel/ip-network.js';
import type { Settings } from '../../src/settings/serve.js';

export interface AddressRules {
  /** Networks allowed although not public, with any port and plain HTTP. */
  readonly allowNetworks: readonly string[];
  readonly allowHttp: boolean;
}

interface OwnListeners {
  /** Ports that this orchestrator listens on. */
  readonly ports: readonly number[];
  /** Addresses of this machine's interfaces. */
  readonly addresses: readonly string[];
}

interface AddressPolicyOptions {
  /** Returns the current rules; called on each check. */
  readonly rules: () => AddressRules;
  readonly own: () => OwnListeners;
}

interface Destination {
  readonly port: number;
  readonly isTls: boolean;
}

const PORTS: ReadonlySet<number> = new Set([80, 443, 8443]);

/** IPv4 networks that are not public; all others are. */
const NOT_PUBLIC_FOUR = networks([
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  // A public address that one cloud uses for its metadata service.
  '168.63.129.16/32',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/3',
]);

/** The public IPv6 network, and its exceptions: reserved ranges and ranges that lead into IPv4. */
const PUBLIC_SIX = networks(['2000::/3']);
const NOT_PUBLIC_SIX = networks(['2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20']);

const LOOPBACK = networks(['127.0.0.0/8', '0.0.0.0/8', '::1/128', '::/128']);

export class AddressPolicy {
  private readonly options: AddressPolicyOptions;

  constructor(options: AddressPolicyOptions) {
    this.options = options;
  }

  /** Returns why an address is refused, with the setting that would allow it; null when it is allowed. */
  refusal(text: string, destination: Destination): string | null {
    const address = parseIpAddress(text);
    if (address === null) return `${text} is no address`;
    if (this.isOwn(address, destination.port)) return `${text} port ${destination.port} is this orchestrator itself`;
    const { allowNetworks } = this.options.rules();
    if (isIn(address, networks(allowNetworks))) return null;
    if (!isPublic(address)) {
      return `${text} is not a public address; if it is meant, name its network in notifications.allow_networks`;
    }
    return this.refusalOfAny(text, destination);
  }

  /**
   * Returns why a URL is refused under the current rules, without resolving its name; null when it is allowed so far.
   * While `allowNetworks` is not empty a name may resolve into such a network, so it is only checked on connect.
   */
  refusalAtOnce(url: URL): string | null {
    const isTls = url.protocol === 'https:';
    const port = url.port === '' ? (isTls ? 443 : 80) : Number(url.port);
    const host = url.hostname.replace(/^\[|\]$/g, '');
    const literal = /(^|\.)localhost$/i.test(host) ? '127.0.0.1' : host;
    if (parseIpAddress(literal) !== null) return this.refusal(literal, { port, isTls });
    const { allowNetworks } = this.options.rules();
    return allowNetworks.length > 0 ? null : this.refusalOfAny(host, { port, isTls });
  }

  /** Returns why even a public address of the host is refused; null when it is allowed. */
  private refusalOfAny(host: string, { port, isTls }: Destination): string | null {
    if (!isTls && !this.options.rules().allowHttp) {
      return 'the URL is not https; if that is meant, set notifications.allow_http';
    }
    if (PORTS.has(port)) return null;
    return `port ${port} is neither 443, 80 nor 8443; if it is meant, name the network of ${host} in notifications.allow_networks`;
  }

  private isOwn(address: IpAddress, port: number): boolean {
    const { ports, addresses } = this.options.own();
    return ports.includes(port) && (isIn(address, LOOPBACK) || isIn(address, networks(addresses)));
  }
}

function isPublic(address: IpAddress): boolean {
  if (address.bits === 32) return !isIn(address, NOT_PUBLIC_FOUR);
  return isIn(address, PUBLIC_SIX) && !isIn(address, NOT_PUBLIC_SIX);
}

const isIn = (address: IpAddress, all: readonly IpNetwork[]): boolean =>
  all.some((network) => containsAddress(network, address));

/** Parses networks and skips invalid ones, because the settings are validated where they are read. */
function networks(texts: readonly string[]): readonly IpNetwork[] {
  return texts.flatMap((text) => {
    const network = parseIpNetwork(text.replace(/%.*$/, ''));
    return network === null ? [] : [network];
  });
}

/** Returns the policy of the settings. It also refuses the orchestrator's own listeners. */
export const addressPolicy = (settings: () => Settings, ownPorts: () => readonly number[]): AddressPolicy =>
  new AddressPolicy({
    rules: () => ({
      allowNetworks: settings()['notifications.allow_networks'],
      allowHttp: settings()['notifications.allow_http'],
    }),
    own: () => ({ ports: ownPorts(), addresses: ownAddresses() }),
  });

/** Returns every address of a name, including names from the hosts file. */
export const resolveHost = async (host: string): Promise<readonly string[]> =>
  (await lookup(host, { all: true, verbatim: true })).map(({ address }) => address);

/** Returns the addresses of all interfaces. */
const ownAddresses = (): readonly string[] =>
  Object.values(networkInterfaces()).flatMap((all) => (all ?? []).map(({ address }) => address));
