/** Any mixture of work, cuts, restarts and lost disks ends with the store holding exactly what the agents did. */

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  listOperationResults,
  listOperations,
  positionAfter,
  resultsOf,
} from '../../daemon/engine/operations/operation-store.js';
import { RunContents } from '../../daemon/engine/runs/run-contents.js';
import { isFault } from '../../src/kernel/fault.js';
import { ALICE, Bench, type ScriptedAgent } from '../support/engine.js';

const MODULES = { first: { '/a': '1', '/b': '1', '/c': '1' }, second: { '/c': '1', '/d': '1' } } as const;

type Command =
  | { readonly do: 'apply'; readonly agent: number; readonly modules: readonly (keyof typeof MODULES)[] }
  | {
      readonly do:
        | 'plan'
        | 'drift'
        | 'cancel'
        | 'take'
        | 'work'
        | 'connect'
        | 'disconnect'
        | 'crash'
        | 'lose'
        | 'repeat';
      readonly agent: number;
    }
  | { readonly do: 'deliver'; readonly agent: number; readonly inBackground: boolean }
  /** Some rounds of work as on a good day. */
  | { readonly do: 'flow'; readonly agent: number; readonly rounds: number }
  | { readonly do: 'mishap'; readonly agent: number; readonly identity: string }
  | { readonly do: 'restart' }
  | { readonly do: 'disk'; readonly isBroken: boolean }
  | { readonly do: 'wait'; readonly minutes: number };

// Mostly the first, so that more happens to one.
const agent = fc.constantFrom(0, 0, 1);
const modules = fc.constantFrom<(readonly (keyof typeof MODULES)[])[]>(['first'], ['second'], ['first', 'second']);
const simple = fc.constantFrom('plan', 'drift', 'cancel', 'disconnect', 'crash');
const busy = fc.constantFrom('take', 'work');
const faulty = fc.constantFrom('lose', 'repeat');

const command: fc.Arbitrary<Command> = fc.oneof(
  { arbitrary: fc.record({ do: fc.constant('apply'), agent, modules }), weight: 6 },
  { arbitrary: fc.record({ do: fc.constant('connect'), agent }), weight: 6 },
  { arbitrary: fc.record({ do: simple, agent }), weight: 4 },
  { arbitrary: fc.record({ do: fc.constant('flow'), agent, rounds: fc.integer({ min: 1, max: 5 }) }), weight: 10 },
  { arbitrary: fc.record({ do: busy, agent }), weight: 6 },
  { arbitrary: fc.record({ do: faulty, agent }), weight: 2 },
  { arbitrary: fc.record({ do: fc.constant('deliver'), agent, inBackground: fc.boolean() }), weight: 4 },
  {
    arbitrary: fc.record({ do: fc.constant('mishap'), agent, identity: fc.constantFrom('/a', '/c', '/d') }),
    weight: 1,
  },
  { arbitrary: fc.record({ do: fc.constant('restart') }), weight: 2 },
  { arbitrary: fc.record({ do: fc.constant('disk'), isBroken: fc.boolean() }), weight: 1 },
  { arbitrary: fc.record({ do: fc.constant('wait'), minutes: fc.constantFrom(1, 11, 16) }), weight: 2 },
);

/** Actions of operators and of the network; those that may be refused are refused with a Fault. */
class Model {
  readonly bench: Bench;
  readonly agents: readonly ScriptedAgent[];
  private readonly connections = new Map<ScriptedAgent, Promise<unknown>>();
  private readonly pending: Promise<unknown>[] = [];

  constructor(bench: Bench, agents: readonly ScriptedAgent[]) {
    this.bench = bench;
    this.agents = agents;
  }

  async run(step: Command): Promise<void> {
    const { bench } = this;
    const one = 'agent' in step ? this.agents[step.agent] : undefined;
    if (one !== undefined) await this.runOn(one, step);
    if (step.do === 'restart') {
      bench.isStoreBroken = false;
      await this.rest();
      await bench.restart();
    }
    if (step.do === 'disk') bench.isStoreBroken = step.isBroken;
    if (step.do === 'wait') {
      bench.clock.advance(step.minutes * 60_000);
      await bench.engine.tick();
    }
  }

  /** Everything is well again, and everybody does what is left to do. */
  async recover(): Promise<void> {
    this.bench.isStoreBroken = false;
    await this.rest();
    for (const one of this.agents) {
      one.diligent = true;
      if (!one.connected) one.connect();
    }
    await this.bench.settle();
  }

  private async runOn(one: ScriptedAgent, step: Command): Promise<void> {
    const { bench } = this;
    switch (step.do) {
      case 'apply':
        return this.background(bench.start(one, step.modules, { allowRemovals: 9 }));
      case 'plan':
        return this.background(bench.engine.plans.plan(this.planOf(one), ALICE));
      case 'drift':
        return this.background(
          bench.engine.drift.check({ nodeId: one.nodeId, signal: new AbortController().signal, requestedBy: ALICE }),
        );
      case 'cancel':
        return this.cancelOne(one);
      case 'flow':
        for (let round = 0; round < step.rounds; round += 1) {
          one.take();
          one.work();
          await this.deliver(one);
        }
        return;
      case 'take':
        one.take();
        return;
      case 'work':
        one.work();
        return;
      case 'lose':
        one.outbox.shift();
        return;
      case 'repeat': {
        const [first] = one.outbox;
        if (first !== undefined) one.outbox.unshift(first);
        return;
      }
      case 'connect':
        if (!one.connected) one.connect();
        return;
      case 'disconnect':
        if (one.connected) await bench.disconnect(one);
        return;
      case 'crash':
        if (one.connected) await bench.disconnect(one);
        one.crash();
        return;
      case 'deliver': {
        const delivered = this.deliver(one);
        if (!step.inBackground) await delivered;
        return;
      }
      case 'mishap':
        if (!one.mishaps.delete(step.identity)) one.mishaps.set(step.identity, 'fail');
        return;
    }
  }

