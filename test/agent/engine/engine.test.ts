/** The engine in this process, with its journal and real files. */
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { Engine } from '../../../src/agent/engine/engine.js';
import { Journal } from '../../../src/agent/journal.js';
import { Fault } from '../../../src/kernel/fault.js';
import { silentLogger } from '../../../src/kernel/logger.js';
import type { Host } from '../../../src/resources/host.js';
import {
  clock,
  content,
  directory,
  file,
  head,
  host,
  Listener,
  place,
  removal,
  resultAt,
  runId,
  summaryOf,
} from '../../support/agent.js';

/** Holds every change of the machine up until it is opened. */
class Gate {
  private open: () => void = () => undefined;
  private readonly opened = new Promise<void>((resolve) => {
    this.open = resolve;
  });
  reached: Promise<void>;
  private reach: () => void = () => undefined;

  constructor() {
    this.reached = new Promise((resolve) => {
      this.reach = resolve;
    });
  }

  release(): void {
    this.open();
  }

  host(): Host {
    const real = host();
    return {
      platform: real.platform,
      accounts: () => real.accounts(),
      observe: (requests) => real.observe(requests),
      commit: async (steps) => {
        this.reach();
        await this.opened;
        return real.commit(steps);
      },
      run: (command) => real.run(command),
    };
  }
}

function start(dataDir: string, createHost: () => Host = host) {
  const journal = new Journal(dataDir);
  const engine = new Engine({ journal, createHost, clock, logger: silentLogger });
  onTestFinished(() => engine.stop());
  return { engine, journal, heard: new Listener(engine) };
}

