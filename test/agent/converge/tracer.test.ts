/** Traces of drift on real files: a hash that any further change alters, without secrets, and the time of the change. */
import { chmodSync, mkdirSync, rmSync, statSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { MAX_TRACES } from '../../../src/agent/converge/tracer.js';
import { drift } from '../../../src/agent/converge.js';
import type { DesiredResource } from '../../../src/resources/desired.js';
import type { Host } from '../../../src/resources/host.js';
import { clock, content, directory, file, host, place, script } from '../../support/agent.js';
import { until } from '../../support/orch.js';

const tracesOf = async (...resources: readonly DesiredResource[]) =>
  (await drift(content(resources), host(), { clock })).traces;

const observed = async (resource: DesiredResource) => (await tracesOf(resource))[0]?.observed;

/** Waits until the file system gives a new time to a change. */
async function nextTime(path: string): Promise<void> {
  const before = statSync(path).ctimeMs;
  await until(() => {
    chmodSync(path, 0o644);
    return statSync(path).ctimeMs > before;
  }, 'the clock of the file system has moved');
}

const secret = 'hunter2-and-more';
const tainted = (path: string): DesiredResource => {
  const span = { start: 9, end: 9 + secret.length, secret: 'db', tag: '7f3a' };
  return file(path, { content: `password=${secret}\n`, mode: '0644' }, { taint: { '/content': [span] } });
};

describe('the trace of a drifted file', () => {
  it('stays the same while the file does, and changes with it', async () => {
    const path = join(place(), 'f');
    const wanted = file(path, { content: 'as declared', mode: '0644' });
    writeFileSync(path, 'by hand', { mode: 0o644 });
    const first = await observed(wanted);
    expect(first).toMatch(/^[0-9a-f]{64}$/);
    await nextTime(path);
    expect(await observed(wanted)).toBe(first);
    writeFileSync(path, 'by hanD');
    const second = await observed(wanted);
    chmodSync(path, 0o600);
    const third = await observed(wanted);
    rmSync(path);
    const gone = await observed(wanted);
    symlinkSync('elsewhere', path);
    const link = await observed(wanted);
    rmSync(path);
    mkdirSync(path);
    const other = await observed(wanted);
    expect(new Set([first, second, third, gone, link, other, undefined, null]).size).toBe(8);
  });

  it('notes a change that is masked or not compared by the time of the file', async () => {
    for (const [wanted, texts] of [
      [tainted(join(place(), 'f')), ['password=aaaaaaaaaaaaaaaa\n', 'password=bbbbbbbbbbbbbbbb\n']],
      [file(join(place(), 'f'), { content: 'x', mode: '0644' }), [Buffer.from([0xff, 1]), Buffer.from([0xff, 2])]],
    ] as const) {
      const path = wanted.identity;
      writeFileSync(path, texts[0], { mode: 0o644 });
      const first = await observed(wanted);
      expect(await observed(wanted)).toBe(first);
      await nextTime(path);
      writeFileSync(path, texts[1]);
      expect(await observed(wanted)).not.toBe(first);
    }
  });

  it('says when the file was changed, whatever time it claims', async () => {
    const root = place();
    const path = join(root, 'f');
    writeFileSync(path, 'by hand');
    utimesSync(path, 0, 4_000_000_000);
    mkdirSync(join(root, 'd'), { mode: 0o700 });
    const traces = await tracesOf(file(path), directory(join(root, 'd'), { mode: '0755' }), file(join(root, 'none')));
    expect(traces.map(({ index, changed_at }) => [index, changed_at])).toEqual([
      [0, Math.round(statSync(path).ctimeMs)],
      // New entries change the time of a directory, too.
      [1, null],
      [2, null],
    ]);
  });
});

describe('traces of other resources', () => {
  it('tell nothing where a secret hides what is there, and no time tells it', async () => {
    const path = join(place(), 'f');
    writeFileSync(path, 'password=aaaaaaaaaaaaaaaa', { mode: 0o644 });
    const real = host();
    const timeless: Host = {
      platform: real.platform,
      accounts: () => real.accounts(),
      observe: (requests) => real.observe(requests),
      commit: (steps) => real.commit(steps),
      run: (command) => real.run(command),
    };
    const resources = [tainted(path), tainted(`${path}-missing`), script('one', { check: 'exit 1', apply: 'true' })];
    const { traces } = await drift(content(resources), timeless, { clock });
    const digest = expect.stringMatching(/^[0-9a-f]{64}$/);
    expect(traces.map((trace) => trace.observed)).toEqual([null, digest, digest]);
  });

  it('are bounded, and none is of a resource that is as it should be', async () => {
    const root = place();
    writeFileSync(join(root, 'same'), 'x');
    expect(await tracesOf(file(join(root, 'same'), { content: 'x' }))).toEqual([]);
    const many = Array.from({ length: MAX_TRACES + 1 }, (_, index) => file(join(root, `f${index}`)));
    expect(await tracesOf(...many)).toHaveLength(MAX_TRACES);
  });
});
