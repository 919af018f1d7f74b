/** Applies with files beside modules: all that are needed come before the first change, and no others. */
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { apply, drift, plan } from '../../../src/agent/converge.js';
import { UnixHost } from '../../../src/agent/host/this-host.js';
import { Fault } from '../../../src/kernel/fault.js';
import type { SourceFile } from '../../../src/resources/host.js';
import { clock, content, file, place } from '../../support/agent.js';

const digestOf = (text: string) => createHash('sha256').update(text).digest('hex');

/** A resource whose content is a file beside the module. */
const sourced = (path: string, text: string) => file(path, { source: 'files/app.bin', sha256: digestOf(text) });

/** Returns a host to which these texts come, and what it has asked for. */
function hostWith(...texts: readonly string[]) {
  const directory = place();
  const asked: string[] = [];
  for (const text of texts) writeFileSync(join(directory, digestOf(text)), text);
  const bring = async ({ sha256 }: SourceFile) => {
    asked.push(sha256);
    const path = join(directory, sha256);
    if (!existsSync(path)) throw new Fault('content_unavailable', 'the orchestrator no longer has it');
    return path;
  };
  return { asked, host: new UnixHost({ platform: 'linux', files: { bring } }) };
}

describe('an apply', () => {
  it('changes nothing when a file does not come, whatever its place in the order', async () => {
    const [first, second] = [join(place(), 'first'), join(place(), 'second')];
    const { host } = hostWith();
    const outcome = await apply(content([file(first), sourced(second, 'missing')]), host, { clock });
    expect(outcome).toMatchObject({
      end: 'refused',
      results: [],
      error: {
        code: 'content_unavailable',
        message:
          'the file files/app.bin of the module does not come: the orchestrator no longer has it; nothing was changed',
      },
    });
    expect([existsSync(first), existsSync(second)]).toEqual([false, false]);
  });

  it('shows that it is alive while a file takes its time', async () => {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    const signs: number[] = [];
    let come: () => void = () => undefined;
    const real = hostWith('slow').host;
    const bring = () => new Promise<void>((resolve) => (come = resolve));
    const slow = Object.assign(Object.create(real), { bring });
    const onResults = (items: readonly unknown[]) => void signs.push(items.length);
    const work = apply(content([sourced(join(place(), 'one'), 'slow')]), slow, { clock, onResults });
    await vi.advanceTimersByTimeAsync(45_000);
    expect(signs).toEqual([0, 0, 0, 0]);
    come();
    vi.useRealTimers();
    expect(await work).toMatchObject({ end: 'succeeded' });
  });

  it('asks for what differs on the machine, once, and for nothing when all is there', async () => {
    const [one, two, three] = [join(place(), 'one'), join(place(), 'two'), join(place(), 'three')];
    writeFileSync(one, 'same');
    writeFileSync(two, 'old');
    const wanted = content([sourced(one, 'same'), sourced(two, 'new'), sourced(three, 'new')]);
    const { host, asked } = hostWith('new');
    expect(await plan(wanted, host, { clock })).toMatchObject({ end: 'succeeded' });
    expect(asked).toEqual([]);
    expect(await apply(wanted, host, { clock })).toMatchObject({ end: 'succeeded' });
    expect(asked).toEqual([digestOf('new')]);
    expect([one, two, three].map((path) => readFileSync(path, 'utf8'))).toEqual(['same', 'new', 'new']);
    const later = hostWith();
    expect(await apply(wanted, later.host, { clock })).toMatchObject({ end: 'succeeded' });
    expect(await drift(wanted, later.host, { clock })).toMatchObject({
      results: [1, 2, 3].map(() => ({ result: { status: 'unchanged' } })),
    });
    expect(later.asked).toEqual([]);
  });

  it('takes a file that depends on other resources, wherever they stand', async () => {
    const directory = join(place(), 'made');
    const inside = join(directory, 'file');
    const { host } = hostWith('inside');
    const made = { ...file(directory, {}), kind: 'directory-unix' };
    const wanted = content([file(join(place(), 'other')), made, { ...sourced(inside, 'inside'), after: [0, 1] }]);
    expect(await apply(wanted, host, { clock })).toMatchObject({ end: 'succeeded', error: null });
    expect(readFileSync(inside, 'utf8')).toBe('inside');
  });
});