describe('the engine', () => {
  it('plans, applies and checks, each from acceptance to end', async () => {
    const [root, { engine, heard }] = [place(), start(place())];
    const wanted = content([directory(join(root, 'd')), file(join(root, 'd/f'))]);
    engine.begin(head(1, { mode: 'plan', generation: 0 }), wanted);
    const planned = await heard.finished(1);
    expect(planned).toMatchObject({ end: 'succeeded', results: 2, error: null });
    expect(planned.observed).toMatch(/^[0-9a-f]{64}$/);
    expect(heard.of(1).map(({ type }) => type)).toEqual(['run_accepted', 'run_results', 'run_finished']);
    expect(summaryOf(heard.items(1))).toEqual(['d create pending', 'f create pending']);
    engine.begin(head(2, { expect: planned.observed }), wanted);
    expect(await heard.finished(2)).toMatchObject({ end: 'succeeded', results: 2, observed: null });
    expect(summaryOf(heard.items(2))).toEqual(['d create changed', 'f create changed']);
    engine.begin(head(3, { mode: 'drift', generation: 0 }), wanted);
    expect(await heard.finished(3)).toMatchObject({ end: 'succeeded', results: 2, observed: null });
    engine.begin(head(4, { expect: planned.observed }), wanted);
    expect(await heard.finished(4)).toMatchObject({ end: 'refused', results: 0, error: { code: 'plan_stale' } });
    expect(await engine.inventory()).toEqual([
      { run_id: runId(2), state: 'finished', results: 2 },
      { run_id: runId(4), state: 'finished', results: 0 },
    ]);
    engine.acknowledge(runId(2));
    engine.acknowledge(runId(4));
    expect(await engine.inventory()).toEqual([]);
  });

  it('tells an apply again that is delivered twice, and does it once', async () => {
    const root = place();
    const { engine, heard } = start(place());
    const wanted = content([file(join(root, 'f'))]);
    engine.begin(head(1), wanted);
    engine.begin(head(1), wanted);
    await heard.finished(1);
    heard.clear();
    writeFileSync(join(root, 'f'), 'by hand');
    engine.begin(head(1), wanted);
    expect(heard.of(1).map(({ type }) => type)).toEqual(['run_accepted', 'run_results', 'run_finished']);
    expect(await heard.finished(1)).toMatchObject({ end: 'succeeded', results: 1 });
    expect(summaryOf(heard.items(1))).toEqual(['f create changed']);
  });

  it('attaches to an apply that runs when it is delivered again', async () => {
    const gate = new Gate();
    const root = place();
    const { engine, heard } = start(place(), () => gate.host());
    const wanted = content([file(join(root, 'f'))]);
    engine.begin(head(1), wanted);
    await gate.reached;
    heard.clear();
    engine.begin(head(1), wanted);
    expect(heard.of(1).map(({ type }) => type)).toEqual(['run_accepted']);
    gate.release();
    expect(await heard.finished(1)).toMatchObject({ end: 'succeeded', results: 1 });
  });

  it('refuses an apply that is not newer than all before it, also after a restart', async () => {
    const dataDir = place();
    const { engine, heard } = start(dataDir);
    engine.begin(head(1, { generation: 5 }), content([]));
    await heard.finished(1);
    engine.begin(head(2, { generation: 5 }), content([]));
    expect(await heard.finished(2)).toMatchObject({ end: 'refused', error: { code: 'stale_generation' } });
    engine.acknowledge(runId(1));
    await engine.stop();
    const later = start(dataDir);
    later.engine.begin(head(3, { epoch: 0, generation: 9 }), content([]));
    expect(await later.heard.finished(3)).toMatchObject({ end: 'refused', error: { code: 'stale_generation' } });
    later.engine.begin(head(4, { epoch: 2, generation: 1 }), content([]));
    expect(await later.heard.finished(4)).toMatchObject({ end: 'succeeded' });
  });

  it('lets nothing begin beside an apply', async () => {
    const gate = new Gate();
    const { engine, heard } = start(place(), () => gate.host());
    engine.begin(head(1), content([file(join(place(), 'f'))]));
    await gate.reached;
    engine.begin(head(2), content([]));
    engine.begin(head(3, { mode: 'plan' }), content([]));
    for (const number of [2, 3]) {
      const finished = await heard.finished(number);
      expect(finished).toMatchObject({ end: 'refused', results: 0, error: { code: 'operation_in_progress' } });
    }
    gate.release();
    expect(await heard.finished(1)).toMatchObject({ end: 'succeeded' });
    engine.begin(head(4), content([]));
    expect(await heard.finished(4)).toMatchObject({ end: 'succeeded' });
  });

  it('ends a plan for an apply, which is in the journal before the plan is over', async () => {
    const many = content(Array.from({ length: 3_000 }, (_, index) => file(`/nowhere/f${index}`)));
    const { engine, heard } = start(place());
    engine.begin(head(1, { mode: 'plan' }), many);
    engine.begin(head(2, { mode: 'drift' }), many);
    await heard.accepted(1);
    engine.begin(head(3), content([]));
    expect(heard.of(3).map(({ type }) => type)).toEqual(['run_accepted']);
    expect(await engine.inventory()).toEqual([{ run_id: runId(3), state: 'running', results: 0 }]);
    expect(await heard.finished(3)).toMatchObject({ end: 'succeeded' });
    expect(await heard.finished(1)).toMatchObject({ end: 'cancelled', observed: null });
    expect(await heard.finished(2)).toMatchObject({ end: 'cancelled', results: 0 });
  });

  it('cancels an apply at a boundary, and one that has not begun altogether', async () => {
    const gate = new Gate();
    const root = place();
    const { engine, heard } = start(place(), () => gate.host());
    engine.begin(
      head(1),
      content([file(join(root, 'a')), file(join(root, 'b'), {}, { after: [0] })], [removal(file('/x'))]),
    );
    await gate.reached;
    engine.cancel(runId(1));
    engine.cancel(runId(9));
    gate.release();
    expect(await heard.finished(1)).toMatchObject({ end: 'cancelled', results: 3, error: null });
    expect(summaryOf(heard.items(1))).toEqual([
      'a create changed',
      'b none skipped cancelled',
      'x none skipped cancelled',
    ]);
    engine.begin(head(2), content([file(join(root, 'c'))]));
    engine.cancel(runId(2));
    expect(await heard.finished(2)).toMatchObject({ end: 'cancelled', results: 1 });
    expect(existsSync(join(root, 'c'))).toBe(false);
  });

  it('tells results from a position, and nothing of what it does not know', async () => {
    const root = place();
    const { engine, heard } = start(place());
    engine.begin(head(1), content(['a', 'b', 'c'].map((name) => file(join(root, name)))));
    await heard.finished(1);
    heard.clear();
    engine.resume(runId(1), 2);
    engine.resume(runId(2), 0);
    expect(heard.reports).toMatchObject([
      { type: 'run_results', from: 2, items: [{ index: 2 }] },
      { type: 'run_finished', results: 3, end: 'succeeded' },
    ]);
    heard.clear();
    engine.resume(runId(1), 7);
    expect(heard.reports).toMatchObject([{ type: 'run_finished', results: 3 }]);
  });

  it('goes on with an apply when the connection is lost, not with a plan', async () => {
    const gate = new Gate();
    const root = place();
    const { engine, heard } = start(place(), () => gate.host());
    engine.begin(head(1), content([file(join(root, 'f'))]));
    await gate.reached;
    engine.disconnected();
    gate.release();
    expect(await heard.finished(1)).toMatchObject({ end: 'succeeded' });
    engine.begin(head(2, { mode: 'plan' }), content(Array.from({ length: 2_000 }, (_, n) => file(`/nowhere/${n}`))));
    await heard.accepted(2);
    engine.disconnected();
    expect(await heard.finished(2)).toMatchObject({ end: 'cancelled' });
  });

  it('reports an apply with large results in messages that the link takes', async () => {
    const root = place();
    const { engine, heard } = start(place());
    const large = content(
      Array.from({ length: 30 }, (_, index) => file(join(root, `f${index}`), { content: 'line\n'.repeat(12_000) })),
    );
    engine.begin(head(1), large);
    expect(await heard.finished(1)).toMatchObject({ end: 'succeeded', results: 30 });
    const sizes = heard.of(1).map((report) => JSON.stringify(report).length);
    expect(Math.max(...sizes)).toBeLessThan(300 * 1024);
    expect(heard.items(1)).toHaveLength(30);
  });

  it('survives what it cannot run', async () => {
    const { engine, heard } = start(place(), () => {
      throw new Fault('unsupported_on_platform', 'no such machine');
    });
    engine.begin(head(1), content([file('/x')]));
    expect(await heard.finished(1)).toMatchObject({ end: 'failed', error: { code: 'unsupported_on_platform' } });
    engine.begin(head(2, { mode: 'plan' }), content([file('/x')]));
    expect(await heard.finished(2)).toMatchObject({ end: 'failed', error: { code: 'unsupported_on_platform' } });
  });
});

