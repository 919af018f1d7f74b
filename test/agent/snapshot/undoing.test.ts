/** Applies that have to be confirmed, with a real journal and real files, over stops and crashes of the agent. */
import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { Engine } from '../../../src/agent/engine/engine.js';
import type { EngineReport } from '../../../src/agent/engine/run-engine.js';
import { Journal } from '../../../src/agent/journal.js';
import { bootTime } from '../../../src/agent/snapshot/boot-time.js';
import {
  readSnapshot,
  type SnapshotRecord,
  snapshotDirectory,
  writeSnapshot,
} from '../../../src/agent/snapshot/snapshot-record.js';
import { silentLogger } from '../../../src/kernel/logger.js';
import { clock, content, file, head, host, Listener, place, removal, runId, script } from '../../support/agent.js';
import { until } from '../../support/until.js';

type More = Partial<Pick<ConstructorParameters<typeof Engine>[0], 'freeBytes' | 'settleMs' | 'createHost'>>;

function start(dataDir: string, more: More = {}) {
  const journal = new Journal(dataDir);
  const engine = new Engine({
    journal,
    createHost: host,
    settleMs: 0,
    clock,
    logger: silentLogger,
    ...more,
  });
  onTestFinished(() => engine.stop());
  return { engine, journal, heard: new Listener(engine) };
}

const awaiting = (heard: Listener, number: number): Promise<EngineReport> =>
  heard.until(() => heard.of(number).find(({ type }) => type === 'run_awaiting'));

const text = (path: string): string | null => (existsSync(path) ? readFileSync(path, 'utf8') : null);
const isKept = (dataDir: string): boolean => existsSync(snapshotDirectory(dataDir));

/** Changes the record as time or a crash would have. */
function alter(dataDir: string, change: Partial<SnapshotRecord>): void {
  const record = readSnapshot(dataDir);
  if (record === null) throw new Error('there is no snapshot');
  writeSnapshot(dataDir, { ...record, ...change });
}

