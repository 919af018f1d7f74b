/** `orch top`: once for a pipe, live on a terminal, and the terminal as it was afterwards. */
import { EventEmitter } from 'node:events';
import { PassThrough, Writable } from 'node:stream';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { expectGolden, NOW, type RunOptions, runOrch, transcript } from '../support/cli.js';
import { agents, db, events, operations, operators, pending, readings, web1, web2 } from '../support/cli-world.js';
import { type Answers, type FakeApi, loggedIn, startFakeApi } from '../support/fake-api.js';
import { until } from '../support/orch.js';

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
beforeEach(() => api.answer(answers));
afterAll(async () => {
  await api.stop();
  expect(api.violations).toEqual([]);
});

const run = (argv: readonly string[], options: RunOptions = {}) =>
  runOrch(['top', ...argv], { ...options, env: { ...loggedIn(api), NO_COLOR: '1' } });

/** A terminal that shows what was drawn last. */
class Terminal extends Writable {
  readonly isTTY = true;
  columns = 100;
  rows = 24;
  text = '';
  broken = false;

  override _write(chunk: Buffer, _encoding: string, done: (error?: Error) => void): void {
    if (!this.broken) this.text += chunk.toString();
    done(this.broken ? Object.assign(new Error('write EIO'), { code: 'EIO' }) : undefined);
  }

  /** The lines of the newest picture. */
  get lines(): readonly string[] {
    const last = this.text.split('\x1b[H').at(-1) ?? '';
    return last.split('\x1b[J')[0]?.replaceAll('\x1b[K', '').split('\r\n') ?? [];
  }

  get names(): readonly string[] {
    return this.lines.flatMap((line) => /^(\S+)\s+(?:up|offline|pending)\b/.exec(line)?.[1] ?? []);
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
    await until(shown, `${JSON.stringify(key)} has its effect on:\n${stdout.lines.join('\n')}`);
  };
  return { stdout, stdin, interrupts, running, type, drawn: () => until(() => stdout.names.length > 0, 'it is drawn') };
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
    expect(stdout.lines.length).toBeLessThanOrEqual(24);
    expectGolden('top-live', stdout.lines.join('\n'));
    stdin.write('q');
    expect((await running).status).toBe(0);
    expect(stdout.restored).toBe(true);
    expect(stdin.raw).toEqual([true, false]);
  });

  it('sorts at a key, and scrolls', async () => {
    const { stdout, stdin, running, type, drawn } = start();
    await drawn();
    expect(stdout.names).toEqual(['web-02', 'web-01', 'db-01', '(web-03.exam…']);
    await type('m', () => stdout.names[0] === 'web-01');
    await type('n', () => stdout.names[1] === 'db-01');
    await type('s', () => stdout.names[0] === '(web-03.exam…');
    await type('d', () => stdout.names[0] === 'web-02');
    await type('\x1b[B', () => stdout.names[0] === 'db-01');
    await type('\x1b[A', () => stdout.names[0] === 'web-02');
    await type('\x1b[6~', () => stdout.names.length === 1);
    stdin.write('q');
    await running;
  });

  it('follows what is measured, and the size of the terminal', async () => {
    const { stdout, stdin, running, drawn } = start();
    await drawn();
    samples.set(web1.node_id, { ...sample(99, 6.5, 20), collected_at: NOW / 1000 });
    await until(() => stdout.names[0] === 'web-01', 'the new measurement is shown');
    expect(stdout.lines.find((line) => line.startsWith('web-01'))).toContain('▂█');
    stdout.rows = 8;
    stdout.emit('resize');
    await until(() => stdout.lines.length <= 8, 'it fits');
    expect(stdout.names.length).toBeGreaterThan(2);
    samples.set(web1.node_id, sample(12.5, 6.5, 20));
    stdin.write('q');
    await running;
  });

  it('goes on through trouble, and tells of it', async () => {
    const { stdout, stdin, running, drawn } = start();
    await drawn();
    api.answer({ listLatestMetrics: { problem: 'store_unavailable', detail: 'the store is busy' } });
    await until(() => stdout.lines.includes('the store is busy'), 'the trouble is told');
    expect(stdout.names.length).toBe(4);
    api.answer(answers);
    await until(() => !stdout.lines.includes('the store is busy'), 'it is over');
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
    const { stdout, running, drawn } = start();
    await drawn();
    stdout.broken = true;
    expect((await running).status).toBe(0);
  });

  it('draws nothing when it cannot begin', async () => {
    api.answer({ listAgents: { problem: 'unauthenticated', detail: 'log in' } });
    const { stdout, running } = start();
    expect((await running).status).toBe(4);
    expect(stdout.text).toBe('');
  });
});
