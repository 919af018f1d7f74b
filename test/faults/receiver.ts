/** Receives the notifications of a fleet, outside of what faults reach, and finds those that were lost. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Channel, Delivery } from '../../src/contract/channels.js';
import type { NotificationList } from '../../src/contract/notifications.js';
import type { World } from '../api/world.js';
import { until } from '../support/orch.js';

const CHANNEL = 'receiver';
const PAGE = { limit: '500' };

export class Receiver {
  /** Bodies by the ID of their notification. */
  private readonly received = new Map<string, string>();
  /** Notifications that are older than the channel. */
  private readonly earlier = new Set<string>();
  private readonly violations: string[] = [];
  private readonly server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      this.note(String(request.headers['webhook-id']), Buffer.concat(chunks).toString());
      response.writeHead(204).end();
    });
    request.on('error', () => undefined);
  });

  /** Number of notifications received, each counted once. */
  get count(): number {
    return this.received.size;
  }

  /** Listens, and makes the channel that all notifications go to. */
  async begin(world: World): Promise<void> {
    await new Promise<void>((resolve) => this.server.listen(0, '127.0.0.1', resolve));
    const { port } = this.server.address() as AddressInfo;
    const config = { url: `http://127.0.0.1:${port}/` };
    await world.gives('createChannel', { body: { name: CHANNEL, channel_type: 'webhook', config } }, 201);
    for (const { id } of await notificationsOf(world)) this.earlier.add(id);
  }

  /** Returns a sentence for each notification that has no delivery, and each delivery that was lost. */
  async check(world: World): Promise<readonly string[]> {
    const deliveries = await this.deliveries(world);
    const has = new Set(deliveries.map(({ notification_id }) => notification_id));
    const notifications = (await notificationsOf(world)).filter(({ id }) => !this.earlier.has(id));
    // The page of deliveries is as long as the other, and may end earlier.
    const compared = deliveries.length < Number(PAGE.limit) ? notifications : notifications.slice(0, 100);
    return [
      ...this.violations.splice(0),
      ...compared
        .filter(({ id, event_type }) => event_type !== 'channel.delivery_failed' && !has.has(id))
        .map(({ summary }) => `the notification "${summary}" has no delivery`),
      ...deliveries
        .filter(({ state, notification_id: id }) => state === 'delivered' && !this.received.has(id))
        .map(({ summary }) => `the notification "${summary}" counts as delivered and was not received`),
      ...deliveries
        .filter(({ state }) => state === 'failed' || state === 'suppressed')
        .map(({ summary, state, error }) => `the delivery of "${summary}" is ${state}: ${error}`),
    ];
  }

  /** Waits until nothing is left to be sent. A delivery whose outcome could not be stored is tried again after half a minute. */
  async drained(world: World): Promise<void> {
    const isDrained = async () => (await this.deliveries(world)).every(({ state }) => state !== 'pending');
    await until(isDrained, 'half of the notifications are delivered', 500).catch(() =>
      until(isDrained, 'every notification is delivered', 500),
    );
  }

  dispose(): void {
    this.server.closeAllConnections();
    this.server.close();
  }

  private async deliveries(world: World): Promise<readonly Delivery[]> {
    const channels: readonly Channel[] = await world.gives('listChannels', {}, 200);
    const id = channels.find(({ name }) => name === CHANNEL)?.id ?? CHANNEL;
    return world.gives('listDeliveries', { params: { id }, query: PAGE }, 200);
  }

  /** A notification may come twice when its outcome was not stored, and is the same then. */
  private note(id: string, body: string): void {
    const earlier = this.received.get(id);
    if (earlier !== undefined && earlier !== body)
      this.violations.push(`the notification ${id} came as ${earlier}${body}`);
    this.received.set(id, body);
  }
}

async function notificationsOf(world: World): Promise<NotificationList['notifications']> {
  return (await world.gives('listNotifications', { query: PAGE }, 200)).notifications;
}
