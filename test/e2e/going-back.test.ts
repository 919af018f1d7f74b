/** Going back after an upgrade: an earlier `orch serve` on the store of a later one. */
import { execFileSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, it } from 'vitest';
import { Sandbox } from '../support/orch.js';

const sandbox = new Sandbox();
afterAll(() => sandbox.dispose());

const LATER = fileURLToPath(new URL('../database/programs/migrate-further.mjs', import.meta.url));
const here = ['--data-dir', sandbox.path('serve')];

it('refuses to start, names the backup of before the migration, and starts when that is restored', async () => {
  await sandbox.orch(['operator', 'init']);
  const { server, ready } = await sandbox.serve();
  const profile = ['--url', ready.api_url, '--tls-fingerprint', ready.tls_fingerprint];
  await sandbox.orch(['profile', 'create', 'test', ...profile]);
  expect(await sandbox.orch(['secrets', 'set', 'password', '--value', 'a secret'])).toMatchObject({ status: 0 });
  await server.stop();
  const store = sandbox.path('serve', 'orch.db');
  expect(execFileSync(process.execPath, [LATER, store], { encoding: 'utf8' })).toBe('migrated\n');

  const refused = await sandbox.orch(['serve', ...here]);
  expect(refused.status).toBe(1);
  const [, backup] = /orch serve restore (\S+)/.exec(refused.stderr) ?? [];
  expect(refused.stderr).toContain('this program knows schemas up to');
  const name = readdirSync(sandbox.path('serve')).find((one) => one.startsWith('orch.db.schema-'));
  expect(backup).toBe(sandbox.path('serve', name ?? 'none'));

  const restored = await sandbox.orch(['serve', 'restore', backup ?? '', '--yes', ...here]);
  expect(restored).toMatchObject({ status: 0 });
  const again = await sandbox.serve(['--api-port', new URL(ready.api_url).port]);
  expect(await sandbox.json(['secrets', 'list'])).toMatchObject([{ name: 'password' }]);
  expect(await sandbox.orch(['audit', 'verify'])).toMatchObject({ status: 0 });
  await again.server.stop();
});
