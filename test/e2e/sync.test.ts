/** A directory of files and a real orchestrator: the example, changed, cut off and pruned. */
import { appendFileSync, cpSync, rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Assignment } from '../../src/contract/assignments.js';
import type { AuditEvent } from '../../src/contract/audit.js';
import { Sandbox } from '../support/orch.js';

const sandbox = new Sandbox();
const site = sandbox.path('site');

beforeAll(async () => {
  await sandbox.orch(['operator', 'init']);
  const { ready } = await sandbox.serve();
  const create = ['profile', 'create', 'test', '--url', ready.api_url, '--tls-fingerprint', ready.tls_fingerprint];
  expect(await sandbox.orch(create)).toMatchObject({ status: 0 });
  expect(await sandbox.orch(['profile', 'use', 'test'])).toMatchObject({ status: 0 });
  cpSync(fileURLToPath(new URL('../../examples/site', import.meta.url)), site, { recursive: true });
});
afterAll(() => sandbox.dispose());

const names = async (...words: readonly string[]) => (await sandbox.orch([...words, '-o', 'name'])).stdout.split('\n');
const sync = (...more: readonly string[]) => sandbox.orch(['sync', site, ...more]);

describe('orch sync', () => {
  it('brings the example to an empty orchestrator, and then finds nothing to do', async () => {
    const planned = await sync('--plan', '--detailed-exitcode');
    expect(planned).toMatchObject({ status: 2, stderr: '' });
    expect(planned.stdout).toContain('Plan: 4 to create; 0 unchanged.');
    expect(await names('module', 'list')).toEqual(['']);

    const done = await sync();
    expect(done).toMatchObject({ status: 0, stderr: '' });
    expect(done.stdout).toContain('Synced: 4 created; 0 unchanged.');
    expect(await names('module', 'list')).toEqual(['motd', 'web', '']);
    expect(await sandbox.json<Assignment[]>(['assignments', 'list'])).toMatchObject([
      { name: 'base', modules: ['motd'], selector: 'platform=linux', description: 'what every machine has' },
      { name: 'web', modules: ['web'], selector: 'role=web', description: null },
    ]);
    const events = (await sandbox.json<{ events: AuditEvent[] }>(['audit', 'list'])).events.length;
    expect(await sync('--detailed-exitcode')).toMatchObject({
      status: 0,
      stdout: 'Synced: nothing to do; 4 unchanged.\n',
    });
    expect((await sandbox.json<{ events: AuditEvent[] }>(['audit', 'list'])).events).toHaveLength(events);
  });

  it('changes what has changed, and deletes only with --prune', async () => {
    appendFileSync(sandbox.path('site/modules/motd.orch.yaml'), '# changed\n');
    rmSync(sandbox.path('site/modules/web.orch.yaml'));
    writeFileSync(
      sandbox.path('site/assignments.yaml'),
      'assignments:\n  - {name: base, modules: [motd], selector: "platform in (linux,macos)"}\n',
    );
    const kept = await sync();
    expect(kept.stdout).toContain('selector     platform=linux -> platform in (linux,macos)');
    expect(kept.stdout).toContain('description  what every machine has -> -');
    expect(kept.stdout).toContain('left there without --prune: assignment web, module web.');
    expect(await names('module', 'revisions', 'motd')).toEqual(['2', '1', '']);

    const refused = await sync('--prune');
    expect(refused.status).toBe(64);
    expect(refused.stderr).toContain('- assignment web, which matches 0 agents now');
    expect(await names('module', 'list')).toEqual(['motd', 'web', '']);
    expect(await sync('--prune', '--yes')).toMatchObject({ status: 0 });
    expect(await names('module', 'list')).toEqual(['motd', '']);
    expect(await names('assignments', 'list')).toEqual(['base', '']);
    expect(await sandbox.json(['assignments', 'show', 'base'])).toMatchObject({ description: null });
  });

  it('refuses every mistake at once and sends nothing', async () => {
    writeFileSync(sandbox.path('site/bad.orch.yaml'), 'name: motd\nsupports: [{platform: linux}]\nresorces: []\n');
    writeFileSync(
      sandbox.path('site/x.assignments.yaml'),
      'assignments:\n  - {name: x, modules: [a], selector: "=b"}\n',
    );
    const refused = await sync('--prune', '--yes');
    expect(refused.status).toBe(1);
    expect(refused.stderr).toMatch(/bad\.orch\.yaml:3:1: error: unknown key "resorces"; did you mean "resources"\?/);
    expect(refused.stderr).toMatch(/x\.assignments\.yaml:2:40: error: /);
    expect(await names('module', 'list')).toEqual(['motd', '']);
  });
});
