/** Watched lists, and waits for busy agents. */
import { EventEmitter } from 'node:events';
import { Writable } from 'node:stream';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { WatchedList } from '../../src/cli/render/watched-list.js';
import type { Operation } from '../../src/contract/operations.js';
import { runOrch } from '../support/cli.js';
import {
  driftDetail,
  events,
  inSync,
  operations,
  readings,
  runResult,
  streamOf,
  ulid,
  web1,
} from '../support/cli-world.js';
import { type FakeApi, loggedIn, startFakeApi } from '../support/fake-api.js';
import { until } from '../support/until.js';

let api: FakeApi;
beforeAll(async () => {
  api = await startFakeApi();
});
afterEach(() => {
  expect(api.violations).toEqual([]);
});
afterAll(() => api.stop());

class Kept extends Writable {
  text = '';

  override _write(chunk: Buffer | string, _encoding: string, done: () => void): void {
    this.text += chunk.toString();
    done();
  }
}

const listed: readonly Operation[] = operations.map(({ resources: _, ...rest }) => rest);
const page = (all: readonly Operation[]) => ({
  body: { operations: all, total: all.length, limit: 50, offset: 0 },
});

/** Watches operations of which the first one appears with the second reading, until the output has `last`. */
async function watchOps(more: readonly string[], last: string) {
  let readings_ = 0;
  api.answer({
    ...readings,
    listOperations: () => {
      readings_ += 1;
      return page(readings_ === 1 ? listed.slice(1) : listed);
    },
    streamEvents: { events: events.slice(0, 1), ends: false },
  });
  const stdout = new Kept();
  const interrupts = new EventEmitter();
  const running = runOrch(['ops', '--watch', ...more], {
    env: { ...loggedIn(api), NO_COLOR: '1' },
    stdout,
    interrupts,
  });
  await until(() => stdout.text.includes(last), `the output has ${last}`);
  interrupts.emit('SIGINT');
  return { ...(await running), stdout: stdout.text };
}

describe('a watched list in a pipe', () => {
  it('is printed once, then each record that is new, and ends with 130 after Ctrl-C', async () => {
    const { status, stdout } = await watchOps([], ulid(2));
    expect(status).toBe(130);
    const lines = stdout.trim().split('\n');
    expect(lines[0]).toMatch(/^OPERATION ID/);
    expect(lines.slice(1).map((line) => line.split(' ')[0])).toEqual([ulid(1), ulid(0), ulid(2)]);
  });

  it('gives programs one line for each record', async () => {
    const { stdout } = await watchOps(['--json'], ulid(2));
    const ids = stdout.split('\n').filter(Boolean);
    expect(ids.map((line) => JSON.parse(line).operation_id)).toEqual([ulid(1), ulid(0), ulid(2)]);
  });

  it('gives scripts the names', async () => {
    expect((await watchOps(['-o', 'name'], ulid(2))).stdout).toBe(`${ulid(1)}\n${ulid(0)}\n${ulid(2)}\n`);
  });

  it.each(['agents', 'drift list', 'rollouts', 'notifications', 'ops', 'term list'])(
    'orch %s -w begins with the list',
    async (words) => {
      api.answer({
        ...readings,
        listNotifications: { body: { notifications: [], unread_count: 0 } },
        listTerminals: { body: [] },
        streamEvents: { events: [], ends: false },
      });
      const stdout = new Kept();
      const interrupts = new EventEmitter();
      const options = { env: { ...loggedIn(api), NO_COLOR: '1' }, interrupts };
      const running = runOrch([...words.split(' '), '-w'], { ...options, stdout });
      await until(() => stdout.text.endsWith('\n'), 'the list is there');
      interrupts.emit('SIGINT');
      expect((await running).status).toBe(130);
      expect(stdout.text).toBe((await runOrch(words.split(' '), options)).stdout);
    },
  );

  it('that cannot be read at first fails as the list does', async () => {
    api.answer({ ...readings, listOperations: { problem: 'invalid_selector', detail: 'no selector' } });
    expect(await runOrch(['ops', '-w'], { env: loggedIn(api) })).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('no selector'),
    });
  });
});

