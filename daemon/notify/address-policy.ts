/** Which addresses channels may be at: public ones, over TLS, on the usual ports, and what an operator allows beside. */

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
  /** Networks that are allowed although they are not public, with any port and plain HTTP. */
  readonly allowNetworks: readonly string[];
  readonly allowHttp: boolean;
}

interface OwnListeners {
  /** Where this orchestrator listens. */
  readonly ports: readonly number[];
  /** Of the interfaces of this machine. */
  readonly addresses: readonly string[];
}

interface AddressPolicyOptions {
  /** As they are now; asked each time. */
  readonly rules: () => AddressRules;
  readonly own: () => OwnListeners;
}

interface Destination {
  readonly port: number;
  readonly isTls: boolean;
}

const PORTS: ReadonlySet<number> = new Set([80, 443, 8443]);

/** Of IPv4 everything but these is public. */
const NOT_PUBLIC_FOUR = networks([
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  // The metadata service of one cloud has this public address.
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

/** Of IPv6 only this is public, without what leads into IPv4 or is set apart in it. */
const PUBLIC_SIX = networks(['2000::/3']);
const NOT_PUBLIC_SIX = networks(['2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20']);

const LOOPBACK = networks(['127.0.0.0/8', '0.0.0.0/8', '::1/128', '::/128']);

export class AddressPolicy {
  private readonly options: AddressPolicyOptions;

  constructor(options: AddressPolicyOptions) {
    this.options = options;
  }

  /** Why nothing may be sent to that address, with the setting that would allow it; null when it may. */
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
   * Why nothing may ever be sent to that URL under the rules as they are, without a look-up of its name; null when that shows
   * only when it is connected to, because a network is allowed that the name may turn out to be in.
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

  /** Why nothing may be sent to a public address of the host. */
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

/** What is no network is left out; settings are checked where they are read. */
function networks(texts: readonly string[]): readonly IpNetwork[] {
  return texts.flatMap((text) => {
    const network = parseIpNetwork(text.replace(/%.*$/, ''));
    return network === null ? [] : [network];
  });
}

/** Makes the policy of the settings, which refuses the orchestrator's own listeners. */
export const addressPolicy = (settings: () => Settings, ownPorts: () => readonly number[]): AddressPolicy =>
  new AddressPolicy({
    rules: () => ({
      allowNetworks: settings()['notifications.allow_networks'],
      allowHttp: settings()['notifications.allow_http'],
    }),
    own: () => ({ ports: ownPorts(), addresses: ownAddresses() }),
  });

/** Every address of a name, also of those in the hosts file. */
export const resolveHost = async (host: string): Promise<readonly string[]> =>
  (await lookup(host, { all: true, verbatim: true })).map(({ address }) => address);

/** Of all interfaces. */
const ownAddresses = (): readonly string[] =>
  Object.values(networkInterfaces()).flatMap((all) => (all ?? []).map(({ address }) => address));
