/** Sends discovery packets when an operator asks: to every network of this machine, or to one agent. */
import { type KeyObject, sign } from 'node:crypto';
import { isIPv6 } from 'node:net';
import type { discoveryRoutes } from '../../src/contract/discovery.js';
import { Fault, messageOf } from '../../src/kernel/fault.js';
import type { PublicKeyHex } from '../../src/kernel/ids.js';
import { DISCOVERY_PORT } from '../../src/kernel/ports.js';
import { DISCOVERY, encodePacket, isDiscoveryHost, signedBytes } from '../../src/wire/discovery-packet.js';
import type { Core } from '../core/core.js';
import { eventOfRequest, type RequestContext, SYSTEM } from '../core/domain-event.js';
import type { HandlersFor } from '../http/handler.js';
import type { DiscoveryNetwork, DiscoveryTarget, PacketChannel } from './discovery-network.js';
import { type AgentPlace, broadcastRoutes, hostOf } from './route-of-packet.js';
import { systemNetwork } from './system-network.js';

interface DiscoveryOptions extends Pick<Core, 'clock' | 'logger' | 'uow'> {
  readonly network: DiscoveryNetwork;
  readonly publicKey: PublicKeyHex;
  /** Returns the Ed25519 signature in hex. */
  readonly sign: (message: Uint8Array) => string;
  /** Returns the current address of the agent port. */
  readonly place: () => AgentPlace & { readonly port: number };
}

/**
 * Creates discovery over the networks of this machine.
 * @param own `address` returns the address that the agent port listens on
 */
export function createDiscovery(
  core: Pick<Core, 'clock' | 'logger' | 'settings' | 'uow'>,
  own: {
    readonly privateKey: KeyObject;
    readonly publicKey: PublicKeyHex;
    readonly address: () => { readonly host: string; readonly port: number };
  },
): Discovery {
  return new Discovery({
    ...core,
    ...own,
    network: systemNetwork,
    sign: (message) => sign(null, message, own.privateKey).toString('hex'),
    place: () => {
      const { host, port } = own.address();
      return { listening: host, advertised: core.settings().advertised_host, port };
    },
  });
}

interface OpenRoute {
  readonly channel: PacketChannel;
  /** Destination as shown in the answer. */
  readonly target: string;
  readonly names: string;
}

/** Minimum milliseconds between two requests. */
const PAUSE = 1_000;

export class Discovery {
  private readonly options: DiscoveryOptions;
  /** Time of the last request on the monotonic clock. */
  private last = Number.NEGATIVE_INFINITY;

  constructor(options: DiscoveryOptions) {
    this.options = options;
  }

  /**
   * Sends packets and returns their destinations. Throws `invalid_body`, `rate_limited`, or `discovery_failed` when
   * no packet was sent.
   * @param target `HOST:PORT` of one agent; null for every network
   */
  async send(target: string | null, context: RequestContext): Promise<readonly string[]> {
    const only = target === null ? null : parseDiscoveryTarget(target);
    this.take();
    const routes = only === null ? await this.openAll() : [await this.openOne(only)];
    try {
      const packets = routes.map((route) => ({ route, packet: this.packetFor(route.names) }));
      await this.record(routes, context);
      const failed: unknown[] = [];
      const sent: string[] = [];
      for (const { route, packet } of packets) {
        await route.channel.send(packet).then(
          () => sent.push(route.target),
          (error: unknown) => failed.push(error),
        );
      }
      if (sent.length === 0) throw discoveryFailed(failed);
      return sent;
    } finally {
      for (const { channel } of routes) channel.close();
    }
  }

  private take(): void {
    const now = this.options.clock.monotonic();
    if (now - this.last < PAUSE) {
      throw new Fault('rate_limited', 'a discovery packet was sent within the last second', {
        hint: 'try again in a second',
        data: { retry_after: 1 },
      });
    }
    this.last = now;
  }

