/** Recordings with the real programs: what a command wrote is downloaded, searched and compared. */
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { Agent } from '../../src/contract/agents.js';
import type { TerminalDetail, TerminalMatch, TerminalSession } from '../../src/contract/terminal.js';
import { type Running, Sandbox, until } from '../support/orch.js';
import { TEST_SHELL } from '../support/test-shell.js';

vi.setConfig({ testTimeout: 120_000 });

const sandbox = new Sandbox();
let server: Running;

beforeAll(async () => {
  expect((await sandbox.orch(['operator', 'init'])).status).toBe(0);
  const settings = sandbox.path('serve.yaml');
  writeFileSync(settings, 'terminal: {record: required, record_commands: all}\n');
  const { ready, server: started } = await sandbox.serve(['--config', settings]);
  server = started;
  const create = ['profile', 'create', 'test', '--url', ready.api_url, '--tls-fingerprint', ready.tls_fingerprint];
  expect(await sandbox.orch(create)).toMatchObject({ status: 0 });
  expect(await sandbox.orch(['profile', 'use', 'test'])).toMatchObject({ status: 0 });
  const config = sandbox.path('agent.yaml');
  writeFileSync(config, `remote_terminal:\n  enabled: true\n  shell: ${TEST_SHELL}\n`, { mode: 0o600 });
  const words = ['--orchestrator-key', ready.public_key, '--data-dir', sandbox.path('agent'), '--config', config];
  sandbox.start(['agent', 'connect', ready.agent_address, ...words]);
  let agents: Agent[] = [];
  await until(async () => {
    agents = await sandbox.json<Agent[]>(['agents', 'list']);
    return agents.length === 1;
  }, 'the agent waits');
  await sandbox.json(['agents', 'approve', agents[0]?.node_id ?? '', '--name', 'web-01', '--yes']);
  await until(async () => {
    const [agent] = await sandbox.json<Agent[]>(['agents', 'list']);
    return agent?.connected === true;
  }, 'the agent is connected');
});

afterAll(async () => {
  await sandbox.dispose();
});

const sha256 = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');

describe('the recording of a command', () => {
  it('has every byte, fits the audit log, can be searched, and its reading is in the log', async () => {
    const kept = sandbox.path('bytes');
    // CAN ends the control string that the random bytes may have begun, which would hide the line after it.
    const script = `head -c 3000000 /dev/urandom | tee ${kept}; printf '\\030\\na needle\\n' | tee -a ${kept}; exit 3`;
    expect((await sandbox.orch(['exec', 'web-01', '--', 'sh', '-c', script])).status).toBe(3);
    let session: TerminalSession | undefined;
    await until(async () => {
      [session] = await sandbox.json<TerminalSession[]>(['term', 'list', '--all']);
      return session?.status === 'closed';
    }, 'the session is over');
    const id = session?.session_id ?? '';
    const out = (format: string) => sandbox.path(`session.${format}`);
    for (const format of ['cast', 'raw', 'txt', 'html']) {
      const got = await sandbox.orch(['term', 'transcript', id, '--format', format, '--out', out(format)]);
      expect(got, format).toMatchObject({ status: 0, stderr: '' });
    }
    expect(readFileSync(out('raw')).equals(readFileSync(kept))).toBe(true);
    const detail = await sandbox.json<TerminalDetail>(['term', 'show', id]);
    expect(detail).toMatchObject({ recording: 'complete', output_bytes: 3_000_011 });
    expect(detail.transcript_sha256).toBe(sha256(readFileSync(out('cast'))));
    expect(readFileSync(out('txt'), 'utf8')).toContain('a needle\n');
    expect(readFileSync(out('html'), 'utf8')).not.toContain('<script');

    const found = await sandbox.json<{ matches: TerminalMatch[]; searched: number }>(['term', 'grep', '^a n.*le$']);
    expect(found).toMatchObject({ searched: 1, matches: [{ session_id: id, line: 'a needle' }] });
    const { events } = await sandbox.json<{ events: { event_type: string; summary: string }[] }>([
      ...['audit', 'list', '--type', 'terminal.transcript_read'],
    ]);
    expect(events).toHaveLength(5);
    expect(events[0]?.summary).toContain('"^a n.*le$"');
    const [month = ''] = readdirSync(sandbox.path('serve/transcripts'));
    await until(
      () => readdirSync(sandbox.path(`serve/transcripts/${month}`)).join() === `${id}.cast.gz`,
      'the recording is compressed',
    );
    const file = sandbox.path(`serve/transcripts/${month}/${id}.cast.gz`);
    writeFileSync(file, Buffer.from([0x1f, 0x8b, 8, 0, 1, 2, 3]));
    const damaged = await sandbox.orch(['term', 'transcript', id]);
    expect(damaged).toMatchObject({ status: 1, stdout: '' });
    expect(damaged.stderr).toBe(
      'orch: the compressed recording is damaged; restore the file from a backup of the host\n',
    );
    for (const other of ['a tar file', '{"version":3}\n', '']) {
      writeFileSync(file, gzipSync(other));
      for (const format of ['raw', 'txt']) {
        const refused = await sandbox.orch(['term', 'transcript', id, '--format', format]);
        expect(refused).toMatchObject({ status: 1, stdout: '' });
        expect(refused.stderr).toContain('this is not a recording: its first line is not an asciicast v2 header');
      }
      // The file itself, which is compared with the hash in the audit log.
      const itself = await sandbox.orch(['term', 'transcript', id, '--format', 'cast']);
      expect(itself).toMatchObject({
        status: 1,
        stdout: other,
        stderr: expect.stringContaining('this is not what was recorded'),
      });
      const searched = await sandbox.orch(['term', 'grep', 'needle']);
      expect(searched).toMatchObject({
        status: 1,
        stdout: expect.stringContaining('No matches'),
        stderr: expect.stringContaining(id.slice(0, 12)),
      });
    }
  });

  it('that has to be there and cannot be made keeps the command from running; the log says which it was', async () => {
    writeFileSync(sandbox.path('serve.yaml'), 'terminal: {record: required}\n');
    server.process.kill('SIGHUP');
    await until(() => server.output().includes('terminal.record'), 'the setting is in force');
    // A file where the directory of the recordings was.
    const directory = sandbox.path('serve/transcripts');
    renameSync(directory, `${directory}.away`);
    writeFileSync(directory, '');
    const file = sandbox.path('ran');
    const command = ['setsid', '-f', 'touch', file];
    const refused = await sandbox.orch(['exec', 'web-01', '--', ...command]);
    expect(refused).toMatchObject({ status: 255, stdout: '', stderr: expect.stringContaining('cannot be recorded') });
    const opened = await sandbox.orch(['term', 'open', 'web-01'], { input: `touch ${file}\n` });
    expect(opened).toMatchObject({ status: 255, stderr: expect.stringContaining('cannot be recorded') });
    renameSync(directory, `${directory}.broken`);
    renameSync(`${directory}.away`, directory);
    // Whatever was asked for before would have run by the time that this one has.
    expect(await sandbox.orch(['exec', 'web-01', '--', 'echo', 'well'])).toMatchObject({ status: 0, stdout: 'well\n' });
    expect(existsSync(file)).toBe(false);
    const { events } = await sandbox.json<{ events: { metadata: object }[] }>([
      ...['audit', 'list', '--type', 'terminal.refused'],
    ]);
    expect(events).toHaveLength(2);
    expect(events[1]?.metadata).toMatchObject({ reason: 'recording_failed', command });
  });
});