  /** A connection hands over one message after the other. */
  private deliver(one: ScriptedAgent): Promise<unknown> {
    const delivered = (this.connections.get(one) ?? Promise.resolve()).then(() => this.bench.deliver(one));
    this.connections.set(one, delivered);
    return delivered;
  }

  private planOf(one: ScriptedAgent) {
    const nothing = () => undefined;
    const { signal } = new AbortController();
    return { nodeId: one.nodeId, modules: ['first'], signal, onStarted: nothing, onResult: nothing };
  }

  private async cancelOne(one: ScriptedAgent): Promise<void> {
    const [last] = await listOperations(this.bench.db, { nodeId: one.nodeId, limit: 1 });
    if (last !== undefined) this.background(this.bench.engine.applies.cancel(last.operation_id, ALICE));
  }

  private background(work: Promise<unknown>): void {
    this.pending.push(
      work.catch((error: unknown) => {
        if (!isFault(error)) throw error;
      }),
    );
  }

  /** Releases all waiters for an agent, and waits until all writes have ended. */
  private async rest(): Promise<void> {
    await Promise.all(this.connections.values());
    const all = Promise.all(this.pending);
    for (const one of this.agents) if (one.connected) await this.bench.disconnect(one);
    for (let round = 0; ; round += 1) {
      const isDone = await Promise.race([
        all.then(() => true),
        new Promise((resolve) => setTimeout(() => resolve(false), 5)),
      ]);
      if (isDone) break;
      if (round > 400) throw new Error('a caller waits forever');
      // A plan waits for its turn, or for an agent that is connected and says nothing.
      this.bench.clock.advance(round < 100 ? 0 : 60_000);
      await this.bench.engine.tick();
    }
    this.pending.length = 0;
  }
}

async function check({ bench, agents }: Model): Promise<void> {
  const ends = new Map<string, string[]>();
  for (const { type, metadata } of bench.events) {
    const id = String(metadata.operation_id);
    if (type.startsWith('state.apply_')) ends.set(id, [...(ends.get(id) ?? []), type]);
  }
  for (const one of agents) {
    for (const [key, count] of one.executions) expect([key, count]).toEqual([key, 1]);
    expect([...one.journal.keys()]).toEqual([]);
    const operations = await listOperations(bench.db, { nodeId: one.nodeId, limit: 1000 });
    for (const { operation_id: id, state, error, content_id } of operations) {
      expect(['succeeded', 'failed', 'cancelled', 'interrupted']).toContain(state);
      const rows = await listOperationResults(bench.db, id);
      const { resources } = await new RunContents().get(bench.db, content_id ?? 0);
      const stored = rows.flatMap((row) => resultsOf(row, resources));
      expect({ id, state, error, stored }).toEqual({ id, state, error, stored: one.history.get(id) ?? [] });
      expect([0, ...rows.map(positionAfter)].slice(0, -1)).toEqual(rows.map(({ position }) => position));
      const events = ends.get(id) ?? [];
      expect(events[0]).toBe('state.apply_started');
      expect(events.at(-1)).toBe(`state.apply_${state}`);
      expect(new Set(events).size).toBe(events.length);
    }
    expect(new Set(one.history.keys()).size).toBeLessThanOrEqual(operations.length);
    const { applied } = await bench.engine.state.get(one.nodeId);
    expect(new Set(applied.map(({ identity }) => identity))).toEqual(new Set(one.machine.keys()));
  }
}

describe('the engine under any fate', () => {
  it('ends with the store holding what the agents did, once each', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(command, { minLength: 80, maxLength: 160, size: 'max' }), async (steps) => {
        const bench = await new Bench().open();
        try {
          for (const [name, files] of Object.entries(MODULES)) await bench.upload(name, files);
          const agents = [await bench.agent('1'), await bench.agent('2')];
          // As an agent of an earlier release.
          Object.assign(agents[1] ?? {}, { isBrief: false });
          const model = new Model(bench, agents);
          for (const one of model.agents) one.diligent = false;
          for (const step of steps) await model.run(step);
          await model.recover();
          await check(model);
          // Nothing is left behind that would keep the agents from work.
          for (const one of model.agents) {
            one.mishaps.clear();
            const last = await bench.apply(one, ['first', 'second'], { allowRemovals: 9 });
            expect(last.status).toBe('succeeded');
          }
        } finally {
          await bench.close();
        }
      }),
      { numRuns: Number(process.env.ORCH_MODEL_RUNS ?? 40), endOnFailure: true },
    );
  });
});