describe('an apply that has to be confirmed', () => {
  it('stays once it is confirmed, and its snapshot goes', async () => {
    const [dataDir, root] = [place(), place()];
    const { engine, heard } = start(dataDir);
    writeFileSync(join(root, 'f'), 'before');
    engine.begin(head(1, { confirm_secs: 60 }), content([file(join(root, 'f'))]));
    expect(await awaiting(heard, 1)).toMatchObject({ left_secs: 60 });
    expect(readSnapshot(dataDir)).toMatchObject({ run_id: runId(1), state: 'awaiting', items: [{ action: 'update' }] });
    engine.confirmed(runId(9));
    engine.reached();
    expect(heard.of(1).at(-1)).toEqual({ type: 'run_confirm', run_id: runId(1) });
    expect(await engine.inventory()).toEqual([{ run_id: runId(1), state: 'running', results: 1 }]);
    engine.confirmed(runId(1));
    expect(await heard.finished(1)).toMatchObject({ end: 'succeeded', results: 1, error: null });
    expect(text(join(root, 'f'))).toBe('x');
    expect(isKept(dataDir)).toBe(false);
    engine.begin(head(2), content([file(join(root, 'f'))]));
    expect(await heard.finished(2)).toMatchObject({ end: 'succeeded' });
  });

  it('is undone when its time is over, in reverse, and says what it could not restore', async () => {
    const [dataDir, root] = [place(), place()];
    const { engine, heard } = start(dataDir);
    writeFileSync(join(root, 'gone'), 'mine');
    const wanted = content(
      [file(join(root, 'a/b/new'), { content: 'x', parents: true }), script('step', { apply: 'true' })],
      [removal(file(join(root, 'gone')))],
    );
    engine.begin(head(1, { confirm_secs: 10 }), wanted);
    await awaiting(heard, 1);
    expect(text(join(root, 'gone'))).toBeNull();
    engine.unreached('nothing listens there');
    const end = await heard.finished(1);
    expect(end).toMatchObject({
      end: 'rolled_back',
      results: 3,
      error: {
        code: 'rolled_back',
        message:
          'the agent has undone the apply, because the machine did not come back within 10 s (the last attempt: nothing listens there)',
      },
      restored: {
        restored: 2,
        not_restored: 1,
        resources: [
          { kind: 'script', identity: 'step', reason: 'what a script has done cannot be undone' },
          { identity: join(root, 'gone'), reason: null },
          { identity: join(root, 'a/b/new'), reason: null },
        ],
      },
    });
    expect(text(join(root, 'gone'))).toBe('mine');
    expect(existsSync(join(root, 'a'))).toBe(false);
    expect(isKept(dataDir)).toBe(false);
    engine.begin(head(1), wanted);
    expect(heard.of(1).at(-1)).toEqual(end);
  }, 30_000);

  it('is undone at once when a resource fails, and when it is cancelled', async () => {
    const [dataDir, root] = [place(), place()];
    const { engine, heard } = start(dataDir);
    const failing = content([file(join(root, 'f')), script('step', { apply: 'exit 3' })]);
    engine.begin(head(1, { confirm_secs: 60 }), failing);
    expect(await heard.finished(1)).toMatchObject({
      end: 'rolled_back',
      error: { message: 'the agent has undone the apply, because a resource failed' },
    });
    expect(text(join(root, 'f'))).toBeNull();
    engine.begin(head(2, { confirm_secs: 60 }), content([file(join(root, 'f'))]));
    await awaiting(heard, 2);
    engine.cancel(runId(2));
    expect(await heard.finished(2)).toMatchObject({ end: 'rolled_back', error: { message: /it was cancelled/ } });
    expect(text(join(root, 'f'))).toBeNull();
  });

  it('takes no connection for a proof before its changes have settled', async () => {
    const [dataDir, root] = [place(), place()];
    const { engine, heard } = start(dataDir, { settleMs: 400 });
    engine.begin(head(1, { confirm_secs: 60 }), content([file(join(root, 'f'))]));
    await until(() => readSnapshot(dataDir)?.state === 'awaiting', 'the apply awaits its confirmation');
    engine.reached();
    expect(heard.of(1).map(({ type }) => type)).not.toContain('run_confirm');
    await awaiting(heard, 1);
    engine.reached();
    expect(heard.of(1).at(-1)?.type).toBe('run_confirm');
    engine.confirmed(runId(1));
    await heard.finished(1);
  });

  it('needs no confirmation when it changes nothing', async () => {
    const [dataDir, root] = [place(), place()];
    const { engine, heard } = start(dataDir);
    writeFileSync(join(root, 'f'), 'x');
    engine.begin(head(1, { confirm_secs: 60 }), content([file(join(root, 'f'))]));
    expect(await heard.finished(1)).toMatchObject({ end: 'succeeded' });
    expect(isKept(dataDir)).toBe(false);
  });

  it('is refused, and changes nothing, when the disk has no room for what it replaces', async () => {
    const [dataDir, root] = [place(), place()];
    const { engine, heard } = start(dataDir, { freeBytes: () => 1024 });
    writeFileSync(join(root, 'f'), 'before');
    engine.begin(
      head(1, { confirm_secs: 60 }),
      content([file(join(root, 'f')), script('s', { apply: `touch ${root}/s` })]),
    );
    expect(await heard.finished(1)).toMatchObject({
      end: 'refused',
      results: 0,
      error: { code: 'disk_full', message: /there is no room in .*, so nothing was changed/ },
    });
    expect(text(join(root, 'f'))).toBe('before');
    expect(existsSync(join(root, 's'))).toBe(false);
    expect(isKept(dataDir)).toBe(false);
  });

  it('follows no link in the place of its snapshot, and restores nothing that such a link holds', async () => {
    const [dataDir, root, hostile] = [place(), place(), place()];
    mkdirSync(join(hostile, 'snapshot'), { mode: 0o700 });
    writeFileSync(
      join(hostile, 'snapshot/record.json'),
      '{"format":1,"state":"applying","confirm_secs":10,"items":[]}',
    );
    symlinkSync(join(hostile, 'snapshot'), snapshotDirectory(dataDir));
    const { engine, heard } = start(dataDir);
    await engine.inventory();
    engine.begin(head(1, { confirm_secs: 60 }), content([file(join(root, 'f'))]));
    await awaiting(heard, 1);
    engine.confirmed(runId(1));
    await heard.finished(1);
    expect(readFileSync(join(hostile, 'snapshot/record.json'), 'utf8')).toContain('applying');
  });
});

