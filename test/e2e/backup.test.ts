/** Backups from the outside, with real processes: made under load, restored here and elsewhere, refused, cut off. */

import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chownSync,
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import type { Database } from 'better-sqlite3';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { Agent } from '../../src/contract/agents.js';
import type { Assignment } from '../../src/contract/assignments.js';
import type { AuditEvent, AuditVerification } from '../../src/contract/audit.js';
import type { Rollout, RolloutDetail } from '../../src/contract/rollouts.js';
import type { TerminalSession } from '../../src/contract/terminal.js';
import { Sqlite } from '../support/database.js';
import { type Ready, type Running, Sandbox, until } from '../support/orch.js';
import { TEST_SHELL } from '../support/test-shell.js';

// Some of these start a dozen processes.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

const sandbox = new Sandbox();
const data = sandbox.path('serve');
const store = join(data, 'orch.db');
const file = sandbox.path('site.conf');
const backup = sandbox.path('backup.db');
let server: Running;
let agent: Running | null = null;
let ready: Ready;

interface Made {
  readonly file: string;
  readonly bytes: number;
  readonly sha256: string;
  readonly last_seq: number;
  readonly keys: readonly string[];
}

const orch = (...args: readonly string[]) => sandbox.orch(args);
const done = async (...args: readonly string[]) => {
  const finished = await orch(...args);
  if (finished.status !== 0)
    throw new Error(`orch ${args.join(' ')} ended with ${finished.status}:\n${finished.stderr}`);
  return finished;
};
const here = ['--data-dir', data];
const makeBackup = (path: string) => sandbox.json<Made>(['serve', 'backup', path, ...here]);
const sha256 = (path: string) => createHash('sha256').update(readFileSync(path)).digest('hex');
const connected = async () => (await sandbox.json<Agent[]>(['agents', 'list'])).some((one) => one.connected);
const events = async (type: string) =>
  (await sandbox.json<{ events: readonly AuditEvent[] }>(['audit', '--type', type])).events;
const verify = async () => (await orch('audit', 'verify')).status;

/** On the ports of the first start, so that the agent and the profile find it again. */
async function serve(...args: readonly string[]): Promise<void> {
  const ports = ready
    ? ['--api-port', new URL(ready.api_url).port, '--agent-port', ready.agent_address.split(':').at(-1) as string]
    : [];
  ({ server, ready } = await sandbox.serve([...ports, ...args]));
}

/** A new process: one that was refused for a while waits before it tries again. */
async function startAgent(): Promise<void> {
  await agent?.stop();
  const config = sandbox.path('agent.yaml');
  writeFileSync(config, `remote_terminal:\n  enabled: true\n  shell: ${TEST_SHELL}\n`, { mode: 0o600 });
  const key = ['--orchestrator-key', ready.public_key, '--data-dir', sandbox.path('agent'), '--config', config];
  agent = sandbox.start(['agent', 'connect', ready.agent_address, ...key]);
}

async function agentBack(): Promise<void> {
  await startAgent();
  await until(connected, 'the agent is connected');
}

/** Writes the file with another text, by an apply. */
async function apply(content: string) {
  const text = `name: site\nsupports:\n  - platform: linux\nresources:\n  - resource:\n      file-unix: {path: ${file}, content: "${content}"}\n`;
  const path = sandbox.path('site.orch.yaml');
  writeFileSync(path, text);
  await done('module', 'publish', path);
  return orch('apply', 'web-01', '-m', 'site', '--yes');
}

/** Everything in the data directory that a refused restore must leave alone. */
const contents = () =>
  Object.fromEntries(
    readdirSync(data)
      .filter((name) => statSync(join(data, name)).isFile())
      .map((name) => [name, sha256(join(data, name))]),
  );

function changed(change: (connection: Database) => void, name: string): string {
  const path = sandbox.path(name);
  copyFileSync(backup, path);
  const connection = new Sqlite(path);
  change(connection);
  connection.close();
  return path;
}

