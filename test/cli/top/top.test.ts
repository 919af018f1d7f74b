/** `orch top`: once for a pipe, live on a terminal, and the terminal as it was afterwards. */
import { EventEmitter, once } from 'node:events';
import { PassThrough, Writable } from 'node:stream';
import xterm from '@xterm/headless';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { RolloutDetail, RolloutRecord } from '../../../src/contract/rollouts.js';
import { expectGolden, NOW, type RunOptions, runOrch, transcript } from '../../support/cli.js';
import {
  agents,
  db,
  events,
  haltedRollout,
  operations,
  operators,
  pending,
  readings,
  ulid,
  web1,
  web2,
} from '../../support/cli-world.js';
import { type Answers, type FakeApi, loggedIn, startFakeApi } from '../../support/fake-api.js';
import { until } from '../../support/orch.js';

const GIB = 1024 ** 3;
const sample = (cpu: number, memory: number, disk: number) => ({
  collected_at: NOW / 1000 - 5,
  cpu_usage: cpu,
  memory_used: memory * GIB,
  memory_total: 8 * GIB,
  disk_used: disk * GIB,
  disk_total: 100 * GIB,
  uptime: 86_400,
});

const samples = new Map([
  [web1.node_id, sample(12.5, 6.5, 20)],
  [web2.node_id, sample(97, 1, 95)],
  [db.node_id, sample(3, 4, 50)],
]);

const answers: Answers = {
  ...readings,
  listLatestMetrics: () => ({ body: [...samples].map(([node_id, one]) => ({ node_id, sample: one })) }),
  listOperations: ({ query }) => {
    const [{ resources: _, ...first }] = operations as [(typeof operations)[number]];
    const running = query.status === 'running' ? [{ ...first, status: 'running' as const, finished_at: null }] : [];
    return { body: { operations: running, total: running.length, limit: 50, offset: 0 } };
  },
  listAssignments: { body: [] },
  getMetrics: ({ params }) => ({ body: { node_id: params.node_id as string, samples: [sample(12.5, 6.5, 20)] } }),
  streamEvents: { events: [], ends: false },
  listTerminals: {
    body: [
      {
        session_id: '01JQ2Z6T0V5X8Y4M3N7P9R1S2T',
        node_id: web2.node_id,
        node_name: 'web-02',
        status: 'active',
        opened_at: NOW / 1000 - 300,
        closed_at: null,
        kind: 'shell',
        operator_id: operators[0]?.operator_id,
        operator: 'ada',
        user: 'root',
        shell: '/bin/bash',
        command: null,
        reason: null,
        exit_code: null,
        exit_signal: null,
        recording: 'on',
        output_bytes: 0,
        writer: 'ada',
        viewers: ['grace'],
      },
    ],
  },
};

let api: FakeApi;

beforeAll(async () => {
  api = await startFakeApi(answers);
});
beforeEach(() => {
  samples.set(web1.node_id, sample(12.5, 6.5, 20));
  api.answer(answers);
});
afterAll(async () => {
  await api.stop();
  expect(api.violations).toEqual([]);
});

const run = (argv: readonly string[], options: RunOptions = {}) =>
  runOrch(['top', ...argv], { ...options, env: { ...loggedIn(api), NO_COLOR: '1' } });

/** A terminal that shows what was drawn. */
class Terminal extends Writable {
  readonly isTTY = true;
  readonly screen = new xterm.Terminal({ cols: 100, rows: 24, allowProposedApi: true });
  text = '';
  broken = false;

  get columns(): number {
    return this.screen.cols;
  }

  get rows(): number {
    return this.screen.rows;
  }

  override _write(chunk: Buffer, _encoding: string, done: (error?: Error) => void): void {
    if (!this.broken) this.text += chunk.toString();
    if (!this.broken) this.screen.write(chunk);
    done(this.broken ? Object.assign(new Error('write EIO'), { code: 'EIO' }) : undefined);
  }

  resize(columns: number, rows: number): void {
    this.screen.resize(columns, rows);
    this.emit('resize');
  }

  get lines(): readonly string[] {
    const { active } = this.screen.buffer;
    return Array.from(
      { length: this.rows },
      (_, row) => active.getLine(active.baseY + row)?.translateToString(true) ?? '',
    );
  }

  get names(): readonly string[] {
    return this.lines.flatMap((line) => /^(?:> | {2})(\S+)\s+(?:up|offline|pending)\b/.exec(line)?.[1] ?? []);
  }

  /** The name in the selected row. */
  get selected(): string | undefined {
    return this.lines.flatMap((line) => /^> (\S+)/.exec(line)?.[1] ?? [])[0];
  }

  shows(text: string): boolean {
    return this.lines.some((line) => line.includes(text));
  }

  /** It is as it was before. */
  get restored(): boolean {
    return this.text.endsWith('\x1b[?7h\x1b[?25h\x1b[0m\x1b[?1049l');
  }
}

class Keyboard extends PassThrough {
  readonly isTTY = true;
  raw: boolean[] = [];

  setRawMode(raw: boolean): this {
    this.raw.push(raw);
    return this;
  }
}

