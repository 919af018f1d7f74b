/** The engine in its thread, as it is built. */
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { Worker } from 'node:worker_threads';
import { describe, expect, it, onTestFinished } from 'vitest';
import { Engine } from '../../../src/agent/engine/engine.js';
import type { EngineThreadOptions } from '../../../src/agent/engine/engine-thread.js';
import { frameOf } from '../../../src/agent/journal/read-journal.js';
import { Journal } from '../../../src/agent/journal.js';
import { type LogFields, type Logger, silentLogger } from '../../../src/kernel/logger.js';
import type { DesiredResource } from '../../../src/resources/desired.js';
import {
  clock,
  content,
  directory,
  file,
  head,
  host,
  Listener,
  needs,
  place,
  removal,
  runId,
  script,
  summaryOf,
} from '../../support/agent.js';
import { IS_EXHAUSTIVE } from '../../support/exhaustive.js';

const dist = fileURLToPath(new URL('../../../dist/src/agent/', import.meta.url));

/** Threads run what is built, so the thread's other side does too. */
async function start(dataDir: string, more: Partial<EngineThreadOptions> = {}) {
  const url = pathToFileURL(join(dist, 'engine/engine-thread.js')).href;
  const { EngineThread } = (await import(url)) as typeof import('../../../src/agent/engine/engine-thread.js');
  const log: { message: string; fields: LogFields | undefined }[] = [];
  const logger: Logger = {
    ...silentLogger,
    warn: (message, fields) => void log.push({ message, fields }),
    error: (message, fields) => void log.push({ message, fields }),
  };
  const engine = new EngineThread({ dataDir, logger, ...more });
  onTestFinished(() => engine.stop());
  return { engine, log, heard: new Listener(engine) };
}

/** The effect of an unexpected error on the thread. */
async function breakDown(engine: object): Promise<void> {
  const worker: unknown = Reflect.get(engine, 'worker');
  if (!(worker instanceof Worker)) throw new Error('there is no thread');
  await worker.terminate();
}

const threads = (): number => readdirSync('/proc/self/task').length;

async function until(condition: () => boolean): Promise<void> {
  for (let round = 0; round < 1_000 && !condition(); round += 1)
    await new Promise((resolve) => setTimeout(resolve, 10));
  expect(condition()).toBe(true);
}

