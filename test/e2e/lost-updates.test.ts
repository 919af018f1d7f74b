/** Two operators change one record: the write that was read before the other's change is refused, and undoes nothing. */
import { readFileSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Assignment } from '../../src/contract/assignments.js';
import { type Ready, Sandbox } from '../support/orch.js';

const sandbox = new Sandbox();
let ready: Ready;
let token = '';

beforeAll(async () => {
  await sandbox.orch(['operator', 'init']);
  ({ ready } = await sandbox.serve());
  const create = ['profile', 'create', 'test', '--url', ready.api_url, '--tls-fingerprint', ready.tls_fingerprint];
  expect(await sandbox.orch(create)).toMatchObject({ status: 0 });
  expect(await sandbox.orch(['profile', 'use', 'test'])).toMatchObject({ status: 0 });
  await sandbox.json(['agents', 'list']);
  const state = readFileSync(sandbox.path('state/orch/tokens/profile-test.json'), 'utf8');
  ({ token } = JSON.parse(state) as { token: string });
});
afterAll(() => sandbox.dispose());

interface Answer {
  readonly status: number;
  readonly etag: string | undefined;
  readonly body: Record<string, unknown>;
}

/** Sends a request with the session of the command line. */
function send(method: string, path: string, body?: unknown, ifMatch?: string): Promise<Answer> {
  const headers = {
    authorization: `Bearer ${token}`,
    ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    ...(ifMatch === undefined ? {} : { 'if-match': ifMatch }),
  };
  return new Promise((resolve, reject) => {
    const sent = request(`${ready.api_url}/api/v1${path}`, { method, headers, rejectUnauthorized: false });
    sent.on('error', reject);
    sent.on('response', (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk) => {
        text += chunk;
      });
      response.on('end', () =>
        resolve({
          status: response.statusCode ?? 0,
          etag: response.headers.etag,
          body: text === '' ? {} : (JSON.parse(text) as Record<string, unknown>),
        }),
      );
    });
    sent.end(body === undefined ? undefined : JSON.stringify(body));
  });
}

const module = (content: string) => `name: site
supports: [{platform: linux}]
resources:
  - resource:
      file-unix: {path: ${sandbox.path('file')}, content: ${content}}
`;

/** Something that can be replaced: how it is made, and different changes of it. */
const THINGS: readonly (readonly [what: string, make: () => Promise<string>, change: (number: number) => object])[] = [
  [
    'an assignment',
    async () => {
      await send('POST', '/modules', { name: 'site', content: module('one') });
      await send('POST', '/assignments', { name: 'web', modules: ['site'], selector: 'role=web' });
      return '/assignments/web';
    },
    (number) => ({ selector: `role=${number}` }),
  ],
  [
    'a secret',
    async () => {
      await send('POST', '/secrets', { name: 'TOKEN', value: 'the first value' });
      return '/secrets/TOKEN';
    },
    (number) => ({ value: `the value ${number}` }),
  ],
  [
    'a channel',
    async () => {
      const config = { url: 'https://hooks.example.org/x', secret: 'correct horse battery' };
      const { body } = await send('POST', '/channels', { channel_type: 'webhook', name: 'ops', config });
      return `/channels/${body.id}`;
    },
    (number) => ({ config: { url: 'https://hooks.example.org/x', secret: `correct horse battery ${number}` } }),
  ],
  [
    'a maintenance window',
    async () => {
      const now = Math.floor(Date.now() / 1_000);
      const window = { reason: 'disks', starts_at: now + 600, ends_at: now + 1_200 };
      const { body } = await send('POST', '/maintenance-windows', window);
      return `/maintenance-windows/${body.id}`;
    },
    (number) => ({ reason: `disk ${number}` }),
  ],
  ['the retention of the audit log', async () => '/audit/retention', (number) => ({ retention_days: 30 + number })],
];