describe('an agent that stops', () => {
  it('finishes its group, tells the rest as interrupted, and keeps it for the next connection', async () => {
    const [dataDir, root, gate] = [place(), place(), new Gate()];
    const { engine, heard } = start(dataDir, () => gate.host());
    engine.begin(head(1), content([file(join(root, 'a')), file(join(root, 'b'), {}, { after: [0] })]));
    await gate.reached;
    const stopped = engine.stop();
    engine.begin(head(2), content([]));
    expect(await heard.finished(2)).toMatchObject({ end: 'refused', error: { code: 'interrupted' } });
    gate.release();
    await stopped;
    const later = start(dataDir);
    expect(await later.engine.inventory()).toEqual([{ run_id: runId(1), state: 'finished', results: 2 }]);
    later.engine.resume(runId(1), 0);
    expect(await later.heard.finished(1)).toMatchObject({ end: 'interrupted', error: { code: 'interrupted' } });
    expect(summaryOf(later.heard.items(1))).toEqual(['a create changed', 'b none skipped interrupted']);
  });
});

describe('an apply whose process died', () => {
  it('is reported as it is found, and nothing is done again', async () => {
    const [dataDir, root] = [place(), place()];
    mkdirSync(join(root, 'was-done'));
    writeFileSync(join(root, 'written'), 'x');
    writeFileSync(join(root, 'half'), 'old');
    writeFileSync(join(root, 'to-remove'), 'x');
    const wanted = content(
      [
        directory(join(root, 'was-done')),
        file(join(root, 'written')),
        file(join(root, 'half')),
        file(join(root, 'not-begun')),
      ],
      [removal(file(join(root, 'removed'))), removal(file(join(root, 'to-remove')))],
    );
    const journal = new Journal(dataDir);
    journal.accept({ id: runId(1), epoch: 1, generation: 1, content: wanted });
    journal.intend(runId(1), [
      { index: 0, action: 'create', existed: false },
      { index: 1, action: 'create', existed: false },
      { index: 2, action: 'update', existed: true },
      { index: 4, action: 'remove', existed: true },
      { index: 5, action: 'remove', existed: true },
    ]);
    const done = { ...wanted.resources[0] };
    journal.record(runId(1), [
      {
        index: 0,
        existed: false,
        result: {
          module: 'site',
          kind: 'directory-unix',
          identity: String(done.identity),
          id: null,
          name: null,
          action: 'create',
          status: 'changed',
          changes: [],
          diff: null,
          sensitive: false,
          reason: 'reported before',
          error: null,
          duration_ms: 1,
        },
      },
    ]);
    journal.close();
    const { engine, heard } = start(dataDir);
    expect(await engine.inventory()).toEqual([{ run_id: runId(1), state: 'finished', results: 6 }]);
    engine.resume(runId(1), 0);
    expect(await heard.finished(1)).toMatchObject({ end: 'interrupted', results: 6, error: { code: 'interrupted' } });
    const items = heard.items(1);
    expect(summaryOf(items)).toEqual([
      'was-done create changed',
      'written create changed',
      'half update failed interrupted',
      'not-begun none skipped interrupted',
      'removed remove changed',
      'to-remove remove failed interrupted',
    ]);
    expect(resultAt(items, 0).reason).toBe('reported before');
    expect(items.map(({ index, existed }) => [index, existed]).sort()).toEqual([
      [0, false],
      [1, false],
      [2, true],
      [3, null],
      [4, true],
      [5, true],
    ]);
    expect(readdirSync(root).sort()).toEqual(['half', 'to-remove', 'was-done', 'written']);
  });
});