function start(argv: readonly string[] = []) {
  const stdout = new Terminal();
  const stdin = new Keyboard();
  const interrupts = new EventEmitter();
  const running = run(argv, { stdin, stdout, interrupts });
  const type = async (key: string, shown: () => boolean) => {
    stdin.write(key);
    try {
      await until(shown, 'the key has its effect');
    } catch {
      throw new Error(`${JSON.stringify(key)} has no effect on:\n${stdout.lines.join('\n')}`);
    }
  };
  return { stdout, stdin, interrupts, running, type, drawn: () => until(() => stdout.names.length > 0, 'it is drawn') };
}

const recordOf = ({ agents: _, ...record }: RolloutDetail): RolloutRecord => record;

/** The stream of a rollout that is paused when `next` is settled. */
async function* followed(rollout: RolloutDetail, next: Promise<unknown>) {
  yield { event: 'started', rollout_id: rollout.rollout_id, agents: rollout.agents.length };
  await next;
  yield { event: 'rollout', rollout: { ...recordOf(rollout), state: 'paused', reason: 'for lunch' } };
  await new Promise(() => {});
}

describe('once', () => {
  it.each([
    ['top', []],
    ['top-by-name', ['--once', '--sort', 'name']],
  ])('%s', async (name, argv) => {
    const ran = await run(argv);
    expect(ran.status).toBe(0);
    expect(ran.stdout).not.toContain('\x1b');
    expectGolden(name, transcript(['top', ...argv], ran));
  });

  it('on a terminal it fits', async () => {
    const { stdout } = await run(['--once'], { columns: 80 });
    const table = stdout.slice(0, stdout.indexOf('Running'));
    expect(table).toContain('97.0%');
    for (const line of table.split('\n')) expect(line.length).toBeLessThanOrEqual(80);
    expect(stdout).not.toContain('\x1b');
  });

  it('for programs', async () => {
    const body = JSON.parse((await run(['-o', 'json'])).stdout) as { agents: unknown[]; events: unknown[] };
    expect(body).toMatchObject({ operations: [{ status: 'running' }], terminals: [{ operator: 'ada' }], events });
    expect(body.agents).toHaveLength(agents.length);
    expect(body.agents).toContainEqual({
      node_id: pending.node_id,
      name: null,
      status: 'pending',
      connected: true,
      sample: null,
    });
    expect((await run(['-o', 'name'])).stdout.split('\n')[0]).toBe('web-02');
  });

  it('for a viewer, who may not know of terminals', async () => {
    api.answer({ listTerminals: { problem: 'role_forbidden', detail: 'your role is viewer' } });
    const ran = await run([]);
    expect(ran.status).toBe(0);
    expect(ran.stdout).not.toContain('terminal');
    expect(JSON.parse((await run(['-o', 'json'])).stdout)).toMatchObject({ terminals: null });
  });
});