describe('the thread of the engine', () => {
  it('is not started while there is nothing to do', async (context) => {
    needs(context, existsSync('/proc/self/task'), '/proc');
    const { engine } = await start(place());
    const before = threads();
    expect(await engine.inventory()).toEqual([]);
    engine.disconnected();
    expect(threads()).toBe(before);
  });

  it('plans and applies, and holds the main thread up with nothing', async () => {
    const [root, { engine, heard }] = [place(), await start(place())];
    const wanted = content(Array.from({ length: 1_000 }, (_, index) => file(join(root, `f${index}`))));
    engine.begin(head(1, { mode: 'plan' }), wanted);
    expect(await heard.finished(1)).toMatchObject({ end: 'succeeded', results: 1_000 });
    engine.begin(head(2), wanted);
    expect(await heard.finished(2)).toMatchObject({ end: 'succeeded', results: 1_000 });
    expect(heard.items(2)).toHaveLength(1_000);
    expect(readdirSync(root)).toHaveLength(1_000);
    expect(await engine.inventory()).toEqual([{ run_id: runId(2), state: 'finished', results: 1_000 }]);
    engine.acknowledge(runId(2));
    expect(await engine.inventory()).toEqual([]);
  });

  it('tells after a restart what an earlier one did', async () => {
    const [dataDir, root] = [place(), place()];
    const first = await start(dataDir);
    first.engine.begin(head(1), content([file(join(root, 'f'))]));
    await first.heard.finished(1);
    await first.engine.stop();
    const second = await start(dataDir);
    expect(await second.engine.inventory()).toEqual([{ run_id: runId(1), state: 'finished', results: 1 }]);
    second.engine.resume(runId(1), 0);
    await second.heard.finished(1);
    expect(summaryOf(second.heard.items(1))).toEqual(['f create changed']);
  });

  it('ends when it is idle, and another one goes on with the same journal', async (context) => {
    needs(context, existsSync('/proc/self/task'), '/proc');
    const { engine, heard } = await start(place(), { idleAfter: 50 });
    const before = threads();
    const root = place();
    for (const number of [1, 2, 3]) {
      engine.begin(head(number), content([file(join(root, `f${number}`))]));
      expect(await heard.finished(number)).toMatchObject({ end: 'succeeded' });
      await until(() => threads() <= before);
    }
    expect((await engine.inventory()).map(({ run_id }) => run_id)).toEqual([1, 2, 3].map(runId));
  });

  it('says why it cannot work, for each that waits', async () => {
    const dataDir = place();
    const path = join(dataDir, 'journal');
    writeFileSync(path, frameOf([{ t: 'journal', version: 2, epoch: 0, generation: 0 }]));
    const newer = readFileSync(path);
    const { engine, heard, log } = await start(dataDir);
    await expect(engine.inventory()).rejects.toMatchObject({ code: 'journal_corrupt' });
    engine.begin(head(2), content([]));
    expect(await heard.finished(2)).toMatchObject({ end: 'interrupted', error: { code: 'journal_corrupt' } });
    expect(log[0]?.message).toBe('the engine cannot work');
    expect(readFileSync(path).equals(newer)).toBe(true);
  });

  it('goes on without a journal that is gone, and says so', async () => {
    const dataDir = place();
    new Journal(dataDir).close();
    rmSync(join(dataDir, 'journal'));
    const { engine, log } = await start(dataDir);
    expect(await engine.inventory()).toEqual([]);
    expect(log[0]).toMatchObject({ message: expect.stringContaining('the journal was lost') });
  });

  it('is replaced when it breaks down, and its run is reported as interrupted', async () => {
    const [dataDir, root] = [place(), place()];
    const { engine, heard, log } = await start(dataDir);
    const many = content(Array.from({ length: 4_000 }, (_, index) => file(join(root, `f${index}`))));
    engine.begin(head(1), many);
    await heard.accepted(1);
    const worker = Reflect.get(engine, 'worker') as { terminate(): Promise<number> };
    engine.begin(head(2, { mode: 'plan' }), content([]));
    await worker.terminate();
    expect(await heard.finished(1)).toMatchObject({
      end: 'interrupted',
      results: 4_000,
      error: { code: 'interrupted' },
    });
    engine.resume(runId(1), 0);
    await heard.until(() => (heard.items(1).length === 4_000 ? true : undefined));
    const changed = heard.items(1).filter(({ result }) => result.status === 'changed');
    expect(readdirSync(root).filter((name) => /^f\d+$/.test(name))).toHaveLength(changed.length);
    expect(log.map(({ message }) => message)).toContain('an apply was interrupted');
    engine.begin(head(3), content([]));
    expect(await heard.finished(3)).toMatchObject({ end: 'succeeded' });
  });

  it('tells an apply that never reached the journal as interrupted, and a plan too', async () => {
    const { engine, heard } = await start(place());
    engine.begin(head(1), content([file('/x')]));
    engine.begin(head(2, { mode: 'plan' }), content([file('/x')]));
    await breakDown(engine);
    for (const number of [1, 2]) {
      expect(await heard.finished(number)).toMatchObject({ end: 'interrupted', error: { code: 'interrupted' } });
    }
  });

  it('is cut off when it does not end in time', async () => {
    const [dataDir, root] = [place(), place()];
    const { engine, heard, log } = await start(dataDir, { stopTimeoutMs: 0 });
    engine.begin(head(1), content(Array.from({ length: 2_000 }, (_, index) => file(join(root, `f${index}`)))));
    await heard.accepted(1);
    await engine.stop();
    expect(log.map(({ message }) => message)).toContain(
      'the engine does not end in time; what it was doing is interrupted',
    );
    const later = await start(dataDir);
    expect(await later.engine.inventory()).toEqual([{ run_id: runId(1), state: 'finished', results: 2_000 }]);
  });
});