beforeAll(async () => {
  await done('operator', 'init');
  await serve();
  await done('profile', 'create', 'test', '--url', ready.api_url, '--tls-fingerprint', ready.tls_fingerprint);
  await done('profile', 'use', 'test');
  await startAgent();
  await until(async () => (await sandbox.json<Agent[]>(['agents', 'list'])).length === 1, 'the agent waits');
  const [waiting] = await sandbox.json<Agent[]>(['agents', 'list']);
  await done('agents', 'approve', waiting?.node_id ?? '', '--name', 'web-01', '--yes');
  await until(connected, 'the agent is connected');
  await sandbox.orch(['secrets', 'set', 'TOKEN', '-'], { input: 'a value\n' });
  expect((await apply('one')).status).toBe(0);
});

afterAll(() => sandbox.dispose());

describe('orch serve backup', () => {
  it('copies the store while others write, checked, private, and in the audit log', async () => {
    let writing = true;
    const writer = (async () => {
      let days = 10;
      while (writing) {
        days += 1;
        await done('audit', 'retention', 'set', String(days));
      }
      return days;
    })();
    const first = await makeBackup(sandbox.path('under-load.db'));
    const second = await makeBackup(backup);
    writing = false;
    await writer;
    expect(second.last_seq).toBeGreaterThan(first.last_seq);
    expect(second).toMatchObject({ file: backup, bytes: statSync(backup).size, sha256: sha256(backup) });
    expect(second.keys).toEqual(['identity', 'audit', 'secrets', 'api'].map((name) => join(data, `${name}.key`)));
    expect(statSync(backup).mode & 0o7777).toBe(0o600);
    expect(readdirSync(sandbox.root).filter((name) => name.startsWith('backup.db'))).toEqual(['backup.db']);
    const copy = new Sqlite(backup, { readonly: true });
    expect(copy.pragma('integrity_check', { simple: true })).toBe('ok');
    copy.close();
    const told = await events('orchestrator.backed_up');
    expect(told).toMatchObject([
      { actor: { type: 'system' }, metadata: { file: backup, sha256: second.sha256, bytes: second.bytes } },
      { metadata: { sha256: first.sha256 } },
    ]);
  });

  it('holds no private key', () => {
    const bytes = readFileSync(backup).toString('latin1');
    for (const name of ['identity.key', 'audit.key', 'secrets.key', 'api.key']) {
      const lines = readFileSync(join(data, name), 'latin1').split('\n');
      for (const line of lines.filter((one) => one.length > 40 && !one.startsWith('-')))
        expect(bytes).not.toContain(line);
    }
  });

  it('says what is not in it', async () => {
    const { stdout } = await done('serve', 'backup', sandbox.path('told.db'), ...here);
    expect(stdout).toContain(`Backed up to ${sandbox.path('told.db')}`);
    expect(stdout).toContain('with both all secrets can be read');
    expect(stdout).toContain(`${join(data, 'secrets.key')}: without it, the secrets`);
  });

  it.each([
    ['a file that is there', () => backup, 64, 'backup.db exists already\n  hint: choose another name'],
    ['a directory', () => sandbox.path('agent'), 64, 'and is not a regular file'],
    ['a place beside the store', () => join(data, 'copy.db'), 64, 'is in the data directory itself'],
    ['a directory that is not there', () => sandbox.path('no', 'copy.db'), 6, 'its directory does not exist'],
  ])('refuses %s', async (_what, path, status, message) => {
    const before = sha256(backup);
    const refused = await orch('serve', 'backup', path(), ...here);
    expect([refused.status, refused.stderr]).toEqual([status, expect.stringContaining(message)]);
    expect(sha256(backup)).toBe(before);
  });

  it('replaces a file with --force, but never the store itself', async () => {
    const path = sandbox.path('told.db');
    const before = sha256(path);
    await done('serve', 'backup', path, '--force', ...here);
    expect(sha256(path)).not.toBe(before);
    const refused = await orch('serve', 'backup', store, '--force', ...here);
    expect([refused.status, refused.stderr]).toEqual([64, expect.stringContaining('in the data directory itself')]);
  });

  it('clears away what one that was cut off has left, and nothing else', async () => {
    const path = sandbox.path('again.db');
    mkdirSync(`${path}.partial`);
    writeFileSync(join(`${path}.partial`, 'orch.db'), 'half');
    await done('serve', 'backup', path, ...here);
    expect(existsSync(`${path}.partial`)).toBe(false);
    writeFileSync(`${sandbox.path('other.db')}.partial`, 'mine');
    const refused = await orch('serve', 'backup', sandbox.path('other.db'), ...here);
    expect([refused.status, refused.stderr]).toEqual([64, expect.stringContaining('other.db.partial is in the way')]);
    expect(readFileSync(`${sandbox.path('other.db')}.partial`, 'utf8')).toBe('mine');
  });

  it('is made of a stopped orchestrator too', async () => {
    expect(await server.stop()).toBe(0);
    const path = sandbox.path('stopped.db');
    const made = await makeBackup(path);
    expect(made.sha256).toBe(sha256(path));
    const missing = await orch('serve', 'backup', sandbox.path('x.db'), '--data-dir', sandbox.path('nowhere'));
    expect([missing.status, missing.stderr]).toEqual([1, expect.stringContaining('nowhere does not exist')]);
    expect(existsSync(sandbox.path('nowhere'))).toBe(false);
    await serve();
    expect((await events('orchestrator.backed_up'))[0]).toMatchObject({ metadata: { sha256: made.sha256 } });
    expect(await verify()).toBe(0);
    await agentBack();
  });

  it('does not fit on a full disk, and leaves what is there as it was', async (context) => {
    const small = sandbox.path('small');
    mkdirSync(small);
    if (spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=128k', 'tmpfs', small]).status !== 0) {
      context.skip('mounting a small file system takes root');
    }
    try {
      writeFileSync(join(small, 'old.db'), 'old');
      const refused = await orch('serve', 'backup', join(small, 'old.db'), '--force', ...here);
      expect([refused.status, refused.stderr]).toEqual([6, expect.stringContaining('the disk there is full')]);
      expect(readdirSync(small)).toEqual(['old.db']);
      expect(readFileSync(join(small, 'old.db'), 'utf8')).toBe('old');
      expect(await verify()).toBe(0);
    } finally {
      spawnSync('umount', [small]);
    }
  });
});

