/** Notifications over a store in a file, with a clock that the test moves and real servers to send to. */

import { randomBytes } from 'node:crypto';
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import type { RecordedEvent } from '../../daemon/core/audit-log.js';
import type { DomainEvent, RequestContext } from '../../daemon/core/domain-event.js';
import { ALL_RIGHTS } from '../../daemon/core/rights.js';
import { TransactionalWriter } from '../../daemon/core/unit-of-work.js';
import type { OpenDatabase } from '../../daemon/database/database.js';
import { AddressPolicy, type AddressRules } from '../../daemon/notify/address-policy.js';
import type { DialOptions } from '../../daemon/notify/dial.js';
import { createNotificationQueue, createNotify, type Notify } from '../../daemon/notify/notify.js';
import { openKeyring } from '../../daemon/secrets/open-keyring.js';
import { createSecrets, type Secrets } from '../../daemon/secrets/secrets.js';
import type { Channel, ChannelType, Delivery } from '../../src/contract/channels.js';
import { event } from './audit.js';
import { ManualClock, newIds, openStore, recordingLogger, temporaryDirectory } from './database.js';
import { until } from './orch.js';

export const ADA: RequestContext = {
  rights: ALL_RIGHTS,
  actor: { id: 'ada'.padEnd(32, '0'), name: 'ada', type: 'operator' },
  requestId: 'request-1',
  address: '192.0.2.7',
};

export interface NotifyBench extends Notify {
  readonly db: OpenDatabase['db'];
  readonly clock: ManualClock;
  readonly events: RecordedEvent[];
  readonly logger: ReturnType<typeof recordingLogger>;
  readonly directory: string;
  readonly secrets: Secrets;
  /** Writes events as any part of the orchestrator does. */
  emit(...events: readonly Partial<DomainEvent>[]): Promise<void>;
  channel(type: ChannelType, config: object, name?: string): Promise<Channel>;
  /** The deliveries of a channel once they are so. */
  deliveriesOnce(id: string, condition: (all: readonly Delivery[]) => boolean): Promise<readonly Delivery[]>;
  /** Moves the clock, and lets the outbox and the absences look. */
  pass(ms: number): Promise<void>;
  maintenance(active: boolean): void;
  close(): Promise<void>;
}

export interface NotifyBenchOptions {
  /** Where an earlier one has left its files. */
  readonly directory?: string;
  readonly clock?: ManualClock;
  readonly rules?: Partial<AddressRules>;
  readonly network?: Partial<DialOptions>;
  readonly ownPorts?: readonly number[];
}

export const LOOPBACK: AddressRules = { allowNetworks: ['127.0.0.0/8'], allowHttp: false };