describe('an apply whose record cannot be written', () => {
  /** In the way of each new record, as a full disk is. */
  const obstacle = (dataDir: string): string => join(snapshotDirectory(dataDir), 'record.json.new');
  const obstructs = (dataDir: string) => script('step', { apply: `mkdir '${obstacle(dataDir)}'` });

  it('is undone before it waits for its confirmation', async () => {
    const [dataDir, root] = [place(), place()];
    const { engine, heard } = start(dataDir);
    engine.begin(head(1, { confirm_secs: 60 }), content([file(join(root, 'f')), obstructs(dataDir)]));
    expect(await heard.finished(1)).toMatchObject({
      end: 'rolled_back',
      error: { message: /because the snapshot cannot be written/ },
      restored: { restored: 1, not_restored: 1 },
    });
    expect(text(join(root, 'f'))).toBeNull();
    expect(isKept(dataDir)).toBe(false);
  });

  it('is undone once, even if its snapshot was to be kept', async () => {
    const [dataDir, root] = [place(), place()];
    const { engine, heard } = start(dataDir);
    const wanted = content([file(join(root, 'f')), obstructs(dataDir)]);
    engine.begin(head(1, { confirm_secs: 60, keep_snapshot: true }), wanted);
    expect(await heard.finished(1)).toMatchObject({ end: 'rolled_back' });
    expect(isKept(dataDir)).toBe(false);
  });

  it('stays when it is confirmed, and is not undone later', async () => {
    const [dataDir, root] = [place(), place()];
    const { engine, heard } = start(dataDir);
    engine.begin(head(1, { confirm_secs: 60, keep_snapshot: true }), content([file(join(root, 'f'))]));
    await awaiting(heard, 1);
    mkdirSync(obstacle(dataDir));
    engine.confirmed(runId(1));
    expect(await heard.finished(1)).toMatchObject({ end: 'succeeded' });
    expect(text(join(root, 'f'))).toBe('x');
    expect(isKept(dataDir)).toBe(false);
  });

  it('ends and keeps its snapshot when it needs no confirmation', async () => {
    const [dataDir, root] = [place(), place()];
    const { engine, heard } = start(dataDir);
    const wanted = content([file(join(root, 'f')), obstructs(dataDir)]);
    engine.begin(head(1, { keep_snapshot: true }), wanted);
    expect(await heard.finished(1)).toMatchObject({ end: 'succeeded' });
    engine.begin(head(2, { restore: runId(1) }), content([]));
    expect(await heard.finished(2)).toMatchObject({ end: 'succeeded', restored: { restored: 1, not_restored: 1 } });
    expect(text(join(root, 'f'))).toBeNull();
  });
});

