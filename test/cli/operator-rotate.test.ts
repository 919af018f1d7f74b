/** `orch operator rotate` against the orchestrator's own logins, also when it is cut off at any point. */

import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { ulid } from 'ulid';
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { authHandlers, authorize, operatorHandlers } from '../../daemon/auth/auth-routes.js';
import { createApiServer } from '../../daemon/http/api-server.js';
import { authRoutes } from '../../src/contract/auth.js';
import { operatorRoutes } from '../../src/contract/operators.js';
import { publicKeyOfKeyObject } from '../../src/identity/key-object.js';
import { generateKey, loadKey, privateKeyPem, writeNewKey } from '../../src/identity/private-key.js';
import { silentLogger } from '../../src/kernel/logger.js';
import { machinesOf } from '../support/audit.js';
import { scene } from '../support/auth.js';
import { Home, runOrch } from '../support/cli.js';
import { authorizeOn, storedKeys } from '../support/http.js';

let home: Home;
beforeEach(() => {
  home = new Home();
});
afterEach(() => home.dispose());

/** An orchestrator without TLS whose first admin, alice, has a key file in this home. */
async function start() {
  const s = await scene({ serverSpki: () => null });
  const api = createApiServer({
    contract: { ...authRoutes, ...operatorRoutes },
    handlers: { ...authHandlers(s.auth), ...operatorHandlers({ ...s.auth, machines: machinesOf(s.store) }) },
    authenticate: (token) => s.sessions.authenticate(token),
    authorize,
    authorizeOn,
    idempotency: await storedKeys(),
    logger: silentLogger,
    clock: s.clock,
    newRequestId: () => ulid(),
    listen: { host: '127.0.0.1', port: 0 },
    tls: null,
    trustProxyTls: false,
    validateAnswers: true,
  });
  await api.start();
  onTestFinished(() => api.stop());
  const url = `http://127.0.0.1:${api.address().port}`;
  writeFileSync(home.file('k'), privateKeyPem(s.alice.privateKey), { mode: 0o600 });
  const run = (argv: readonly string[], env: Readonly<Record<string, string>> = {}) =>
    runOrch(argv, { env: { ...home.env, ORCH_URL: url, ORCH_KEY_FILE: home.file('k'), NO_COLOR: '1', ...env } });
  return { ...s, url, run };
}

const keyIn = (name: string) => publicKeyOfKeyObject(loadKey(home.file(name)));

describe('a rotation', () => {
  it('gives the operator a new key, and the old one logs in no more', async () => {
    const { run, alice, admin } = await start();
    expect((await run(['login'])).status).toBe(0);
    const ran = await run(['operator', 'rotate', '--yes', '--json']);
    expect(ran).toMatchObject({ status: 0, stderr: '' });
    expect(keyIn('k')).toBe(JSON.parse(ran.stdout).public_key);
    expect(keyIn('k.old')).toBe(alice.publicKey);
    expect(existsSync(home.file('k.new'))).toBe(false);
    const who = JSON.parse((await run(['operator', 'whoami', '--json'])).stdout).operator;
    expect(who).toMatchObject({ username: admin.username, role: 'admin', public_key: keyIn('k') });
    const old = await run(['login'], { ORCH_KEY_FILE: home.file('k.old'), ORCH_NO_STATE: '1' });
    expect(old).toMatchObject({ status: 4, stderr: expect.stringContaining('does not know your key') });
    const all = JSON.parse((await run(['operator', 'list', '--include-removed', '--json'])).stdout);
    expect(all).toEqual([
      expect.objectContaining({ public_key: alice.publicKey, removed_by: admin.operator_id }),
      expect.objectContaining({ public_key: keyIn('k'), added_by: admin.operator_id, removed_at: null }),
    ]);
  });

  it('asks first', async () => {
    const { run, alice } = await start();
    expect(await run(['operator', 'rotate'])).toMatchObject({ status: 64, stderr: expect.stringContaining('--yes') });
    expect(keyIn('k')).toBe(alice.publicKey);
    expect(existsSync(home.file('k.new'))).toBe(false);
  });

  it.each([
    ['before the orchestrator heard of the new key', async () => {}],
    [
      'after the orchestrator has accepted it',
      async ({ run }: Awaited<ReturnType<typeof start>>) => {
        // The rotation of the key that lies there, undone on this side only.
        expect((await run(['operator', 'rotate', '--yes'])).status).toBe(0);
        renameSync(home.file('k'), home.file('k.new'));
        renameSync(home.file('k.old'), home.file('k'));
      },
    ],
    [
      'between the two renames',
      async ({ run }: Awaited<ReturnType<typeof start>>) => {
        expect((await run(['operator', 'rotate', '--yes'])).status).toBe(0);
        renameSync(home.file('k'), home.file('k.new'));
      },
    ],
  ])('that was cut off %s goes on', async (_name, cutOff) => {
    const world = await start();
    const key = generateKey();
    writeNewKey(home.file('k.new'), key);
    await cutOff(world);
    const ran = await world.run(['operator', 'rotate', '--yes']);
    expect(ran).toMatchObject({ status: 0, stderr: expect.stringContaining('was interrupted, and goes on') });
    expect(keyIn('k')).toBe(publicKeyOfKeyObject(key));
    expect(keyIn('k.old')).toBe(world.alice.publicKey);
    expect((await world.run(['login'])).status).toBe(0);
  });

  it('leaves the key that another profile uses, and gives this profile its own with --out', async () => {
    const { run, url, alice } = await start();
    const env = { ORCH_URL: '', ORCH_KEY_FILE: '' };
    const profile = (name: string, to: string) =>
      run(['profile', 'create', name, '--url', to, '--key-file', home.file('k')], env);
    await profile('here', url);
    await profile('work', 'https://orch.work:4748');
    const refused = await run(['operator', 'rotate', '--yes'], env);
    expect(refused).toMatchObject({
      status: 64,
      stderr: expect.stringContaining('also logs in elsewhere: profile work'),
    });
    expect((await run(['operator', 'rotate', '--yes', '--out', home.file('here.key')], env)).status).toBe(0);
    expect(keyIn('k')).toBe(alice.publicKey);
    expect((await run(['operator', 'whoami'], env)).status).toBe(0);
    expect(readFileSync(home.file('.config', 'orch', 'config.yaml'), 'utf8')).toContain('here.key');
  });

  it('of a key from ORCH_KEY needs --out', async () => {
    const { run, alice } = await start();
    const ran = await run(['operator', 'rotate', '--yes'], { ORCH_KEY: privateKeyPem(alice.privateKey) });
    expect(ran).toMatchObject({ status: 64, stderr: expect.stringContaining('--out FILE') });
  });
});