describe('live', () => {
  it('draws what there is, within the screen, and gives the terminal back at q', async () => {
    const { stdout, stdin, running, drawn } = start();
    await drawn();
    expect(stdout.text.startsWith('\x1b[?1049h')).toBe(true);
    expectGolden('top-live', stdout.lines.join('\n'));
    stdin.write('q');
    expect((await running).status).toBe(0);
    expect(stdout.restored).toBe(true);
    expect(stdin.raw).toEqual([true, false]);
  });

  it('sorts at a key, reverses at the same key, and selects', async () => {
    const { stdout, stdin, running, type, drawn } = start();
    await drawn();
    expect(stdout.names).toEqual(['web-02', 'web-01', 'db-01', '(web-03.example)']);
    await type('m', () => stdout.names[0] === 'web-01');
    await type('n', () => stdout.names[1] === 'db-01');
    await type('s', () => stdout.names[0] === '(web-03.example)');
    await type('d', () => stdout.names[0] === 'web-02');
    await type('d', () => stdout.names[0] === 'web-02');
    await type('\x1b[B', () => stdout.selected === stdout.names[1]);
    await type('\x1b[A', () => stdout.selected === stdout.names[0]);
    await type('G', () => stdout.selected === stdout.names.at(-1));
    stdin.write('q');
    await running;
  });

  it('follows what is measured, and the size of the terminal', async () => {
    const { stdout, stdin, running, drawn } = start();
    await drawn();
    samples.set(web1.node_id, { ...sample(99, 6.5, 20), collected_at: NOW / 1000 });
    await until(() => stdout.names[0] === 'web-01', 'the new measurement is shown');
    expect(stdout.lines.find((line) => /^[> ] web-01/.test(line))).toMatch(/▂█/);
    stdout.resize(80, 8);
    await until(() => stdout.names.length > 2 && stdout.shows('? help'), 'it fits');
    expect(stdout.shows('Running')).toBe(false);
    stdin.write('q');
    await running;
  });

  it('goes on through trouble, and tells of it', async () => {
    const { stdout, stdin, running, drawn } = start();
    await drawn();
    api.answer({ listLatestMetrics: { problem: 'store_unavailable', detail: 'the store is busy' } });
    await until(() => stdout.shows('the store is busy'), 'the trouble is reported');
    expect(stdout.names.length).toBe(4);
    api.answer(answers);
    await until(() => !stdout.shows('the store is busy'), 'it is over');
    stdin.write('q');
    await running;
  });

  it('opens an agent, and comes back', async () => {
    const { stdout, stdin, running, type, drawn } = start();
    await drawn();
    await type('n', () => stdout.selected === '(web-03.example)');
    await type('jj', () => stdout.selected === 'web-01');
    await type('\r', () => stdout.shows('Operations'));
    expect(stdout.lines[0]).toContain('agent web-01');
    expect(stdout.shows('base site: 4 changed, 1 failed')).toBe(true);
    await type('G', () => stdout.shows('platform  linux'));
    await type('\x1b', () => stdout.selected === 'web-01');
    stdin.write('q');
    await running;
  });

  it('filters while it is typed', async () => {
    const { stdout, stdin, running, type, drawn } = start();
    await drawn();
    // A key of the lists is text in a filter.
    await type('/q', () => stdout.shows('No agent matches'));
    await type('\x7frole=web !canary', () => stdout.names.join() === 'web-02');
    await type('\r', () => stdout.shows('? help'));
    expect(stdout.lines[0]).toContain('/role=web !canary  1 of 4');
    await type('\x1b', () => stdout.names.length === 4);
    stdin.write('q');
    await running;
  });

  it('follows a rollout', async () => {
    const running1 = { ...haltedRollout, state: 'running' as const, reason: null };
    const next = new EventEmitter();
    const isNext = once(next, 'next');
    api.answer({
      listRollouts: { body: { rollouts: [recordOf(running1)], total: 1, limit: 50, offset: 0 } },
      getRollout: ({ headers }) =>
        headers.accept?.includes('ndjson') ? { lines: followed(running1, isNext) } : { body: running1 },
    });
    const { stdout, stdin, running, type, drawn } = start();
    await drawn();
    await type('r', () => stdout.selected === running1.rollout_id);
    await type('\r', () => stdout.shows(`rollout ${running1.rollout_id}`) && stdout.shows('State         running'));
    next.emit('next');
    await until(() => stdout.shows('paused: for lunch'), 'what the stream says is shown');
    await type('\x1b', () => stdout.selected === running1.rollout_id);
    await type('\x1b', () => stdout.names.length === 4);
    stdin.write('q');
    await running;
  });

  it('reads again what an event is about, and shows it', async () => {
    const event = { ...(events[2] as (typeof events)[number]), id: ulid(9), summary: 'rejected db-01' };
    api.answer({
      streamEvents: { events: [event], ends: false },
      listAgents: { body: agents.filter(({ name }) => name !== 'db-01') },
    });
    const { stdout, stdin, running, drawn } = start();
    await drawn();
    await until(() => stdout.shows('rejected db-01'), 'the event is shown');
    stdin.write('q');
    await running;
  });

  it('says why a terminal does not open, and goes on', async () => {
    const { stdout, stdin, running, type, drawn } = start();
    await drawn();
    api.answer({ openTerminal: { problem: 'terminal_disabled', detail: 'this agent allows no terminals' } });
    await type('t', () => stdout.shows('no terminal on web-02: this agent allows no terminals'));
    expect(stdout.names).toHaveLength(4);
    await type('j', () => !stdout.shows('no terminal on'));
    stdin.write('q');
    expect((await running).status).toBe(0);
    expect(stdin.raw).toEqual([true, false, true, false]);
  });

  it('writes only what has changed', async () => {
    const { stdout, stdin, running, type, drawn } = start();
    await drawn();
    const before = stdout.text.length;
    await type('j', () => stdout.selected === stdout.names[1]);
    const written = stdout.text.slice(before);
    expect(written.length).toBeGreaterThan(0);
    expect(written).not.toContain('Newest events');
    stdin.write('q');
    await running;
  });

  it.each([
    ['Ctrl-C', 130, ({ stdin }: ReturnType<typeof start>) => stdin.write('\x03')],
    ['SIGTERM', 143, ({ interrupts }: ReturnType<typeof start>) => interrupts.emit('SIGTERM')],
    ['SIGHUP', 129, ({ interrupts }: ReturnType<typeof start>) => interrupts.emit('SIGHUP')],
    ['the end of its input', 0, ({ stdin }: ReturnType<typeof start>) => stdin.end()],
  ])('%s gives the terminal back', async (_what, status, end) => {
    const live = start();
    await live.drawn();
    end(live);
    expect((await live.running).status).toBe(status);
    expect(live.stdout.restored).toBe(true);
    expect(live.stdin.raw).toEqual([true, false]);
  });

  it('ends when the terminal is gone', async () => {
    const { stdout, stdin, running, drawn } = start();
    await drawn();
    stdout.broken = true;
    // Only a change is written, and this clock stands still.
    stdin.write('j');
    expect((await running).status).toBe(0);
  });

  it('draws nothing when it cannot begin', async () => {
    api.answer({ listAgents: { problem: 'unauthenticated', detail: 'log in' } });
    const { stdout, running } = start();
    expect((await running).status).toBe(4);
    expect(stdout.text).toBe('');
  });
});
