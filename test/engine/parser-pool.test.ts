/** The parser of modules in its threads, as it is built. */
import { fileURLToPath, pathToFileURL } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { ParserPoolOptions } from '../../daemon/engine/modules/parser-pool.js';
import { type Logger, silentLogger } from '../../src/kernel/logger.js';
import { inlineParser, moduleText } from '../support/engine.js';

const dist = fileURLToPath(new URL('../../dist/daemon/engine/modules/', import.meta.url));

/** Threads run what is built, so the other side does too. */
async function open(options: Partial<ParserPoolOptions> = {}) {
  const url = pathToFileURL(`${dist}parser-pool.js`).href;
  const { ParserPool } = (await import(url)) as typeof import('../../daemon/engine/modules/parser-pool.js');
  const errors: string[] = [];
  const logger: Logger = { ...silentLogger, error: (message) => void errors.push(message) };
  const pool = new ParserPool({ logger, ...options });
  onTestFinished(() => pool.stop());
  return { pool, errors };
}

const SMALL = moduleText('small', { '/a': 'x' });
const LARGE = moduleText('large', Object.fromEntries(Array.from({ length: 1000 }, (_, at) => [`/f/${at}`, 'x'])));
/** As much as a module may hold: it takes several times the heap of a small one. */
const LARGEST = `name: largest\nsupports: [{platform: linux}]\nresources:\n${Array.from(
  { length: 1900 },
  (_, at) =>
    `  - resource: {file-unix: {path: /f/${at}, owner: root, group: root, mode: "0644", content: "line ${at}"}}\n`,
).join('')}`;
const WRONG = 'name: wrong\nsupports: []\nresources:\n  - resource: {file-unix: {path: a}}\n';

describe('the parser in threads', () => {
  it('says the same as the one of this thread', async () => {
    const { pool } = await open();
    for (const text of [SMALL, WRONG, '', '[[[']) {
      const expected = await inlineParser.parse(text, {}, null);
      expect(await pool.parse(text, {}, null)).toEqual(JSON.parse(JSON.stringify(expected)));
      const pointers = ['/name', '/resources/0', '/none'];
      expect(await pool.locate(text, pointers)).toEqual(await inlineParser.locate(text, pointers));
    }
  });

  it('leaves this thread free meanwhile', async () => {
    const { pool } = await open();
    await pool.parse(SMALL, {}, null);
    let turns = 0;
    let isOver = false;
    const parsing = pool.parse(LARGE, {}, null).finally(() => {
      isOver = true;
    });
    while (!isOver) {
      await new Promise((resolve) => setImmediate(resolve));
      turns += 1;
    }
    expect((await parsing).definition?.name).toBe('large');
    // On this thread it would be one turn.
    expect(turns).toBeGreaterThan(20);
  });

  it('fails only the text that breaks its thread', async () => {
    const { pool, errors } = await open({ threads: 1, heap: 22 });
    const broken = rejectionOf(pool.parse(LARGEST, {}, null));
    const next = pool.parse(SMALL, {}, null);
    expect(await broken).toContain('broke down');
    expect((await next).definition?.name).toBe('small');
    expect(errors).toEqual(['a thread that parses modules broke down']);
  });

  it('ends a thread whose text takes too long, and goes on with another', async () => {
    const { pool } = await open({ threads: 1, timeoutMs: 1 });
    expect(await rejectionOf(pool.parse(LARGE, {}, null))).toContain('it took too long');
  });

  it('refuses more than may wait, and everything when it stops', async () => {
    const { pool } = await open({ threads: 1, waiting: 2 });
    const texts = [pool.parse(LARGE, {}, null), pool.parse(LARGE, {}, null), pool.parse(LARGE, {}, null)].map(reasonOf);
    expect(await reasonOf(pool.parse(SMALL, {}, null))).toMatchObject({
      code: 'rate_limited',
      data: { retry_after: 5 },
    });
    await pool.stop();
    for (const reason of await Promise.all(texts)) expect(reason).toMatchObject({ code: 'shutting_down' });
    expect(await reasonOf(pool.parse(SMALL, {}, null))).toMatchObject({ code: 'shutting_down' });
  });
});

describe('texts that wait for a thread', () => {
  it('of one operator take no more than their share, so that those of others are read', async () => {
    const { pool } = await open({ threads: 1, waiting: 8, waitingOfOperator: 2 });
    // The first one has the thread.
    const greedy = [1, 2, 3].map(() => pool.parse(LARGE, {}, 'greedy'));
    const refusal = {
      code: 'rate_limited',
      message: 'too many modules of your operator are being read at the same time',
      data: { retry_after: 5 },
    };
    expect(await reasonOf(pool.parse(SMALL, {}, 'greedy'))).toMatchObject(refusal);
    expect(await reasonOf(pool.parseValues('', 'greedy'))).toMatchObject(refusal);
    const others = [pool.parse(SMALL, {}, 'other'), pool.parse(SMALL, {}, null)];
    expect((await Promise.all(others)).map(({ definition }) => definition?.name)).toEqual(['small', 'small']);
    expect((await Promise.all(greedy)).map(({ definition }) => definition?.name)).toEqual(['large', 'large', 'large']);
    expect((await pool.parse(SMALL, {}, 'greedy')).definition?.name).toBe('small');
  });
});

/** The error of a rejected promise; the built classes are others than those of the tests. */
const reasonOf = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => null,
    (reason: unknown) => reason,
  );

async function rejectionOf(promise: Promise<unknown>): Promise<string> {
  const reason = await reasonOf(promise);
  return reason instanceof Error ? reason.message : '';
}