describe('an apply that breaks down', () => {
  /** Breaks once. */
  function fragile() {
    const state = { breaks: false };
    const createHost = () => {
      if (!state.breaks) return host();
      state.breaks = false;
      throw new Error('no view of the machine');
    };
    return { state, createHost };
  }

  it('is undone and ends, so that the next one may begin', async () => {
    const [dataDir, root] = [place(), place()];
    const { state, createHost } = fragile();
    const { engine, heard } = start(dataDir, { createHost });
    engine.begin(head(1, { confirm_secs: 60, keep_snapshot: true }), content([file(join(root, 'f'))]));
    await awaiting(heard, 1);
    state.breaks = true;
    engine.cancel(runId(1));
    expect(await heard.finished(1)).toMatchObject({
      end: 'rolled_back',
      error: { message: 'the agent has undone the apply, because it was cancelled' },
      restored: { restored: 1 },
    });
    expect(text(join(root, 'f'))).toBeNull();
    expect(isKept(dataDir)).toBe(false);
    engine.begin(head(2), content([file(join(root, 'f'))]));
    expect(await heard.finished(2)).toMatchObject({ end: 'succeeded' });
  });

  it('fails and ends when there is nothing to undo', async () => {
    const [dataDir, root] = [place(), place()];
    const { state, createHost } = fragile();
    const { engine, heard } = start(dataDir, { createHost });
    engine.begin(head(1, { keep_snapshot: true }), content([file(join(root, 'f'))]));
    await heard.finished(1);
    state.breaks = true;
    engine.begin(head(2, { restore: runId(1) }), content([]));
    expect(await heard.finished(2)).toMatchObject({ end: 'failed', error: { message: 'no view of the machine' } });
    expect(isKept(dataDir)).toBe(true);
    engine.begin(head(3), content([file(join(root, 'f'))]));
    expect(await heard.finished(3)).toMatchObject({ end: 'succeeded' });
  });
});

describe('an agent that was stopped', () => {
  async function stopped(secs = 60) {
    const [dataDir, root] = [place(), place()];
    const { engine, heard } = start(dataDir);
    writeFileSync(join(root, 'f'), 'before');
    engine.begin(head(1, { confirm_secs: secs }), content([file(join(root, 'f'))]));
    await awaiting(heard, 1);
    await engine.stop();
    expect(heard.of(1).some(({ type }) => type === 'run_finished')).toBe(false);
    return { dataDir, path: join(root, 'f') };
  }

  it('goes on waiting for the confirmation, and lets nothing begin beside it', async () => {
    const { dataDir, path } = await stopped();
    const { engine, heard } = start(dataDir);
    expect(await engine.inventory()).toEqual([{ run_id: runId(1), state: 'running', results: 1 }]);
    engine.begin(head(2), content([]));
    expect(await heard.finished(2)).toMatchObject({ end: 'refused', error: { code: 'operation_in_progress' } });
    await awaiting(heard, 1);
    engine.reached();
    expect(heard.of(1).at(-1)?.type).toBe('run_confirm');
    engine.confirmed(runId(1));
    expect(await heard.finished(1)).toMatchObject({ end: 'succeeded', results: 1 });
    expect(text(path)).toBe('x');
    expect(isKept(dataDir)).toBe(false);
  });

  it.each([
    ['its time is over', { deadline: { ...bootTime(), at: 0 } }],
    ['the machine was started anew', { deadline: { boot: 'another', at: bootTime().at + 60_000 } }],
    ['it was stopped in the middle of the apply', { state: 'applying', deadline: null }],
    ['it was stopped while it restored', { state: 'restoring', why: 'it was cancelled' }],
  ] as const)('undoes the apply before it answers when %s', async (_, change) => {
    const { dataDir, path } = await stopped();
    alter(dataDir, change);
    const { engine, heard } = start(dataDir);
    expect(await engine.inventory()).toEqual([{ run_id: runId(1), state: 'finished', results: 1 }]);
    expect(text(path)).toBe('before');
    engine.resume(runId(1), 1);
    expect(await heard.finished(1)).toMatchObject({ end: 'rolled_back', restored: { restored: 1 } });
    expect(isKept(dataDir)).toBe(false);
  });

  it('reports what another process has restored', async () => {
    const { dataDir } = await stopped();
    const restored = { restored: 1, not_restored: 0, resources: [] };
    alter(dataDir, { state: 'restored', why: 'the agent no longer started', restored });
    const { engine, heard } = start(dataDir);
    await engine.inventory();
    engine.resume(runId(1), 1);
    expect(await heard.finished(1)).toMatchObject({
      end: 'rolled_back',
      error: { message: 'the agent has undone the apply, because the agent no longer started' },
      restored,
    });
  });

  it('keeps an apply whose confirmation is on the disk', async () => {
    const { dataDir, path } = await stopped();
    alter(dataDir, { state: 'confirmed' });
    const { engine, heard } = start(dataDir);
    await engine.inventory();
    engine.resume(runId(1), 1);
    expect(await heard.finished(1)).toMatchObject({ end: 'succeeded' });
    expect(text(path)).toBe('x');
  });

  it('has a result for each resource again when the end of its journal is damaged', async () => {
    const { dataDir, path } = await stopped();
    const journal = join(dataDir, 'journal');
    const bytes = readFileSync(journal);
    // The last frame holds the result, after which the agent waited.
    writeFileSync(journal, bytes.fill(0, bytes.length - 1));
    const { engine, heard } = start(dataDir);
    expect(await engine.inventory()).toEqual([{ run_id: runId(1), state: 'running', results: 1 }]);
    await awaiting(heard, 1);
    engine.resume(runId(1), 0);
    expect(heard.of(1).find(({ type }) => type === 'run_results')).toMatchObject({
      items: [{ result: { status: 'changed', reason: 'found done after the agent was interrupted' } }],
    });
    engine.reached();
    engine.confirmed(runId(1));
    expect(await heard.finished(1)).toMatchObject({ end: 'succeeded', results: 1 });
    expect(text(path)).toBe('x');
  });

  it('undoes an apply that the journal no longer knows', async () => {
    const { dataDir, path } = await stopped();

    for (const name of ['journal', 'journal.made']) rmSync(join(dataDir, name), { force: true });
    alter(dataDir, { state: 'applying' });
    const { engine } = start(dataDir);
    expect(await engine.inventory()).toEqual([]);
    expect(text(path)).toBe('before');
    expect(isKept(dataDir)).toBe(false);
  });
});

