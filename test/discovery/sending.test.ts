/** Discovery packets over real sockets of this machine. */
import { sign } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { ulid } from 'ulid';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { RecordedEvent } from '../../daemon/core/audit-log.js';
import { TransactionalWriter } from '../../daemon/core/unit-of-work.js';
import { Discovery, discoveryHandlers } from '../../daemon/discovery/discovery.js';
import type { DiscoveryNetwork } from '../../daemon/discovery/discovery-network.js';
import type { AgentPlace } from '../../daemon/discovery/route-of-packet.js';
import { systemNetwork } from '../../daemon/discovery/system-network.js';
import { createApiServer } from '../../daemon/http/api-server.js';
import { discoveryRoutes } from '../../src/contract/discovery.js';
import { verifySignature } from '../../src/identity/proof-of-key.js';
import { silentLogger } from '../../src/kernel/logger.js';
import { packetDecoder, signedBytes } from '../../src/wire/discovery-packet.js';
import { ManualClock, newIds, openStore, rejection } from '../support/database.js';
import { authenticate, authorize, authorizeOn, clock as realClock, send, storedKeys } from '../support/http.js';
import { newIdentity } from '../support/identity.js';
import { ADA } from '../support/maintenance.js';

const identity = newIdentity();

interface Options {
  readonly place?: Partial<AgentPlace>;
  readonly network?: Partial<DiscoveryNetwork>;
}

async function openDiscovery({ place, network }: Options = {}) {
  const clock = new ManualClock();
  const events: RecordedEvent[] = [];
  const { db } = await openStore();
  const uow = new TransactionalWriter({
    db,
    clock,
    newId: newIds(clock),
    publish: (event) => events.push(event),
  });
  const discovery = new Discovery({
    uow,
    clock,
    logger: silentLogger,
    network: { ...systemNetwork, ...network },
    publicKey: identity.publicKey,
    sign: (message) => sign(null, message, identity.privateKey).toString('hex'),
    place: () => ({ listening: '127.0.0.1', advertised: '', port: 4747, ...place }),
  });
  return { discovery, clock, events };
}

/** An agent's UDP port on this machine. */
async function openPort() {
  const socket = createSocket('udp4');
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  onTestFinished(() => void socket.close());
  return {
    target: `127.0.0.1:${socket.address().port}`,
    next: async (): Promise<Buffer> => (await once(socket, 'message'))[0],
  };
}

describe('a discovery packet', () => {
  it('reaches one agent, signed, and is audited before', async () => {
    const { discovery, clock, events } = await openDiscovery();
    const { target, next } = await openPort();
    const heard = next();
    expect(await discovery.send(target, ADA)).toEqual([target]);
    const packet = packetDecoder()(await heard);
    if (packet === null) throw new Error('no packet');
    expect(packet).toMatchObject({
      publicKey: identity.publicKey,
      host: '127.0.0.1',
      port: 4747,
      timestamp: clock.now(),
    });
    expect(verifySignature(identity.publicKey, signedBytes(packet), packet.signature)).toBe(true);
    expect(events).toMatchObject([
      {
        type: 'orchestrator.discovery_sent',
        actor: ADA.actor,
        metadata: { targets: [target], names: ['127.0.0.1'], request_id: ADA.requestId },
      },
    ]);
  });

  it('names what is advertised', async () => {
    const { discovery } = await openDiscovery({ place: { advertised: 'orch.example.org' } });
    const { target, next } = await openPort();
    const heard = next();
    await discovery.send(target, ADA);
    expect(packetDecoder()(await heard)).toMatchObject({ host: 'orch.example.org' });
  });

  it('goes to all networks of the agent port', async () => {
    const { discovery, events } = await openDiscovery();
    const targets = await discovery.send(null, ADA);
    expect(targets).toContain('127.255.255.255:4747');
    expect(events[0]?.metadata.targets).toEqual(expect.arrayContaining([...targets]));
  });

  it('is sent at most once a second', async () => {
    const { discovery, clock, events } = await openDiscovery();
    const { target } = await openPort();
    await discovery.send(target, ADA);
    clock.advance(999);
    expect(await rejection(discovery.send(target, ADA))).toMatchObject({
      code: 'rate_limited',
      data: { retry_after: 1 },
    });
    expect((await rejection(discovery.send('nonsense', ADA))).code).toBe('invalid_body');
    clock.advance(1);
    await discovery.send(target, ADA);
    expect(events).toHaveLength(2);
  });
});

describe('nothing is sent, and nothing audited', () => {
  it.each([
    ['to an unknown host', 'nobody.invalid:4747', {}],
    ['to a group', '224.0.0.1:4747', {}],
    ['to every machine', '255.255.255.255:4747', {}],
    ['to the broadcast address of a network', '127.255.255.255:4747', {}],
    ['to a group of IPv6', '[ff02::1%lo]:4747', {}],
    ['of a port that the agent could not reach', '[::1]:4747', { listening: '0.0.0.0' }],
    ['that would be too large', '127.0.0.1:4747', { advertised: `${'a'.repeat(200)}.org` }],
    ['that names a host of other letters', '127.0.0.1:4747', { advertised: 'örch.example.org' }],
  ])('%s', async (_what, target, place) => {
    const { discovery, events } = await openDiscovery({ place });
    expect((await rejection(discovery.send(target, ADA))).code).toBe('discovery_failed');
    expect(events).toEqual([]);
  });

  it('without a network', async () => {
    const { discovery, events } = await openDiscovery({ network: { interfaces: () => [] } });
    expect(await rejection(discovery.send(null, ADA))).toMatchObject({
      code: 'discovery_failed',
      message: 'no discovery packet was sent: this machine has no network that agents could be on',
    });
    expect(events).toEqual([]);
  });
});

it('POST /discover sends, says where to, and is refused to viewers and twice in a second', async () => {
  const { discovery, clock } = await openDiscovery();
  const { target, next } = await openPort();
  const api = createApiServer({
    contract: discoveryRoutes,
    handlers: discoveryHandlers(discovery),
    authenticate,
    authorize,
    authorizeOn,
    idempotency: await storedKeys(),
    logger: silentLogger,
    clock: realClock,
    newRequestId: ulid,
    listen: { host: '127.0.0.1', port: 0 },
    tls: null,
    trustProxyTls: false,
    validateAnswers: true,
  });
  await api.start();
  onTestFinished(() => api.stop());
  const post = (body: unknown, token = 'operator') => send(api, 'POST', '/api/v1/discover', { token, body });
  expect(await post({ target }, 'viewer')).toMatchObject({ status: 403 });
  expect(await post({ target: '10.0.0.7' })).toMatchObject({ status: 400, json: { errors: [{ path: '/target' }] } });
  const heard = next();
  expect(await post({ target })).toMatchObject({ status: 200, json: { sent: true, targets: [target] } });
  await heard;
  const refused = await post({ target });
  expect(refused).toMatchObject({ status: 429, json: { code: 'rate_limited' } });
  expect(refused.headers['retry-after']).toBe('1');
  clock.advance(1000);
  expect(await post(undefined)).toMatchObject({ status: 200, json: { sent: true } });
  clock.advance(1000);
  expect(await post({ target: null })).toMatchObject({ status: 200 });
  clock.advance(1000);
  expect(await post({ target: 'nobody.invalid:1' })).toMatchObject({ status: 500, json: { code: 'discovery_failed' } });
});