describe('a watched list on a terminal', () => {
  const list = (rows: number, columns: number) =>
    new WatchedList({
      stdout: Object.assign(new Kept(), { isTTY: true, rows, columns }),
      render: async ({ names = [] }) => ['NAME', ...names],
      renderRecord: null,
      namesOnly: false,
    });
  const of = (...names: readonly string[]) => ({ names, records: names, watched: true as const });

  it('is drawn over the last one', async () => {
    const watched = list(10, 80);
    expect(await watched.next(of('a', 'b'))).toBe('NAME\na\nb\n');
    expect(await watched.next(of('c'))).toBe('\u001b[3A\r\u001b[JNAME\nc\n');
  });

  it('never scrolls, because what scrolled away could not be erased', async () => {
    const drawn = await list(5, 80).next(of('a', 'b', 'c', 'd', 'e', 'f'));
    expect(drawn).toBe('NAME\na\nb\n… 4 more do not fit\n');
  });
});

describe('--wait', () => {
  const busy = {
    problem: 'operation_in_progress',
    detail: 'operation X is in progress',
    more: { operation_id: ulid(1) },
  } as const;
  const done = streamOf(runResult(inSync));
  const verification = {
    node_id: web1.node_id,
    operation_id: ulid(1),
    started_at: 1,
    finished_at: 2,
    ok: true,
    checks: [],
    error: null,
  };

  it.each([
    ['plan', ['plan', 'web-01', '-m', 'site'], 'planAgent', done],
    ['apply', ['apply', 'web-01', '-m', 'site', '--yes'], 'applyAgent', done],
    ['drift', ['drift', 'web-01'], 'checkDrift', { body: driftDetail(inSync) }],
    ['verify', ['verify', 'web-01'], 'verifyAgent', { body: verification }],
  ] as const)('lets orch %s wait for a busy agent, and says for what', async (_name, argv, route, answer) => {
    let attempts = 0;
    const reply = () => {
      attempts += 1;
      return attempts < 2 ? busy : answer;
    };
    api.answer({ ...readings, [route]: reply });
    const ran = await runOrch([...argv, '--wait'], { env: { ...loggedIn(api), NO_COLOR: '1' } });
    expect(ran.stderr).toContain(`web-01 is busy: operation ${ulid(1)} applies`);
    expect(ran.stderr).toContain('Waiting for at most 10 min.');
    expect(ran.status).toBe(0);
    expect(attempts).toBe(2);
  });

  it('asks again when the orchestrator has said to', async () => {
    const asked: number[] = [];
    const reply = () => {
      asked.push(performance.now());
      return asked.length < 2 ? { ...busy, more: { ...busy.more, retry_after: 4 } } : { body: driftDetail(inSync) };
    };
    api.answer({ ...readings, checkDrift: reply });
    const ran = await runOrch(['drift', 'web-01', '--wait'], { env: { ...loggedIn(api), NO_COLOR: '1' } });
    expect(ran.status).toBe(0);
    const [first = 0, second = 0] = asked;
    expect(second - first).toBeGreaterThan(3_900);
  });

  it('ends with 6 when the time is over', async () => {
    api.answer({ ...readings, checkDrift: busy });
    const ran = await runOrch(['drift', 'web-01', '--wait=1s'], { env: { ...loggedIn(api), NO_COLOR: '1' } });
    expect(ran).toMatchObject({ status: 6, stderr: expect.stringContaining('also after a wait of 1 s') });
  });

  it('takes its time only with =, so that an agent may follow', async () => {
    api.answer({ ...readings, checkDrift: { body: driftDetail(inSync) } });
    expect((await runOrch(['drift', '--wait', 'web-01'], { env: loggedIn(api) })).status).toBe(0);
    const wrong = await runOrch(['drift', 'web-01', '--wait=soon'], { env: loggedIn(api) });
    expect(wrong).toMatchObject({ status: 64, stderr: expect.stringContaining('--wait') });
  });

  it('does not wait without it', async () => {
    api.answer({ ...readings, checkDrift: busy });
    expect((await runOrch(['drift', 'web-01'], { env: loggedIn(api) })).status).toBe(6);
  });
});
