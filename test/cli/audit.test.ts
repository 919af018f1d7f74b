/** The output of the commands of the audit log, beside its list. */
import { EventEmitter } from 'node:events';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { AuditVerification } from '../../src/contract/audit.js';
import { expectGolden, runOrch, transcript } from '../support/cli.js';
import { events } from '../support/cli-world.js';
import { type FakeApi, loggedIn, startFakeApi } from '../support/fake-api.js';

const intact: AuditVerification = {
  intact: true,
  events: 1200,
  first_seq: 301,
  last_seq: 1500,
  checkpoints: 5,
  pruned: { seq: 300, hash: 'ab'.repeat(32), pruned_at: '2025-03-01T10:00:00.000Z' },
  checkpoint: {
    epoch: 1,
    seq: 1500,
    hash: 'cd'.repeat(32),
    signed_at: '2025-03-01T12:00:00.000Z',
    text: `orch-checkpoint-v1.1.1500.1740830400000.${'cd'.repeat(32)}.${'ef'.repeat(32)}.${'s'.repeat(86)}`,
  },
  public_key: 'ef'.repeat(32),
  since: { epoch: 1, seq: 1000, found: 'confirmed' },
  problem: null,
};

const broken: AuditVerification = {
  ...intact,
  intact: false,
  events: 199,
  last_seq: 499,
  since: null,
  problem: { what: 'missing', seq: 500, id: null, detail: 'event 500 is missing' },
};

let api: FakeApi;

beforeAll(async () => {
  api = await startFakeApi();
});
afterAll(async () => {
  await api.stop();
  expect(api.violations).toEqual([]);
});

const run = (argv: readonly string[], options: Parameters<typeof runOrch>[1] = {}) =>
  runOrch(argv, { env: { ...loggedIn(api), NO_COLOR: '1' }, ...options });

async function golden(name: string, argv: readonly string[], status: number): Promise<void> {
  const ran = await run(argv);
  expect(ran.status).toBe(status);
  expectGolden(name, transcript(argv, ran));
}

describe('orch audit', () => {
  it('verify says that the log is as it was written', async () => {
    api.answer({ verifyAudit: { body: intact } });
    await golden('audit-verify', ['audit', 'verify', '--since', 'orch-checkpoint-v1.x'], 0);
    expect(api.requests.at(-1)).toBe('GET /audit/verify?since=orch-checkpoint-v1.x');
    const { checkpoint } = intact;
    expect((await run(['audit', 'verify', '-o', 'name'])).stdout).toBe(`${checkpoint?.text}\n`);
  });

  it('verify ends with 1 when it is not', async () => {
    api.answer({ verifyAudit: { body: broken } });
    await golden('audit-verify-broken', ['audit', 'verify'], 1);
    const json = await run(['audit', 'verify', '-o', 'json']);
    expect([json.status, JSON.parse(json.stdout)]).toEqual([1, broken]);
  });

  it('prune asks first', async () => {
    api.answer({ pruneAuditEvents: { body: { deleted: 300 } } });
    await golden('audit-prune-no-terminal', ['audit', 'prune', '--before', '2025-01-01'], 64);
    await golden('audit-prune', ['audit', 'prune', '--before', '2025-01-01', '--yes'], 0);
    expect(api.requests.at(-1)).toBe('DELETE /audit?before=2025-01-01T00%3A00%3A00.000Z');
  });

  it('retention is shown, set and turned off', async () => {
    const sent: unknown[] = [];
    api.answer({
      getAuditRetention: { body: { retention_days: 90 } },
      setAuditRetention: ({ body }) => {
        sent.push(body);
        return { body };
      },
    });
    expect((await run(['audit', 'retention'])).stdout).toBe('Audit events are kept for 90 days.\n');
    expect((await run(['audit', 'retention', 'set', '1'])).stdout).toBe('Audit events are kept for 1 day.\n');
    expect((await run(['audit', 'retention', 'disable'])).stdout).toBe('Audit events are kept forever.\n');
    expect(sent).toEqual([{ retention_days: 1 }, { retention_days: null }]);
    for (const days of ['0', '-1', 'x', '99999']) {
      expect((await run(['audit', 'retention', 'set', '--', days])).status, days).toBe(64);
    }
  });

  it('tail shows events as they come and goes on behind the last one', async () => {
    const asked: unknown[] = [];
    const [first, second] = events;
    const interrupts = new EventEmitter();
    api.answer({
      streamEvents: ({ query, headers }) => {
        asked.push({ query, behind: headers['last-event-id'] });
        if (asked.length === 1) return { events: first ? [first] : [], ends: true };
        setTimeout(() => interrupts.emit('SIGINT'), 300);
        return { events: second ? [second] : [], ends: false };
      },
    });
    const { status, stdout } = await run(['audit', 'tail', '--category', 'agent', '-o', 'json'], { interrupts });
    expect(status).toBe(130);
    const lines = stdout.trimEnd().split('\n');
    expect(lines.map((line) => JSON.parse(line))).toEqual([first, second]);
    expect(asked).toEqual([
      { query: { category: 'agent' }, behind: undefined },
      { query: { category: 'agent' }, behind: first?.id },
    ]);
  });

  it('tail says where events are missing', async () => {
    const interrupts = new EventEmitter();
    const [first] = events;
    const detail = '3 events were deleted from the audit log before they could be sent';
    api.answer({
      streamEvents: () => {
        setTimeout(() => interrupts.emit('SIGINT'), 300);
        const gap = { after: null, next: first?.id, deleted: 3, detail };
        return { events: first ? [first] : [], ends: false, gap };
      },
    });
    const { stdout, stderr } = await run(['audit', 'tail', '-o', 'json'], { interrupts });
    expect(JSON.parse(stdout)).toEqual(first);
    expect(stderr).toContain(`events are missing here: ${detail}`);
  });

  it('tail shows a line for each event to people', async () => {
    const interrupts = new EventEmitter();
    api.answer({
      streamEvents: () => {
        setTimeout(() => interrupts.emit('SIGINT'), 300);
        return { events: [...events].reverse(), ends: false };
      },
    });
    const argv = ['audit', 'tail'];
    expectGolden('audit-tail', transcript(argv, await run(argv, { interrupts })));
  });
});