export async function openNotify(options: NotifyBenchOptions = {}): Promise<NotifyBench> {
  const { directory = temporaryDirectory(), clock = new ManualClock() } = options;
  const logger = recordingLogger();
  const events: RecordedEvent[] = [];
  const newId = newIds(clock);
  const store = await openStore({ file: join(directory, 'orch.db') });
  const { db } = store;
  const keyring = await openKeyring({ file: join(directory, 'secrets.key'), db, randomBytes, logger });
  let isActive = false;
  const isMaintenance = () => isActive;
  const queue = createNotificationQueue({ newId, isMaintenance });
  const uow = new TransactionalWriter({
    db,
    clock,
    newId,
    publish: (one) => void events.push(one),
    onRecorded: (tx, recorded) => queue.writer.record(tx, recorded),
    onCommitted: () => queue.committed(),
  });
  const secrets = createSecrets({ db, uow, clock, ageTime: () => clock.now(), newId, logger }, { keyring });
  const policy = new AddressPolicy({
    rules: () => ({ ...LOOPBACK, ...options.rules }),
    own: () => ({ ports: options.ownPorts ?? [], addresses: [] }),
  });
  const network = { policy, resolve: async () => ['127.0.0.1'], ...options.network };
  const cipher = secrets.channelCipher;
  const notify = createNotify(
    { db, uow, clock, ageTime: () => clock.now(), newId, logger },
    { cipher, network, queue, isMaintenance, random: () => 0 },
  );
  let isOpen = true;
  await notify.offlineWatch.start();
  await notify.outbox.start();
  return {
    ...notify,
    db,
    clock,
    events,
    logger,
    directory,
    secrets,
    emit: (...all) =>
      uow.write(async (_tx, emit) => {
        for (const one of all) emit(event(one));
      }),
    channel: async (channel_type, config, name = channel_type) =>
      (await notify.channels.create({ channel_type, name, config: { ...config } }, ADA)).body,
    deliveriesOnce: async (id, condition) => {
      let all: readonly Delivery[] = [];
      await until(async () => {
        all = await notify.channels.deliveries(id, { limit: 500 });
        return condition(all);
      }, 'the deliveries are so');
      return all;
    },
    pass: async (ms) => {
      clock.advance(ms);
      queue.outboxSignal.set();
      await notify.offlineWatch.check();
    },
    maintenance: (active) => {
      isActive = active;
    },
    close: async () => {
      if (!isOpen) return;
      isOpen = false;
      await notify.outbox.stop();
      await notify.offlineWatch.stop();
      await store.close();
    },
  };
}

/** An event of an agent whose name tries everything. */
export const apply = (change: Partial<DomainEvent> = {}): Partial<DomainEvent> => ({
  type: 'state.apply_failed',
  target: { id: 'b'.repeat(32), name: 'web-01', type: 'agent' },
  summary: 'the apply of module site on web-01 failed: 1 failed of 3',
  metadata: {
    operation_id: '01JQ2Z6T0V5X8Y4M3N7P9R1S2T',
    modules: ['site'],
    summary: { failed: 1, total: 3 },
    error_code: 'script_failed',
  },
  ...change,
});

/** A real HTTP or HTTPS server on loopback that takes what channels send, and misbehaves when asked to. */
export interface Received {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** Its reaction to a request that has arrived whole. */
export type Behaviour = (response: ServerResponse, socket: Socket) => void;

export interface Receiver {
  readonly port: number;
  /** With `127.0.0.1` as host. */
  readonly url: string;
  readonly requests: readonly Received[];
  /** Requests that have not been answered yet at the same time, at most. */
  readonly most: number;
  /** From now on. */
  answer(behaviour: Behaviour): void;
  /** Waits for so many requests. */
  has(count: number): Promise<readonly Received[]>;
  stop(): Promise<void>;
}

export const status =
  (code: number, headers: Readonly<Record<string, string>> = {}): Behaviour =>
  (response) =>
    void response.writeHead(code, headers).end('seen');

export async function startReceiver(tls?: { readonly cert: string; readonly key: string }): Promise<Receiver> {
  const requests: Received[] = [];
  const sockets = new Set<Socket>();
  let behaviour = status(200);
  let open = 0;
  let most = 0;
  const server = tls ? createSecureServer(tls) : createServer();
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => sockets.delete(socket));
  });
  server.on('request', (request, response: ServerResponse) => {
    open += 1;
    most = Math.max(most, open);
    response.on('close', () => {
      open -= 1;
    });
    const chunks: Buffer[] = [];
    request.on('error', () => undefined);
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const { method = '', url = '', headers } = request;
      requests.push({ method, path: url, headers, body: Buffer.concat(chunks).toString() });
      behaviour(response, request.socket);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const stop = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve());
      for (const socket of sockets) socket.destroy();
    });
  onTestFinished(stop);
  return {
    port,
    url: `${tls ? 'https' : 'http'}://127.0.0.1:${port}`,
    requests,
    get most() {
      return most;
    },
    answer: (next) => {
      behaviour = next;
    },
    has: async (count) => {
      await until(() => requests.length >= count, `the receiver has ${count} requests`);
      return requests;
    },
    stop,
  };
}
