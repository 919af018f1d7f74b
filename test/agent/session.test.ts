/** A session over a real WebSocket, with the real engine behind it. */
import { existsSync, readdirSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { WebSocket, WebSocketServer } from 'ws';
import { Engine } from '../../src/agent/engine/engine.js';
import { Journal } from '../../src/agent/journal.js';
import { runSession, type SessionEnd, type SessionOptions } from '../../src/agent/session.js';
import type { TerminalReport } from '../../src/agent/terminal/terminals.js';
import { silentLogger } from '../../src/kernel/logger.js';
import { PROTOCOL_VERSION } from '../../src/kernel/version.js';
import { summarize } from '../../src/resources/result.js';
import type { RunItem } from '../../src/wire/messages.js';
import {
  clock,
  content,
  directory,
  file,
  head,
  host,
  place,
  runId,
  ScriptedOrchestrator,
  whole,
} from '../support/agent.js';
import { ManualClock } from '../support/database.js';
import { until } from '../support/until.js';

const SAMPLE = {
  collected_at: 1_700_000_000,
  cpu_usage: 12.5,
  memory_used: 1,
  memory_total: 2,
  disk_used: null,
  disk_total: null,
  uptime: 3,
};

interface Link {
  readonly orchestrator: ScriptedOrchestrator;
  readonly end: Promise<SessionEnd>;
  readonly abort: () => void;
  readonly statuses: (readonly [string, string | null])[];
}

function startEngine(dataDir = place()): Engine {
  const engine = new Engine({ journal: new Journal(dataDir), createHost: host, clock, logger: silentLogger });
  onTestFinished(() => engine.stop());
  return engine;
}

async function connect(
  engine: Engine,
  more: Partial<SessionOptions> = {},
  server: ConstructorParameters<typeof WebSocketServer>[0] = {},
): Promise<Link> {
  const listener = new WebSocketServer({ port: 0, host: '127.0.0.1', ...server });
  const stopper = new AbortController();
  onTestFinished(() => {
    stopper.abort();
    for (const client of listener.clients) client.terminate();
    listener.close();
  });
  await new Promise((resolve) => listener.once('listening', resolve));
  const accepted = new Promise<ScriptedOrchestrator>((resolve) => {
    listener.once('connection', (socket) => resolve(new ScriptedOrchestrator(socket)));
  });
  const socket = new WebSocket(`ws://127.0.0.1:${(listener.address() as AddressInfo).port}`);
  await new Promise((resolve) => socket.once('open', resolve));
  socket.pause();
  const statuses: (readonly [string, string | null])[] = [];
  const end = runSession(
    {
      socket,
      engine,
      clock,
      logger: silentLogger,
      facts: () => ({ attributes: { platform: 'linux', hostname: 'box' }, parts: {}, volatile: {} }),
      sample: async () => SAMPLE,
      onStatus: (status, name) => statuses.push([status, name]),
      ...more,
    },
    stopper.signal,
  );
  return { orchestrator: await accepted, end, abort: () => stopper.abort(), statuses };
}

const itemsOf = (orchestrator: ScriptedOrchestrator, number: number): readonly RunItem[] =>
  orchestrator.heard.flatMap((one) =>
    one.type === 'run_results' && one.run_id === runId(number) ? whole(one.items) : [],
  );

describe('the versions of packages', () => {
  it('are read when the orchestrator asks, and again once their database has changed', async () => {
    let isChanged = false;
    const asked: (readonly string[] | undefined)[] = [];
    const { orchestrator } = await connect(startEngine(), {
      packages: {
        hasChanged: () => isChanged,
        read: async (names) => {
          isChanged = false;
          asked.push(names);
          return { versions: { nginx: `1.${asked.length}` }, problem: null };
        },
      },
      pace: { pingInterval: 1_000, deadAfter: 5_000, factsInterval: 5 },
    });
    const reports = () => orchestrator.heard.filter((message) => message.type === 'packages');
    orchestrator.status('approved', 'web-01');
    await orchestrator.next('inventory');
    orchestrator.say({ type: 'packages_request', request_id: 7, names: ['nginx'] });
    await orchestrator.until(() => reports()[0]);
    isChanged = true;
    await orchestrator.until(() => reports()[1]);
    expect(reports()).toEqual([
      { type: 'packages', versions: { nginx: '1.1' }, problem: null, request_id: 7 },
      { type: 'packages', versions: { nginx: '1.2' }, problem: null },
    ]);
    expect(asked).toEqual([['nginx'], undefined]);
  });
});

describe('a session', () => {
  it('says hello, and nothing else until it is approved', async () => {
    const engine = startEngine();
    const facts = { platform: 'linux', hostname: 'box' };
    let looks = 0;
    const { orchestrator, statuses } = await connect(engine, {
      facts: () => {
        looks += 1;
        return { attributes: { ...facts, cpus: String(performance.now()) }, parts: {}, volatile: {} };
      },
      pace: { pingInterval: 1_000, deadAfter: 5_000, factsInterval: 5 },
    });
    expect(await orchestrator.next('hello')).toMatchObject({
      protocol_version: PROTOCOL_VERSION,
      hostname: 'box',
      attributes: { platform: 'linux', hostname: 'box' },
    });
    orchestrator.status('pending');
    engine.begin(head(1), content([]));
    await until(() => looks > 10, 'the machine was looked at');
    expect(orchestrator.heard.map(({ type }) => type)).toEqual(['hello']);
    orchestrator.status('approved', 'web-01');
    expect((await orchestrator.next('inventory')).runs).toEqual([{ run_id: runId(1), state: 'finished', results: 0 }]);
    expect((await orchestrator.next('attributes')).attributes).toMatchObject(facts);
    orchestrator.status('approved', 'web-02');
    await orchestrator.next('attributes', 3);
    expect(orchestrator.heard.filter(({ type }) => type === 'inventory')).toHaveLength(1);
    expect(statuses).toEqual([
      ['pending', null],
      ['approved', 'web-01'],
      ['approved', 'web-02'],
    ]);
  });

  it('tells of its terminals at the approval and whenever it says so, and passes on what is asked of them', async () => {
    const asked: string[] = [];
    let tell: (report: TerminalReport) => void = () => undefined;
    const list: TerminalReport = { type: 'terminals', sessions: [{ session_id: runId(5), attached: false }] };
    const { orchestrator } = await connect(startEngine(), {
      terminals: {
        list: () => list,
        handle: ({ type }) => void asked.push(type),
        subscribe: (listener) => {
          tell = listener;
          return () => undefined;
        },
      },
    });
    await orchestrator.next('hello');
    tell(list);
    await orchestrator.approve();
    expect(await orchestrator.next('terminals')).toEqual(list);
    tell({ ...list, sessions: [] });
    expect((await orchestrator.next('terminals', 2)).sessions).toEqual([]);
    orchestrator.say({ type: 'terminal_attach', session_id: runId(5), ticket: 'x'.repeat(20) });
    orchestrator.say({ type: 'terminal_close', session_id: runId(5) });
    orchestrator.say({ type: 'metrics_request', request_id: 1 });
    await orchestrator.next('metrics');
    expect(asked).toEqual(['terminal_attach', 'terminal_close']);
  });

  it('refuses terminals where it has none', async () => {
    const { orchestrator } = await connect(startEngine());
    await orchestrator.approve();
    orchestrator.say({
      type: 'terminal_open',
      session_id: runId(5),
      ticket: 'x'.repeat(20),
      operator: 'ada',
      kind: 'shell',
      cols: 80,
      rows: 24,
      term: '',
      shell: null,
      command: null,
      timeout_secs: null,
      stdin: false,
    });
    expect((await orchestrator.next('terminal_answer')).error).toMatchObject({ code: 'terminal_unsupported' });
  });

  it('answers with the newest measurement when it is asked, and only when it is approved', async () => {
    const { orchestrator } = await connect(startEngine());
    await orchestrator.approve();
    orchestrator.say({ type: 'metrics_request', request_id: 7 });
    expect(await orchestrator.next('metrics')).toEqual({ type: 'metrics', request_id: 7, sample: SAMPLE });
    const pending = await connect(startEngine());
    await pending.orchestrator.next('hello');
    pending.orchestrator.say({ type: 'metrics_request', request_id: 8 });
    expect(await pending.end).toMatchObject({ code: 1008 });
  });

  it('takes runs in parts, reports them, and forgets what is acknowledged', async () => {
    const engine = startEngine();
    const root = place();
    const { orchestrator } = await connect(engine);
    expect((await orchestrator.approve()).runs).toEqual([]);
    const wanted = content([
      directory(join(root, 'd')),
      ...Array.from({ length: 50 }, (_, index) => file(join(root, `d/f${index}`))),
    ]);
    orchestrator.run(head(1, { mode: 'plan' }), wanted);
    expect(await orchestrator.next('run_finished')).toMatchObject({ end: 'succeeded', results: 51 });
    orchestrator.run(head(2), wanted);
    expect(await orchestrator.next('run_finished', 2)).toMatchObject({
      run_id: runId(2),
      end: 'succeeded',
      results: 51,
    });
    expect(summarize(itemsOf(orchestrator, 2).map(({ result }) => result))).toMatchObject({ total: 51, changed: 51 });
    expect(await engine.inventory()).toHaveLength(1);
    orchestrator.say({ type: 'run_ack', run_id: runId(2) });
    orchestrator.say({ type: 'run_cancel', run_id: runId(2) }, { type: 'run_resume', run_id: runId(2), from: 0 });
    orchestrator.run(head(3, { mode: 'drift' }), wanted);
    expect(await orchestrator.next('run_finished', 3)).toMatchObject({ run_id: runId(3), end: 'succeeded' });
    expect(await engine.inventory()).toEqual([]);
  });

  it('goes on with an apply when it is cut, and the next one tells what is missing', async () => {
    const engine = startEngine();
    const root = place();
    const first = await connect(engine);
    await first.orchestrator.approve();
    const chain = Array.from({ length: 30 }, (_, index) =>
      file(join(root, `f${index}`), {}, { after: index === 0 ? [] : [index - 1] }),
    );
    first.orchestrator.run(head(1), content(chain));
    await first.orchestrator.next('run_results', 2);
    first.orchestrator.socket.terminate();
    expect((await first.end).code).toBe(1006);
    const known = itemsOf(first.orchestrator, 1).length;

    const second = await connect(engine);
    expect((await second.orchestrator.approve()).runs).toMatchObject([{ run_id: runId(1) }]);
    second.orchestrator.say({ type: 'run_resume', run_id: runId(1), from: known });
    const finished = await second.orchestrator.next('run_finished');
    expect(finished).toMatchObject({ end: 'succeeded', results: 30 });
    const sequence = new Map(itemsOf(first.orchestrator, 1).map((item, at) => [at, item.index]));
    for (const message of second.orchestrator.heard) {
      if (message.type !== 'run_results') continue;
      for (const [at, item] of message.items.entries()) sequence.set(message.from + at, item.index);
    }
    expect([...sequence].sort(([a], [b]) => a - b).map(([, index]) => index)).toEqual(chain.map((_, index) => index));
    expect(readdirSync(root)).toHaveLength(30);
  });

  it('does a run once that is delivered twice, over two connections', async () => {
    const engine = startEngine();
    const root = place();
    const wanted = content([file(join(root, 'f'))]);
    const first = await connect(engine);
    await first.orchestrator.approve();
    first.orchestrator.run(head(1), wanted);
    first.orchestrator.run(head(1), wanted);
    await first.orchestrator.next('run_finished');
    first.orchestrator.socket.terminate();
    await first.end;
    const second = await connect(engine);
    await second.orchestrator.approve();
    second.orchestrator.run(head(1), wanted);
    expect(await second.orchestrator.next('run_finished')).toMatchObject({ end: 'succeeded', results: 1 });
    expect(itemsOf(second.orchestrator, 1)).toHaveLength(1);
  });

  it('cancels', async () => {
    const engine = startEngine();
    const root = place();
    const { orchestrator } = await connect(engine);
    await orchestrator.approve();
    const chain = Array.from({ length: 400 }, (_, index) =>
      file(join(root, `f${index}`), {}, { after: index === 0 ? [] : [index - 1] }),
    );
    orchestrator.run(head(1), content(chain));
    await orchestrator.next('run_results');
    orchestrator.say({ type: 'run_cancel', run_id: runId(1) });
    expect(await orchestrator.next('run_finished')).toMatchObject({ end: 'cancelled', results: 400 });
    const skipped = itemsOf(orchestrator, 1).filter(({ result }) => result.status === 'skipped');
    expect(readdirSync(root)).toHaveLength(400 - skipped.length);
    expect(skipped.length).toBeGreaterThan(0);
  });

  it('drops a run that is cancelled before it is whole', async () => {
    const engine = startEngine();
    const { orchestrator } = await connect(engine);
    await orchestrator.approve();
    orchestrator.say({ ...head(1), parts: 2 });
    orchestrator.say({ type: 'run_cancel', run_id: runId(1) });
    orchestrator.run(head(2), content([]));
    expect(await orchestrator.next('run_finished')).toMatchObject({ run_id: runId(2), end: 'succeeded' });
  });

  it.each<[string, (orchestrator: ScriptedOrchestrator) => void]>([
    ['is not JSON', ({ socket }) => socket.send('{"type":')],
    ['is binary', ({ socket }) => socket.send(Buffer.from('{}'))],
    ['names no run', ({ socket }) => socket.send(JSON.stringify({ type: 'run_ack', run_id: '../../etc/passwd' }))],
    [
      'is a part of nothing',
      (o) => o.say({ type: 'run_part', run_id: runId(1), part: 0, resources: [], removals: [] }),
    ],
    [
      'is a part out of turn',
      (o) =>
        o.say({ ...head(1), parts: 2 }, { type: 'run_part', run_id: runId(1), part: 1, resources: [], removals: [] }),
    ],
    [
      'holds less than was announced',
      (o) =>
        o.say(
          { ...head(1), resources: 1 },
          { type: 'run_part', run_id: runId(1), part: 0, resources: [], removals: [] },
        ),
    ],
    ['begins a run within another', (o) => o.say({ ...head(1), parts: 2 }, { ...head(2), parts: 2 })],
  ])('closes when a message %s, and the engine goes on', async (_, speak) => {
    const engine = startEngine();
    const { orchestrator, end } = await connect(engine);
    await orchestrator.approve();
    speak(orchestrator);
    const closed = await orchestrator.closed;
    expect(closed.code).toBe(1008);
    expect(closed.reason).not.toBe('');
    expect((await end).code).toBe(1008);
    const again = await connect(engine);
    await again.orchestrator.approve();
    again.orchestrator.run(head(7), content([]));
    expect(await again.orchestrator.next('run_finished')).toMatchObject({ end: 'succeeded' });
  });

  it('closes when it is to work before it is approved', async () => {
    const { orchestrator, end } = await connect(startEngine());
    await orchestrator.next('hello');
    orchestrator.status('pending');
    orchestrator.run(head(1), content([file('/tmp/never')]));
    expect(await end).toMatchObject({ code: 1008, reason: expect.stringContaining('before the approval') });
    expect(existsSync('/tmp/never')).toBe(false);
  });

  it('passes over messages and members that a newer orchestrator may send', async () => {
    const { orchestrator } = await connect(startEngine());
    await orchestrator.approve();
    orchestrator.socket.send(JSON.stringify({ type: 'weather_request', request_id: 1, where: { sky: 'blue' } }));
    orchestrator.socket.send(JSON.stringify({ type: 'metrics_request', request_id: 7, detail: 'all' }));
    expect(await orchestrator.next('metrics')).toMatchObject({ request_id: 7 });
  });

  it('closes when the orchestrator speaks another version', async () => {
    const { orchestrator, end } = await connect(startEngine());
    await orchestrator.next('hello');
    orchestrator.say({ type: 'status', status: 'approved', protocol_version: 7, name: 'x' });
    expect(await end).toMatchObject({ code: 4426, reason: 'this agent does not speak protocol version 7' });
  });

  it('tells why the orchestrator closed it', async () => {
    const { orchestrator, end } = await connect(startEngine());
    await orchestrator.next('hello');
    orchestrator.socket.close(4403, 'this agent was rejected by an operator');
    expect(await end).toEqual({ code: 4403, reason: 'this agent was rejected by an operator' });
  });

  it('gives up on an orchestrator that has fallen silent', async () => {
    const pace = { pingInterval: 10, deadAfter: 100, factsInterval: 60_000 };
    const { orchestrator, end } = await connect(startEngine(), { pace }, { autoPong: false });
    await orchestrator.approve();
    expect(await end).toMatchObject({ reason: 'the orchestrator was silent for too long' });
  });

  it('stays with one that answers pings and says nothing else', async () => {
    const pace = { pingInterval: 10, deadAfter: 100, factsInterval: 60_000 };
    const time = new ManualClock();
    const { orchestrator, end, abort } = await connect(startEngine(), { pace, clock: time });
    await orchestrator.approve();
    let pings = 0;
    orchestrator.socket.on('ping', () => {
      pings += 1;
    });
    // A clock of this process, which a pause of the machine moves by one step.
    const ticking = setInterval(() => time.advance(2), 1);
    onTestFinished(() => clearInterval(ticking));
    // Four times the silence that ends a link.
    await until(() => pings >= 20, 'the agent has pinged for a while');
    expect(orchestrator.socket.readyState).toBe(WebSocket.OPEN);
    abort();
    expect(await end).toEqual({ code: 1000, reason: 'the agent stops' });
  });

  it('stops even when the other side does not answer', async () => {
    const { orchestrator, end, abort } = await connect(startEngine());
    await orchestrator.approve();
    orchestrator.socket.pause();
    abort();
    expect(await end).toMatchObject({ code: 1000 });
  });

  it('ends a plan with its connection', async () => {
    const engine = startEngine();
    const many = content(Array.from({ length: 5_000 }, (_, index) => file(`/nowhere/f${index}`)));
    const first = await connect(engine);
    await first.orchestrator.approve();
    first.orchestrator.run(head(1, { mode: 'plan' }), many, 200_000);
    await first.orchestrator.next('run_accepted');
    first.orchestrator.socket.terminate();
    await first.end;
    const second = await connect(engine);
    expect((await second.orchestrator.approve()).runs).toEqual([]);
    second.orchestrator.run(head(2), content([]));
    expect(await second.orchestrator.next('run_finished')).toMatchObject({ run_id: expect.stringMatching(/[12]$/) });
  });
});