describe('a kept snapshot', () => {
  it('is restored by the apply that asks for it, and goes with the next one', async () => {
    const [dataDir, root] = [place(), place()];
    const { engine, heard } = start(dataDir);
    writeFileSync(join(root, 'f'), 'before');
    engine.begin(head(1, { keep_snapshot: true }), content([file(join(root, 'f')), file(join(root, 'g'))]));
    expect(await heard.finished(1)).toMatchObject({ end: 'succeeded' });
    expect(isKept(dataDir)).toBe(true);
    engine.begin(head(2, { restore: runId(1) }), content([file(join(root, 'f'), { content: 'before' })]));
    expect(await heard.finished(2)).toMatchObject({ end: 'succeeded', restored: { restored: 2, not_restored: 0 } });
    expect(heard.items(2)[0]?.result.status).toBe('unchanged');
    expect([text(join(root, 'f')), text(join(root, 'g'))]).toEqual(['before', null]);
    expect(isKept(dataDir)).toBe(false);
  });

  it('of another apply is not restored, and the result says so', async () => {
    const [dataDir, root] = [place(), place()];
    const { engine, heard } = start(dataDir);
    engine.begin(head(1, { keep_snapshot: true }), content([file(join(root, 'f'))]));
    await heard.finished(1);
    engine.begin(head(2, { restore: runId(7), keep_snapshot: true }), content([file(join(root, 'f'))]));
    expect(await heard.finished(2)).toMatchObject({ end: 'succeeded', restored: { restored: 0, not_restored: 0 } });
    expect(text(join(root, 'f'))).toBe('x');
    expect(readSnapshot(dataDir)).toMatchObject({ run_id: runId(2), state: 'confirmed', items: [] });
  });
});