describe('orch serve restore', () => {
  it('is refused while the orchestrator runs, which is named', async () => {
    const refused = await orch('serve', 'restore', backup, '--yes', ...here);
    expect([refused.status, refused.stderr]).toEqual([1, expect.stringContaining(`in use by process ${ready.pid}`)]);
    expect(existsSync(join(data, 'restoring'))).toBe(false);
  });

  it('restores what was there, and brings neither logins nor tokens nor an old epoch back', async () => {
    const { stdout: token } = await done('enroll', 'create', '-o', 'json');
    const made = await makeBackup(sandbox.path('monday.db'));
    expect((await apply('two')).status).toBe(0);
    await done('audit', 'retention', 'set', '400');
    const { stdout: before } = await done('audit', 'verify', '-o', 'json');
    expect(await server.stop()).toBe(0);

    const { status, stdout, stderr } = await orch('serve', 'restore', made.file, '--yes', '-o', 'json', ...here);
    expect(status, stderr).toBe(0);
    const report = JSON.parse(stdout);
    expect(report).toMatchObject({
      sha256: made.sha256,
      last_seq: made.last_seq,
      epoch: 2,
      tokens: 1,
      present: 'store',
    });
    expect(report.sessions).toBeGreaterThan(0);
    expect(existsSync(report.kept)).toBe(true);
    expect(readdirSync(data).filter((name) => name.startsWith('restoring'))).toEqual([]);

    await serve();
    expect(await verify()).toBe(0);
    expect(await events('orchestrator.restored')).toMatchObject([
      { severity: 'critical', metadata: { sha256: made.sha256, last_seq: made.last_seq, epoch: 2 } },
    ]);
    const tokens = await sandbox.json<readonly { token_id: string }[]>(['enroll', 'list']);
    expect(tokens.map(({ token_id }) => token_id)).not.toContain(JSON.parse(token).token_id);
    await agentBack();
    expect((await apply('three')).status).toBe(0);
    expect(readFileSync(file, 'utf8')).toBe('three');
    const since = (JSON.parse(before) as AuditVerification).checkpoint?.text ?? '';
    expect((await orch('audit', 'verify', '--since', since)).status).toBe(1);
  });

  it('loses no recording of what was done since: the sessions are listed again', async () => {
    const made = await makeBackup(sandbox.path('tuesday.db'));
    await done('exec', 'web-01', '--', 'echo', 'since Tuesday');
    const sessions = () => sandbox.json<readonly TerminalSession[]>(['term', 'list', '--all']);
    await until(async () => (await sessions())[0]?.status === 'closed', 'the session is over');
    const [before] = await sessions();
    expect(await server.stop()).toBe(0);
    const restored = await done('serve', 'restore', made.file, '--yes', ...here);
    expect(restored.stdout).toContain('1 recording of terminals that this store does not know');

    await serve();
    await until(async () => (await sessions()).length === 1, 'the session is found');
    expect(await sessions()).toMatchObject([
      {
        session_id: before?.session_id,
        operator_id: before?.operator_id,
        command: ['echo', 'since Tuesday'],
        ...{ status: 'interrupted', reason: 'store_restored' },
      },
    ]);
    expect((await done('term', 'transcript', before?.session_id ?? '')).stdout).toContain('since Tuesday');
    expect(await events('terminal.transcript_found')).toHaveLength(1);
    await server.stop();
    await serve();
    expect(await events('terminal.transcript_found')).toHaveLength(1);
    await agentBack();
  });

  it('says what will be gone, and asks', async () => {
    expect(await server.stop()).toBe(0);
    const before = contents();
    const asked = await orch('serve', 'restore', backup, ...here);
    expect(asked.status).toBe(64);
    expect(asked.stderr).toContain('and what they did will be gone');
    expect(asked.stderr).toContain('add --yes');
    expect(contents()).toEqual(before);
  });

  const key = (name: string) => join(data, name);
  const without = async (name: string, run: () => Promise<void>) => {
    renameSync(key(name), `${key(name)}.away`);
    try {
      await run();
    } finally {
      rmSync(key(name), { force: true });
      renameSync(`${key(name)}.away`, key(name));
    }
  };

  it.each([
    ['a file that is not there', () => sandbox.path('none.db'), 64, 'none.db does not exist'],
    ['a directory', () => sandbox.path('agent'), 64, 'is no regular file'],
    [
      'a text',
      () => {
        writeFileSync(sandbox.path('text.db'), 'this is no database '.repeat(100));
        return sandbox.path('text.db');
      },
      1,
      'text.db is damaged or no backup',
    ],
    [
      'an empty file',
      () => {
        writeFileSync(sandbox.path('empty.db'), '');
        return sandbox.path('empty.db');
      },
      1,
      'empty.db is no store of an orchestrator',
    ],
    [
      "another program's database",
      () => {
        rmSync(sandbox.path('shop.db'), { force: true });
        const connection = new Sqlite(sandbox.path('shop.db'));
        connection.exec('create table customers (name text); pragma user_version = 3');
        connection.close();
        return sandbox.path('shop.db');
      },
      1,
      'shop.db is no store of an orchestrator',
    ],
    [
      'half a backup',
      () => {
        copyFileSync(backup, sandbox.path('half.db'));
        truncateSync(sandbox.path('half.db'), statSync(backup).size / 2);
        return sandbox.path('half.db');
      },
      1,
      'half.db is damaged',
    ],
    [
      'a backup of a newer orch',
      () => changed((connection) => connection.pragma('user_version = 9999'), 'newer.db'),
      1,
      'newer.db has schema 9999 of orch',
    ],
    [
      'a backup of another orchestrator',
      () =>
        changed((connection) => {
          const note = { made_at: 1, version: '9.9.9', public_key: 'ab'.repeat(32) };
          connection.prepare("update meta set value = ? where key = 'backup'").run(JSON.stringify(note));
        }, 'foreign.db'),
      1,
      `the backup is of the orchestrator ${'ab'.repeat(32)}`,
    ],
    [
      'a store in use',
      () => {
        copyFileSync(backup, sandbox.path('used.db'));
        writeFileSync(sandbox.path('used.db-wal'), 'something');
        return sandbox.path('used.db');
      },
      64,
      'used.db is not whole without',
    ],
  ])('refuses %s and changes nothing', async (_what, path, status, message) => {
    const before = contents();
    const refused = await orch('serve', 'restore', path(), '--yes', ...here);
    expect([refused.status, refused.stderr]).toEqual([status, expect.stringContaining(message)]);
    expect(refused.stderr).toContain('hint: ');
    expect(contents()).toEqual(before);
    expect(readdirSync(data)).not.toContain('restoring');
  });

  it('refuses keys that do not fit, or are missing', async () => {
    await without('identity.key', async () => {
      const refused = await orch('serve', 'restore', backup, '--yes', ...here);
      expect([refused.status, refused.stderr]).toEqual([1, expect.stringContaining('identity.key is missing')]);
      expect(refused.stderr).toContain(ready.public_key);
      const lost = await orch('serve', 'restore', backup, '--new-identity', ...here);
      expect([lost.status, lost.stderr]).toEqual([64, expect.stringContaining('add --yes')]);
    });
    await without('secrets.key', async () => {
      const refused = await orch('serve', 'restore', backup, '--yes', ...here);
      expect([refused.status, refused.stderr]).toEqual([
        1,
        expect.stringContaining('secrets.key with their keys is missing'),
      ]);
    });
    await without('secrets.key', async () => {
      const text = readFileSync(`${key('secrets.key')}.away`, 'utf8');
      writeFileSync(key('secrets.key'), text.replace(/ [0-9a-f]{16} /, ' 0123456789abcdef '), { mode: 0o600 });
      const refused = await orch('serve', 'restore', backup, '--yes', ...here);
      expect([refused.status, refused.stderr]).toEqual([1, expect.stringContaining('are not those that the secrets')]);
    });
  });

  it('does not fit on a full disk, and leaves the store as it was', async (context) => {
    const small = sandbox.path('small-data');
    mkdirSync(small, { mode: 0o700 });
    const size = Math.ceil((statSync(store).size * 1.5) / 4096) * 4096;
    if (spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${size},mode=700`, 'tmpfs', small]).status !== 0) {
      context.skip('mounting a small file system takes root');
    }
    try {
      for (const name of ['identity.key', 'audit.key', 'secrets.key', 'api.key', 'orch.db']) {
        cpSync(join(data, name), join(small, name));
      }
      const before = sha256(join(small, 'orch.db'));
      const refused = await orch('serve', 'restore', backup, '--yes', '--data-dir', small);
      expect([refused.status, refused.stderr]).toEqual([1, expect.stringContaining('there is no room')]);
      expect(readdirSync(small).sort()).toEqual(['api.key', 'audit.key', 'identity.key', 'orch.db', 'secrets.key']);
      expect(sha256(join(small, 'orch.db'))).toBe(before);
    } finally {
      spawnSync('umount', [small]);
    }
  });

  it('works on a new host that has the keys: the agent comes back, secrets are there, the log is whole', async () => {
    const kept = sandbox.path('former');
    renameSync(data, kept);
    mkdirSync(data, { mode: 0o700 });
    const bare = await orch('serve', 'restore', backup, '--yes', ...here);
    expect([bare.status, bare.stderr]).toEqual([1, expect.stringContaining('identity.key is missing')]);
    for (const name of ['identity.key', 'audit.key', 'secrets.key', 'api.key'])
      cpSync(join(kept, name), join(data, name));
    const restored = await sandbox.json<{ kept: null; epoch: number }>(['serve', 'restore', backup, '--yes', ...here]);
    expect(restored).toMatchObject({ kept: null, present: 'none' });
    await serve();
    expect(await verify()).toBe(0);
    await agentBack();
    expect((await apply('four')).status).toBe(0);
    expect(await sandbox.json(['secrets'])).toMatchObject([{ name: 'TOKEN' }]);
  });

  it('takes the place of a store that is damaged, and keeps that', async () => {
    expect(await server.stop()).toBe(0);
    writeFileSync(store, 'not a database any more '.repeat(1000));
    writeFileSync(`${store}-wal`, 'nor its log');
    const restored = await sandbox.json<{ kept: string; present: string }>([
      'serve',
      'restore',
      backup,
      '--yes',
      ...here,
    ]);
    expect(restored.present).toBe('unreadable');
    expect(readFileSync(restored.kept, 'utf8')).toContain('not a database any more');
    expect(existsSync(`${store}-wal`)).toBe(false);
    await serve();
    expect(await verify()).toBe(0);
    await agentBack();
    expect((await apply('five')).status).toBe(0);
  });
});

describe('a data directory that was copied back by hand', () => {
  it('is too old for its agents until a new epoch begins', async () => {
    expect(await server.stop()).toBe(0);
    const head = sandbox.path('serve', 'audit.head');
    const [copy, copyOfHead] = [readFileSync(store), readFileSync(head)];
    await serve();
    await agentBack();
    expect((await apply('six')).status).toBe(0);
    expect(await server.stop()).toBe(0);
    writeFileSync(store, copy, { mode: 0o600 });
    const alone = await sandbox.orch(['serve', '--data-dir', sandbox.path('serve')]);
    expect(alone.status).not.toBe(0);
    expect(alone.stderr.replace(/\s+/g, ' ')).toMatch(/ends too early: .*"orch serve --new-epoch"/);
    writeFileSync(head, copyOfHead, { mode: 0o600 });

    await serve();
    await agentBack();
    const stale = await apply('seven');
    expect(stale.status).not.toBe(0);
    expect((stale.stderr + stale.stdout).replace(/\s+/g, ' ')).toContain('start once with "orch serve --new-epoch"');
    expect(readFileSync(file, 'utf8')).toBe('six');
    expect(await server.stop()).toBe(0);

    await serve('--new-epoch');
    expect(server.output()).toContain('a new epoch was begun');
    await agentBack();
    expect((await apply('seven')).status).toBe(0);
    expect(readFileSync(file, 'utf8')).toBe('seven');
    expect((await events('orchestrator.restored'))[0]).toMatchObject({ metadata: { by: 'new_epoch' } });
    expect(await verify()).toBe(0);
  });
});

describe('a backup with work under way', () => {
  it('starts no rollout that was cancelled since, and brings no machine back to older content by itself', async () => {
    expect((await apply('old')).status).toBe(0);
    await done('assignments', 'create', 'sites', '-m', 'site', '--selector', 'platform=linux', '--mode', 'enforce');
    await agent?.stop();
    await until(async () => !(await connected()), 'the agent is away');
    const [{ node_id = '' } = {}] = await sandbox.json<Agent[]>(['agents', 'list']);
    const order = { agents: [node_id], modules: ['site'], when_online_secs: 3600, wait: false };
    const body = ['--data', JSON.stringify(order)];
    const { rollout_id: id } = await sandbox.json<Rollout>(['api', 'POST', '/rollouts/apply', ...body]);
    const made = await makeBackup(sandbox.path('wednesday.db'));

    await done('rollouts', 'cancel', id);
    await agentBack();
    const path = sandbox.path('site.orch.yaml');
    const content = readFileSync(path, 'utf8').replace('"old"', '"new"');
    await done('api', 'POST', '/modules', '--data', JSON.stringify({ name: 'site', content }));
    await until(() => readFileSync(file, 'utf8') === 'new', 'the new content is applied');
    expect(await server.stop()).toBe(0);

    const { stdout } = await done('serve', 'restore', made.file, '--yes', ...here);
    expect(stdout).toContain(`orch rollouts resume ${id}`);
    expect(stdout).toContain('orch assignments resume sites');
    await serve();
    await agentBack();
    const state = async () => (await sandbox.json<RolloutDetail>(['rollouts', 'show', id])).state;
    expect(await state()).toBe('halted');
    expect((await orch('drift', 'web-01')).stdout).toContain(file);
    expect(await sandbox.json<Assignment>(['assignments', 'show', 'sites'])).toMatchObject({
      stopped_reason: 'a backup was restored',
    });
    expect(await state()).toBe('halted');
    expect(readFileSync(file, 'utf8')).toBe('new');

    await done('rollouts', 'cancel', id);
    await done('assignments', 'resume', 'sites');
    expect(await sandbox.json<Assignment>(['assignments', 'show', 'sites'])).toMatchObject({ stopped_reason: null });
    await done('assignments', 'remove', 'sites', '--yes');
  });
});

describe('orch serve recover-admin', () => {
  const other = new Sandbox();
  let publicKey: string;
  const recover = (...args: readonly string[]) => orch('serve', 'recover-admin', ...args, ...here);
  const whoami = async () =>
    (await other.json<{ operator: { username: string; role: string } }>(['operator', 'whoami'])).operator;

  beforeAll(async () => {
    ({ public_key: publicKey } = await other.json<{ public_key: string }>(['operator', 'init']));
    const create = ['profile', 'create', 'test', '--url', ready.api_url, '--tls-fingerprint', ready.tls_fingerprint];
    expect(await other.orch(create)).toMatchObject({ status: 0 });
    expect(await other.orch(['profile', 'use', 'test'])).toMatchObject({ status: 0 });
  });
  afterAll(() => other.dispose());

  it('is refused while the orchestrator runs, for what is no key, and without consent', async () => {
    const running = await recover(publicKey, '--yes');
    expect([running.status, running.stderr]).toEqual([1, expect.stringContaining(`in use by process ${ready.pid}`)]);
    const weak = await recover('ab', '--yes');
    expect([weak.status, weak.stderr]).toEqual([64, expect.stringContaining('PUBLIC_KEY has 2 hex digits, not 64')]);
    expect(await server.stop()).toBe(0);
    const asked = await recover(publicKey);
    expect([asked.status, asked.stderr]).toEqual([
      64,
      expect.stringContaining(`Add admin with the key ${publicKey} as`),
    ]);
    const nowhere = await orch('serve', 'recover-admin', publicKey, '--yes', '--data-dir', sandbox.path('agent'));
    expect([nowhere.status, nowhere.stderr]).toEqual([1, expect.stringContaining('there is no store in')]);
  });

  it('lets a new key in as an admin, who then can log in', async () => {
    writeFileSync(sandbox.path('ada.pub'), `${publicKey}\n`);
    const added = await recover(`@${sandbox.path('ada.pub')}`, '--username', 'ada', '--yes');
    expect([added.status, added.stdout]).toEqual([0, expect.stringContaining('ada is an admin now')]);
    const again = await recover(publicKey);
    expect([again.status, again.stdout]).toEqual([0, expect.stringContaining('ada is an admin already')]);
    await serve();
    expect(await whoami()).toMatchObject({ username: 'ada', role: 'admin' });
    expect((await events('operator.added'))[0]).toMatchObject({
      actor: { type: 'system' },
      target: { name: 'ada' },
      metadata: { recovery: true, role: 'admin', public_key: publicKey },
    });
    const told = await sandbox.json<{ notifications: readonly { summary: string }[] }>(['notifications']);
    expect(JSON.stringify(told)).toContain('ada was made an admin on the host');
    expect(await verify()).toBe(0);
  });

  it('makes an operator of another role an admin, and one that was removed', async () => {
    const { operator_id } = await sandbox.json<{ operator_id: string }>(['operator', 'show', 'ada']);
    await done('operator', 'remove', operator_id, '--yes');
    await done('operator', 'add', publicKey, '--username', 'bob', '--role', 'viewer');
    expect(await server.stop()).toBe(0);
    const named = await recover(publicKey, '--username', 'eve', '--yes');
    expect([named.status, named.stderr]).toEqual([1, expect.stringContaining('belongs to bob already')]);
    const raised = await recover(publicKey, '--yes');
    expect([raised.status, raised.stdout]).toEqual([0, expect.stringContaining('bob is an admin now')]);
    await serve();
    expect(await whoami()).toMatchObject({ username: 'bob', role: 'admin' });
    await done('operator', 'remove', operator_id, '--yes');
    expect(await server.stop()).toBe(0);
    const back = await recover(publicKey, '--yes');
    expect([back.status, back.stdout]).toEqual([0, expect.stringContaining('bob is an admin now')]);
    const taken = await recover(
      '3b6a27bcceb6a42d62a3a8d02a6f0d73653215771de243a63ac048a18b59da29',
      '--username',
      'bob',
      '--yes',
    );
    expect([taken.status, taken.stderr]).toEqual([1, expect.stringContaining('there is an operator bob already')]);
    await serve();
    expect(await whoami()).toMatchObject({ username: 'bob', role: 'admin' });
  });

  it("is refused in another user's directory", async (context) => {
    if (process.geteuid?.() !== 0) context.skip('giving a directory to another user takes root');
    const theirs = sandbox.path('theirs');
    mkdirSync(theirs, { mode: 0o700 });
    writeFileSync(join(theirs, 'orch.db'), '');
    chownSync(theirs, 12345, 12345);
    for (const args of [
      ['recover-admin', publicKey, '--yes'],
      ['restore', backup, '--yes'],
      ['backup', sandbox.path('y.db')],
    ]) {
      const refused = await orch('serve', ...args, '--data-dir', theirs);
      expect([refused.status, refused.stderr]).toEqual([1, expect.stringContaining('belongs to user 12345')]);
      expect(refused.stderr).toContain("sudo -u '#12345'");
    }
  });
});