describe.each(THINGS)('%s', (_what, make, change) => {
  it('is changed only as it was read, with If-Match', async () => {
    const path = await make();
    const { etag: read = '' } = await send('GET', path);
    expect(read).toMatch(/^"[0-9a-f]{32}"$/);
    const first = await send('PUT', path, change(1), read);
    expect(first.status).toBe(200);
    const second = await send('PUT', path, change(2), read);
    expect(second).toMatchObject({ status: 412, body: { code: 'precondition_failed' } });
    const now = await send('GET', path);
    expect(now.etag).toBe(first.etag);
    expect(now.etag).not.toBe(read);
    expect(await send('PUT', path, change(2), `"of-another", ${now.etag}`)).toMatchObject({ status: 200 });
    expect(await send('PUT', path, change(3), '*')).toMatchObject({ status: 200 });
    expect(await send('PUT', path, change(4), `W/${(await send('GET', path)).etag}`)).toMatchObject({ status: 412 });
    expect(await send('PUT', path, change(4), 'no-quotes')).toMatchObject({ status: 400 });
  });

  it('is changed by one of those who read the same', async () => {
    const path = await make();
    const { etag } = await send('GET', path);
    const racers = await Promise.all(
      Array.from({ length: 6 }, (_, number) => send('PUT', path, change(10 + number), etag)),
    );
    expect(racers.map(({ status }) => status).sort()).toEqual([200, 412, 412, 412, 412, 412]);
  });
});

describe('If-Match', () => {
  it('protects from deleting a record that was changed', async () => {
    const { etag } = await send('GET', '/assignments/web');
    await send('PUT', '/assignments/web', { description: 'needed again' });
    expect(await send('DELETE', '/assignments/web', undefined, etag)).toMatchObject({ status: 412 });
    expect(await send('GET', '/assignments/web')).toMatchObject({ status: 200 });
  });

  it('is refused where it cannot be checked', async () => {
    const refused = await send('POST', '/assignments/web/resume', undefined, '"x"');
    expect(refused).toMatchObject({ status: 400, body: { code: 'bad_request' } });
    expect(refused.body.detail).toContain('If-Match cannot be checked');
  });
});

describe('a name that people take for another', () => {
  const refusedLike = (name: string) => ({ status: 409, body: { detail: expect.stringContaining(`"${name}"`) } });

  it('is refused for assignments, secrets and channels, and reported for modules', async () => {
    const web = { modules: ['site'], selector: 'role=web' };
    expect(await send('POST', '/assignments', { ...web, name: 'WEB' })).toMatchObject(refusedLike('web'));
    expect(await send('POST', '/secrets', { name: 'T0KEN', value: 'x' })).toMatchObject(refusedLike('TOKEN'));
    const channel = { channel_type: 'webhook', config: { url: 'https://hooks.example.org/x' } };
    const other = await send('POST', '/channels', { ...channel, name: 'other' });
    expect(await send('POST', '/channels', { ...channel, name: 'оps' })).toMatchObject(refusedLike('ops'));
    expect(await send('PUT', `/channels/${other.body.id}`, { name: 'Ops' })).toMatchObject(refusedLike('ops'));
    expect(await send('PUT', `/channels/${other.body.id}`, { name: 'Other' })).toMatchObject({ status: 200 });
    const content = 'name: Site\nsupports: [{platform: linux}]\nresources: []\n';
    const { status, body } = await send('POST', '/modules', { name: 'Site', content });
    expect([status, body.warnings]).toEqual([
      201,
      [{ path: '/name', line: 1, column: 7, message: 'the name looks like that of the module "site"' }],
    ]);
  });
});

describe('orch', () => {
  it('shows what an edit replaces', async () => {
    await send('PUT', '/assignments/web', { selector: 'role=web', description: 'shop' });
    const edited = await sandbox.orch(['assignments', 'edit', 'web', '--selector', 'role=db', '--description', '']);
    expect(edited).toMatchObject({ status: 0, stderr: '' });
    expect(edited.stdout).toBe(
      'selector: role=web -> role=db\ndescription: shop -> -\n' +
        'Changed assignment web. Preview the changes with: orch plan --assignment web\n',
    );
  });

  it('names who uploaded the revision that a sync replaces', async () => {
    const site = sandbox.path('site.orch.yaml');
    writeFileSync(site, module('mine'));
    const planned = await sandbox.orch(['sync', sandbox.root, '--plan']);
    expect(planned.stdout + planned.stderr).toMatch(/replaces revision 1, uploaded by \S+ /);
    expect(await sandbox.json<readonly Assignment[]>(['assignments', 'list'])).toHaveLength(1);
  });
});