/** A set of files in small groups that wait for each other, some of them to be changed, some to be removed. */
function wanted(root: string): { resources: DesiredResource[]; removals: DesiredResource[] } {
  const resources: DesiredResource[] = [];
  for (let d = 0; d < 30; d += 1) {
    const previous = resources.length === 0 ? [] : [resources.length - 1];
    resources.push(directory(join(root, `d${d}`), {}, { after: previous }));
    for (let f = 0; f < 5; f += 1)
      resources.push(file(join(root, `d${d}/f${f}`), { content: `${d} ${f}\n`, mode: '0640' }));
  }
  const removals = Array.from({ length: 10 }, (_, index) => file(join(root, `old${index}`), { content: 'old' }));
  return { resources, removals };
}

const PROGRAM = `
  const [dist, dataDir, text] = process.argv.slice(1);
  const { Engine } = await import(dist + 'engine/engine.js');
  const { Journal } = await import(dist + 'journal.js');
  const { thisHost } = await import(dist + 'host/this-host.js');
  const logger = { debug() {}, info() {}, warn() {}, error: console.error, child: () => logger };
  const clock = { now: Date.now, monotonic: () => performance.now() };
  const engine = new Engine({ journal: new Journal(dataDir), createHost: thisHost, clock, logger });
  engine.subscribe((report) => console.log(JSON.stringify(report)));
  const { head, content } = JSON.parse(text);
  engine.begin(head, content);`;

/** Lets another process apply, and kills it some time after it has accepted; returns what it had reported. */
async function applyAndDie(dataDir: string, order: unknown, afterMs: number): Promise<string> {
  const args = ['--input-type=module', '-e', PROGRAM, pathToFileURL(dist).href, dataDir, JSON.stringify(order)];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  // It may be done, and end by itself, before it is killed.
  const ended = new Promise((resolve) => child.once('close', resolve));
  let output = '';
  await new Promise<void>((resolve) => {
    child.stdout.on('data', (chunk: Buffer) => {
      output += chunk.toString();
      resolve();
    });
  });
  await new Promise((resolve) => setTimeout(resolve, afterMs));
  child.kill('SIGKILL');
  await ended;
  return output;
}