  private async openAll(): Promise<readonly OpenRoute[]> {
    const { network, place, logger } = this.options;
    const open: OpenRoute[] = [];
    const failed: unknown[] = [];
    for (const route of broadcastRoutes(network.interfaces(), place())) {
      try {
        const channel = await network.broadcast(route);
        open.push({ channel, target: placeText(route), names: route.names });
      } catch (error) {
        logger.debug('no discovery packet on an interface', { from: route.from, reason: messageOf(error) });
        failed.push(error);
      }
    }
    if (open.length === 0) throw discoveryFailed(failed);
    return open;
  }

  private async openOne(target: DiscoveryTarget): Promise<OpenRoute> {
    const { network, place } = this.options;
    const channel = await network.unicast(target).catch((error: unknown) => Promise.reject(discoveryFailed([error])));
    const names = hostOf(place(), channel.from);
    if (names !== null) return { channel, target: placeText(target), names };
    channel.close();
    const { listening } = place();
    throw new Fault(
      'discovery_failed',
      `${placeText(target)} could not connect: the agent port listens on ${listening} only`,
      { hint: 'set agent_host to an address that agents reach, or to ::, or set advertised_host' },
    );
  }

  private packetFor(host: string): Buffer {
    const { publicKey, clock, sign, place } = this.options;
    const announcement = { publicKey, host, port: place().port, timestamp: clock.now() };
    const packet = encodePacket({ ...announcement, signature: sign(signedBytes(announcement)) });
    if (isDiscoveryHost(host) && packet.length <= DISCOVERY.maxBytes) return packet;
    throw new Fault('discovery_failed', `${JSON.stringify(host)} cannot be named in a discovery packet`, {
      hint: 'set advertised_host to an address, or to a name of ASCII letters, digits, "-" and "." that is not as long',
    });
  }

  private async record(routes: readonly OpenRoute[], context: RequestContext): Promise<void> {
    const targets = routes.map(({ target }) => target);
    await this.options.uow.write(async (_, emit) => {
      emit(
        eventOfRequest(context, {
          type: 'orchestrator.discovery_sent',
          target: SYSTEM,
          summary: `${context.actor.name} sent a discovery packet to ${targets.join(', ').slice(0, 400)}`,
          metadata: { targets, names: [...new Set(routes.map(({ names }) => names))] },
        }),
      );
    });
  }
}

function discoveryFailed(causes: readonly unknown[]): Fault {
  const why = [...new Set(causes.map(messageOf))].join('; ') || 'this machine has no network that agents could be on';
  return new Fault('discovery_failed', `no discovery packet was sent: ${why}`, { cause: causes[0] });
}

/** Handler of the discovery route. */
export const discoveryHandlers = (discovery: Discovery): HandlersFor<typeof discoveryRoutes> => ({
  discover: async ({ body, context }) => {
    const targets = await discovery.send(body.target ?? null, context);
    return { status: 200, body: { sent: true, targets: [...targets] } };
  },
});

const BRACKETED = /^\[([0-9A-Fa-f:.]+(?:%[A-Za-z0-9_.-]{1,32})?)\]:(\d{1,5})$/;
const PLAIN = /^([A-Za-z0-9](?:[A-Za-z0-9._-]{0,251}[A-Za-z0-9.])?):(\d{1,5})$/;

/** Parses `HOST:PORT` or `[IPv6]:PORT`. Throws `invalid_body`. */
export function parseDiscoveryTarget(text: string): DiscoveryTarget {
  const bracketed = BRACKETED.exec(text);
  const [, host = '', port] = bracketed ?? PLAIN.exec(text) ?? [];
  const isHost = bracketed === null ? host !== '' : isIPv6(host);
  if (isHost && Number(port) >= 1 && Number(port) <= 65_535) return { host, port: Number(port) };
  const message = `must be host:port of one agent, such as 10.0.0.7:${DISCOVERY_PORT} or [2001:db8::7]:${DISCOVERY_PORT}`;
  throw new Fault('invalid_body', `the body is not valid: /target ${message}`, {
    errors: [{ path: '/target', message }],
  });
}

/** Formats `host:port`, with brackets around an IPv6 address. */
const placeText = ({ host, port }: DiscoveryTarget): string =>
  host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
