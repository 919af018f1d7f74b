/** Channels, notifications, maintenance windows, the audit log, and the documents about the API itself. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { headOf, openWire } from '../api-request.js';
import type { World } from '../world.js';

/** A webhook's receiver; `status` is what it answers with. */
async function receiver(status: number) {
  const server = createServer((request, response) => {
    request.resume();
    response.writeHead(status).end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, close: () => server.close() };
}

export async function channels(world: World): Promise<void> {
  const good = await receiver(200);
  const bad = await receiver(500);
  try {
    const body = { channel_type: 'webhook', name: 'hook', config: { url: good.url, secret: 'a' } };
    const { id } = await world.gives('createChannel', { body }, 201);
    const params = { id };
    await world.refuses('createChannel', { body: { ...body, config: { url: 'nonsense' } } }, 'invalid_body');
    await world.refuses('createChannel', { body }, 'channel_exists');
    const { id: other } = await world.gives('createChannel', { body: { ...body, name: 'other' } }, 201);
    await world.refuses('updateChannel', { params: { id: other }, body: { name: body.name } }, 'channel_exists');
    await world.gives('removeChannel', { params: { id: other } }, 204);
    await world.gives('listChannels', {}, 200);
    await world.gives('getChannel', { params }, 200);
    await world.gives('testChannel', { params }, 200);
    await world.gives('updateChannel', { params, body: { config: { url: bad.url } } }, 200);
    await world.refuses('testChannel', { params }, 'delivery_failed');
    await world.gives('listDeliveries', { params }, 200);
    await world.gives('removeChannel', { params }, 204);
    for (const route of ['getChannel', 'updateChannel', 'testChannel', 'listDeliveries', 'removeChannel']) {
      await world.refuses(route, { params, ...(route.startsWith('update') ? { body: {} } : {}) }, 'channel_not_found');
    }
  } finally {
    good.close();
    bad.close();
  }
}

export async function notifications(world: World): Promise<void> {
  const { notifications: found } = await world.gives('listNotifications', {}, 200);
  await world.gives('readNotification', { params: { id: found[0].id } }, 204);
  await world.refuses('readNotification', {}, 'notification_not_found');
  await world.gives('readAllNotifications', {}, 204);
}

export async function maintenanceWindows(world: World): Promise<void> {
  const now = Math.floor(Date.now() / 1000);
  const body = { reason: 'new disk', starts_at: now - 60, ends_at: now + 3600 };
  const { id } = await world.gives('createMaintenanceWindow', { body }, 201);
  const params = { id };
  await world.refuses('createMaintenanceWindow', { body: { ...body, selector: '=' } }, 'invalid_selector');
  const permit = { ...body, kind: 'permit', assignments: ['none'] };
  await world.refuses('createMaintenanceWindow', { body: permit }, 'assignment_not_found');
  await world.gives('listMaintenanceWindows', {}, 200);
  await world.gives('getMaintenanceWindow', { params }, 200);
  await world.gives('updateMaintenanceWindow', { params, body: { ends_at: now - 1 } }, 200);
  const later = { params, body: { ends_at: now + 3600 } };
  await world.refuses('updateMaintenanceWindow', later, 'maintenance_window_over');
  await world.gives('removeMaintenanceWindow', { params }, 204);
  await world.refuses('updateMaintenanceWindow', later, 'maintenance_window_not_found');
  for (const route of ['getMaintenanceWindow', 'removeMaintenanceWindow']) {
    await world.refuses(route, { params }, 'maintenance_window_not_found');
  }
}

export async function audit(world: World): Promise<void> {
  await world.gives('listAuditEvents', { query: { agent: 'web-01', limit: '2' } }, 200);
  await world.gives('verifyAudit', {}, 200);
  await world.refuses('verifyAudit', { query: { since: 'nonsense' } }, 'invalid_checkpoint');
  await world.gives('pruneAuditEvents', { query: { before: '2020-01-01T00:00:00Z' } }, 200);
  await world.refuses('pruneAuditEvents', { query: { before: 'nonsense' } }, 'invalid_cutoff');
  await world.gives('setAuditRetention', { body: { retention_days: 30 } }, 200);
  await world.gives('getAuditRetention', {}, 200);
  await world.gives('streamEvents', { query: { after: '2020-01-01T00:00:00Z' }, hangsUp: true }, 200);
  await world.refuses('listAuditEvents', { query: { cursor: 'nonsense' } }, 'invalid_cursor');
  await world.refuses('streamEvents', { headers: { 'last-event-id': 'nonsense' } }, 'invalid_cursor');
  for (const id of ['listAuditEvents', 'streamEvents']) {
    await world.refuses(id, { query: { after: 'nonsense' } }, 'invalid_filter');
  }
}

/** More readers of the audit log than one operator may have, which leave room for everyone else. */
export async function manyReaders(world: World): Promise<void> {
  const head = headOf('GET', '/api/v1/events', { host: 'orch', authorization: `Bearer ${world.tokenOf('viewer')}` });
  const readers = await Promise.all(Array.from({ length: 300 }, () => openWire(world.base)));
  for (const reader of readers) reader.write(`${head}\r\n`);
  try {
    let status = 200;
    for (let tries = 0; tries < 100 && status !== 429; tries += 1) {
      ({ status } = await world.call('streamEvents', { as: 'viewer', hangsUp: true }));
    }
    if (status !== 429) throw new Error('300 readers of one operator are not enough');
    for (const as of ['operator', 'admin'] as const) await world.gives('streamEvents', { as, hangsUp: true }, 200);
  } finally {
    for (const reader of readers) reader.close();
  }
}

export async function documents(world: World): Promise<void> {
  for (const id of ['getStatus', 'getOpenApi', 'getApiPage', 'getModuleSchema'])
    await world.gives(id, { as: null }, 200);
}