describe('a process that is killed in the middle of an apply', () => {
  it.each(IS_EXHAUSTIVE ? Array.from({ length: 8 }, (_, round) => round * 24) : [24, 96])(
    'after %i ms tells the truth when it is back',
    async (afterMs) => {
      const [dataDir, root] = [place(), place()];
      const { resources, removals } = wanted(root);
      for (const { identity } of removals) writeFileSync(identity, 'old');
      const run = content(
        resources,
        removals.map((one) => removal(one)),
      );
      const output = await applyAndDie(dataDir, { head: head(1), content: run }, afterMs);

      const engine = new Engine({ journal: new Journal(dataDir), createHost: host, clock, logger: silentLogger });
      const heard = new Listener(engine);
      await engine.inventory();
      engine.resume(runId(1), 0);
      const { end, results } = await heard.finished(1);
      const items = heard.items(1);
      expect(end).toMatch(output.includes('run_finished') ? /^succeeded$/ : /^(interrupted|succeeded)$/);
      expect(results).toBe(resources.length + removals.length);
      expect(new Set(items.map(({ index }) => index)).size).toBe(results);
      for (const { index, existed, result } of items) {
        const isThere = existsSync(result.identity);
        const body = resources[index]?.body;
        if (result.status === 'changed')
          expect([result.identity, isThere]).toEqual([result.identity, index < resources.length]);
        if (result.status === 'skipped')
          expect([result.identity, isThere]).toEqual([result.identity, index >= resources.length]);
        if (result.status === 'failed') expect(result.error?.code).toBe('interrupted');
        if (result.status === 'changed' && typeof body?.content === 'string') {
          expect(readFileSync(result.identity, 'utf8')).toBe(body.content);
        }
        if (result.status === 'changed') expect(existed).toBe(index >= resources.length);
      }
      // The results before the end were true, and are the same now.
      for (const line of output.trim().split('\n')) {
        const report = JSON.parse(line) as { type: string; from: number; items: unknown[] };
        if (report.type === 'run_results')
          expect(items.slice(report.from, report.from + report.items.length)).toEqual(report.items);
      }
      engine.acknowledge(runId(1));
      const namesIn = () => readdirSync(root, { recursive: true }).map(String);
      expect(namesIn().filter((name) => name.includes('.orch-'))).toEqual([]);

      engine.begin(head(2), run);
      expect(await heard.finished(2)).toMatchObject({ end: 'succeeded' });
      expect(namesIn().filter((name) => /orch-|^old/.test(name))).toEqual([]);
      await engine.stop();
    },
  );

  it.each(IS_EXHAUSTIVE ? Array.from({ length: 5 }, (_, round) => 20 + round * 37) : [57])(
    'after %i ms has lost no trigger when it is back',
    async (afterMs) => {
      const [dataDir, root] = [place(), place()];
      const pairs = Array.from({ length: 20 }, (_, index) => index);
      const site = (text: string) =>
        content(
          pairs.flatMap((pair) => [
            file(join(root, `conf${pair}`), { content: text }, { after: pair === 0 ? [] : [2 * pair - 1] }),
            script(
              `reader${pair}`,
              {
                apply: `cat ${root}/conf${pair} >${root}/new${pair} && mv ${root}/new${pair} ${root}/seen${pair}`,
                check: `test -e ${root}/seen${pair}`,
              },
              { triggers: { rerun_on: [2 * pair] } },
            ),
          ]),
        );
      const first = new Engine({ journal: new Journal(dataDir), createHost: host, clock, logger: silentLogger });
      const listener = new Listener(first);
      first.begin(head(1), site('one\n'));
      const { end } = await listener.finished(1);
      expect(listener.items(1).flatMap(({ result }) => result.error ?? [])).toEqual([]);
      expect(end).toBe('succeeded');
      await first.stop();
      await applyAndDie(dataDir, { head: head(2), content: site('two\n') }, afterMs);

      const journal = new Journal(dataDir);
      const engine = new Engine({ journal, createHost: host, clock, logger: silentLogger });
      const heard = new Listener(engine);
      await engine.inventory();
      engine.begin(head(3), site('two\n'));
      expect(await heard.finished(3)).toMatchObject({ end: 'succeeded' });
      expect(pairs.map((pair) => readFileSync(join(root, `seen${pair}`), 'utf8'))).toEqual(pairs.map(() => 'two\n'));
      expect(journal.owed).toEqual([]);
      await engine.stop();
    },
  );

  it('with a torn end of its journal tells what was synced', async () => {
    const [dataDir, root] = [place(), place()];
    mkdirSync(join(root, 'd'));
    const journal = new Journal(dataDir);
    journal.accept({ id: runId(1), epoch: 1, generation: 1, content: content([file(join(root, 'd/f'))]) });
    journal.close();
    const torn = frameOf([{ t: 'end', run: runId(1), end: 'succeeded', error: null }]);
    writeFileSync(
      join(dataDir, 'journal'),
      Buffer.concat([readFileSync(join(dataDir, 'journal')), torn.subarray(0, -1)]),
    );
    const { engine } = await start(dataDir);
    expect(await engine.inventory()).toEqual([{ run_id: runId(1), state: 'finished', results: 1 }]);
  });
});
