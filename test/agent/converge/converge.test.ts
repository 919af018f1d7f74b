/** The engine against real files. */
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Intent } from '../../../src/agent/converge/apply-group.js';
import { type ApplyOptions, apply, drift, plan } from '../../../src/agent/converge.js';
import { bestReach } from '../../../src/agent/host/safe-walk.js';
import { UnixHost } from '../../../src/agent/host/this-host.js';
import { Fault } from '../../../src/kernel/fault.js';
import { validator } from '../../../src/kernel/validator.js';
import type { DesiredResource } from '../../../src/resources/desired.js';
import type { FileStep, Host } from '../../../src/resources/host.js';
import { RunItemSchema } from '../../../src/wire/messages.js';
import type { RunContent } from '../../../src/wire/parts.js';
import {
  clock,
  content,
  directory,
  file,
  host,
  isRoot,
  place,
  removal,
  resultAt,
  script,
  summaryOf,
} from '../../support/agent.js';
import { drawn } from '../../support/exhaustive.js';
import { until } from '../../support/orch.js';

const planned = (run: RunContent, machine: Host = host()) => plan(run, machine, { clock });
const applied = (run: RunContent, options: Partial<ApplyOptions> = {}, machine: Host = host()) =>
  apply(run, machine, { clock, ...options });
const drifted = (resources: readonly DesiredResource[]) => drift(content(resources), host(), { clock });

/** The real host, with a record of its orders. */
function watched(): { machine: Host; groups: (readonly FileStep[])[] } {
  const real = host();
  const groups: (readonly FileStep[])[] = [];
  const machine: Host = {
    platform: real.platform,
    accounts: () => real.accounts(),
    observe: (requests) => real.observe(requests),
    commit: (steps) => {
      groups.push(steps);
      return real.commit(steps);
    },
    run: (command) => real.run(command),
  };
  return { machine, groups };
}

describe('a plan', () => {
  it('predicts what is declared before, and touches nothing', async () => {
    const root = place();
    writeFileSync(join(root, 'same'), 'x');
    const run = content([
      directory(join(root, 'a')),
      directory(join(root, 'a/b')),
      file(join(root, 'a/b/c'), { content: 'hi\n' }),
      file(join(root, 'none/x'), { parents: false }),
      file(join(root, 'same')),
    ]);
    const { end, results, observed, error } = await planned(run);
    expect(summaryOf(results)).toEqual([
      'a create pending',
      'b create pending',
      'c create pending',
      'x none failed parent_missing',
      'same none unchanged',
    ]);
    expect({ end, error }).toEqual({ end: 'failed', error: null });
    expect(observed).toMatch(/^[0-9a-f]{64}$/);
    expect(readdirSync(root)).toEqual(['same']);
    expect(results.map(({ existed }) => existed)).toEqual([false, false, false, false, true]);
  });

  it('has the same hash as long as the machine and the wishes are the same', async () => {
    const root = place();
    writeFileSync(join(root, 'f'), 'old');
    const hashOf = async (body: Record<string, unknown>) =>
      (await planned(content([file(join(root, 'f'), body)]))).observed;
    const first = await hashOf({ content: 'new' });
    expect(await hashOf({ content: 'new' })).toBe(first);
    expect(await hashOf({ content: 'newer' })).not.toBe(first);
    chmodSync(join(root, 'f'), 0o600);
    expect(await hashOf({ content: 'new' })).toBe(first);
    expect(await hashOf({ content: 'new', mode: '0644' })).not.toBe(first);
    writeFileSync(join(root, 'f'), 'other');
    expect(await hashOf({ content: 'new' })).not.toBe(first);
  });

  it('shows a unified diff', async () => {
    const root = place();
    writeFileSync(join(root, 'f'), 'one\ntwo\nthree');
    const { results } = await planned(content([file(join(root, 'f'), { content: 'one\n2\nthree\n' })]));
    expect(resultAt(results, 0).diff).toBe(
      `--- a${root}/f\n+++ b${root}/f\n@@ -1,3 +1,3 @@\n one\n-two\n-three\n\\ No newline at end of file\n+2\n+three\n`,
    );
  });
});

describe('an apply', () => {
  it('makes what is wanted, says so, and has nothing to do the second time', async () => {
    const root = place();
    const run = content([
      directory(join(root, 'a'), { mode: '0750' }),
      directory(join(root, 'a/b')),
      file(join(root, 'a/b/c'), { content: 'hi\n', mode: '0600' }),
      file(join(root, 'a/d'), {}),
    ]);
    const first = await applied(run);
    expect(summaryOf(first.results)).toEqual([
      'a create changed',
      'b create changed',
      'c create changed',
      'd create changed',
    ]);
    expect(first).toMatchObject({ end: 'succeeded', error: null });
    expect(statSync(join(root, 'a')).mode & 0o7777).toBe(0o750);
    expect(readFileSync(join(root, 'a/b/c'), 'utf8')).toBe('hi\n');
    for (const again of [await planned(run), await applied(run), await drifted(run.resources)]) {
      expect(again.end).toBe('succeeded');
      expect(again.results.every(({ result }) => result.status === 'unchanged')).toBe(true);
    }
  });

  it('skips what needs something that failed, and goes on with the rest', async () => {
    const root = place();
    mkdirSync(join(root, 'dir-in-the-way'));
    const run = content([
      file(join(root, 'dir-in-the-way')),
      file(join(root, 'needs-it'), { content: '' }, { after: [0] }),
      file(join(root, 'needs-that'), { content: '' }, { after: [1] }),
      file(join(root, 'independent')),
      directory(join(root, 'gone/d'), { parents: false }),
      file(join(root, 'gone/d/f')),
    ]);
    const { end, results } = await applied(run);
    expect(end).toBe('failed');
    expect(summaryOf(results)).toEqual([
      'dir-in-the-way none failed wrong_type',
      'needs-it none skipped dependency_failed',
      'needs-that none skipped dependency_failed',
      'independent create changed',
      'd none failed parent_missing',
      'f none skipped dependency_failed',
    ]);
    expect(resultAt(results, 1).reason).toBe(`file-unix ${join(root, 'dir-in-the-way')} failed`);
    expect(resultAt(results, 2).reason).toBe(`file-unix ${join(root, 'needs-it')} was skipped`);
    expect(readdirSync(root).sort()).toEqual(['dir-in-the-way', 'independent']);
    expect(summaryOf((await planned(run)).results)).toEqual([
      ...summaryOf(results).slice(0, 3),
      'independent none unchanged',
      ...summaryOf(results).slice(4),
    ]);
  });

  it('changes independent resources as one group, and never across a dependency', async () => {
    const root = place();
    const resources = Array.from({ length: 20 }, (_, d) => [
      directory(join(root, `d${d}`)),
      ...Array.from({ length: 10 }, (_, f) => file(join(root, `d${d}/f${f}`))),
    ]).flat();
    const last = resources.length;
    resources.push(file(join(root, 'after-all'), {}, { after: resources.map((_, index) => index) }));
    resources.push(file(join(root, 'then'), {}, { after: [last] }));
    const { machine, groups } = watched();
    expect((await applied(content(resources), {}, machine)).end).toBe('succeeded');
    expect(groups.map((steps) => steps.length)).toEqual([20, 200, 1, 1]);
    expect(new Set(groups[0]?.map((step) => step.do))).toEqual(new Set(['make-directory']));
  });

  it('announces a group before it is changed, and reports it before the next one is announced', async () => {
    const root = place();
    const run = content(
      [directory(join(root, 'a')), file(join(root, 'a/f')), file(join(root, 'g'), {}, { after: [1] })],
      [],
    );
    const log: string[] = [];
    const there = () => ['a', 'a/f', 'g'].filter((name) => existsSync(join(root, name))).join(',');
    const { results } = await applied(run, {
      intend: (intents) => void log.push(`intend ${intents.map(({ index }) => index)} with ${there()}`),
      onResults: (items) => void log.push(`report ${items.map(({ index }) => index)} with ${there()}`),
    });
    expect(log).toEqual([
      'intend 0 with ',
      'report 0 with a',
      'intend 1 with a',
      'report 1 with a,a/f',
      'intend 2 with a,a/f',
      'report 2 with a,a/f,g',
    ]);
    expect(results).toHaveLength(3);
  });

  it('announces nothing when there is nothing to change', async () => {
    const root = place();
    writeFileSync(join(root, 'f'), 'x');
    const intents: Intent[] = [];
    await applied(content([file(join(root, 'f')), file(join(root, 'no/f'), { parents: false })]), {
      intend: (some) => void intents.push(...some),
    });
    expect(intents).toEqual([]);
  });

  it('fails what still differs afterwards', async () => {
    const root = place();
    const { machine } = watched();
    const stubborn: Host = { ...machine, commit: async (steps) => steps.map(() => null) };
    const { end, results } = await applied(
      content([file(join(root, 'f'), { content: 'x', mode: '0600' })]),
      {},
      stubborn,
    );
    expect(end).toBe('failed');
    expect(resultAt(results, 0)).toMatchObject({
      action: 'create',
      status: 'failed',
      error: { code: 'not_converged', message: `${root}/f still differs after the change: mode` },
    });
  });

  it('fails one resource, not the run, when something breaks', async () => {
    const root = place();
    const { machine } = watched();
    const broken: Host = {
      ...machine,
      observe: (requests) => {
        if (requests.some(({ path }) => path.endsWith('bad'))) throw new Error('boom');
        return machine.observe(requests);
      },
    };
    const run = content([file(join(root, 'a')), file(join(root, 'bad')), file(join(root, 'b'))]);
    const { results } = await applied(run, {}, broken);
    expect(summaryOf(results)).toEqual(['a create changed', 'bad none failed observe_failed', 'b create changed']);
    const exploding: Host = { ...machine, commit: () => Promise.reject(new Error('boom')) };
    expect(summaryOf((await applied(content([file(join(root, 'c'))]), {}, exploding)).results)).toEqual([
      'c create failed apply_failed',
    ]);
  });

  it('refuses kinds, keys and values that it does not know', async () => {
    const root = place();
    const run = content(
      [
        { ...file(join(root, 'a')), kind: 'file-plan9' },
        file(join(root, 'b'), { content: '', colour: 'red' }),
        file(join(root, 'c'), { content: 'half \ud83d' }),
        file('relative'),
        file(join(root, 'd')),
      ],
      [{ ...removal(file(join(root, 'e'))), kind: 'file-plan9' }],
    );
    const { results } = await applied(run);
    expect(summaryOf(results)).toEqual([
      'a none failed unsupported_on_platform',
      'b none failed invalid_module',
      'c none failed invalid_module',
      'relative none failed invalid_module',
      'd create changed',
      'e none skipped dependency_failed',
    ]);
    expect(resultAt(results, 1).error?.message).toContain('unknown key "colour"');
    expect(readdirSync(root)).toEqual(['d']);
  });

  it('refuses a run in which something waits for what comes later', async () => {
    const run = content([file('/tmp/x', {}, { after: [1] }), file('/tmp/y')]);
    await expect(applied(run)).rejects.toMatchObject({ code: 'protocol_violation' });
  });

  it('does only what a plan showed when it is held to it', async () => {
    const root = place();
    writeFileSync(join(root, 'f'), 'old');
    const run = content([file(join(root, 'f'), { content: 'new' })]);
    const { observed } = await planned(run);
    writeFileSync(join(root, 'f'), 'changed by hand');
    const stale = await applied(run, { expect: observed });
    expect(stale).toMatchObject({ end: 'refused', results: [], error: { code: 'plan_stale' } });
    expect(readFileSync(join(root, 'f'), 'utf8')).toBe('changed by hand');
    writeFileSync(join(root, 'f'), 'old');
    expect((await applied(run, { expect: observed })).end).toBe('succeeded');
  });

  it('stops at a boundary when it is cancelled, and tells what it did not do', async () => {
    const root = place();
    const stopper = new AbortController();
    const run = content(
      [file(join(root, 'a')), file(join(root, 'b'), {}, { after: [0] }), file(join(root, 'c'), {}, { after: [1] })],
      [removal(file(join(root, 'd')))],
    );
    const stop = (code: 'cancelled' | 'interrupted') => stopper.abort(new Fault(code, 'enough'));
    const { end, results, error } = await applied(run, {
      signal: stopper.signal,
      intend: (intents) => {
        if (intents.some(({ index }) => index === 1)) stop('cancelled');
      },
    });
    expect(summaryOf(results)).toEqual([
      'a create changed',
      'b create changed',
      'c none skipped cancelled',
      'd none skipped cancelled',
    ]);
    expect({ end, error }).toEqual({ end: 'cancelled', error: null });
    const interrupted = await applied(run, { signal: AbortSignal.abort(new Fault('interrupted', 'the agent stops')) });
    expect(interrupted).toMatchObject({ end: 'interrupted', error: { code: 'interrupted' } });
    expect(new Set(interrupted.results.map(({ result }) => result.error?.code))).toEqual(new Set(['interrupted']));
  });

  it('is cancelled when that ends its last script', async () => {
    const root = place();
    const begun = join(root, 'begun');
    const stopper = new AbortController();
    const machine = new UnixHost({ platform: 'linux', reach: bestReach(), signal: stopper.signal });
    const run = content([script('last', { apply: `touch ${begun}; sleep 60` })]);
    const end = applied(run, { signal: stopper.signal }, machine);
    await until(() => existsSync(begun), 'the script has begun');
    stopper.abort(new Fault('cancelled', 'enough'));
    expect(await end).toMatchObject({ end: 'cancelled', error: null });
    expect(summaryOf((await end).results)).toEqual(['last run failed cancelled']);
  });

  it('has succeeded when it is cancelled after its last group', async () => {
    const stopper = new AbortController();
    const { end } = await applied(content([file(join(place(), 'a'))]), {
      signal: stopper.signal,
      onResults: () => stopper.abort(new Fault('cancelled', 'too late')),
    });
    expect(end).toBe('succeeded');
  });

  it('begins nothing more when the journal cannot be written', async () => {
    const root = place();
    const run = content([directory(join(root, 'a')), file(join(root, 'a/f'))]);
    let calls = 0;
    const { end, results, error } = await applied(run, {
      intend: () => {
        calls += 1;
        if (calls === 2) throw new Fault('disk_full', 'the journal cannot be written');
      },
    });
    expect(summaryOf(results)).toEqual(['a create changed', 'f none skipped disk_full']);
    expect({ end, code: error?.code }).toEqual({ end: 'failed', code: 'disk_full' });
    expect(readdirSync(join(root, 'a'))).toEqual([]);
  });

  it('tells whether things were there before', async () => {
    const root = place();
    writeFileSync(join(root, 'old'), '');
    symlinkSync('x', join(root, 'link'));
    const { results } = await applied(
      content([file(join(root, 'old')), file(join(root, 'new')), file(join(root, 'link'))]),
    );
    expect(results.map(({ index, existed }) => [index, existed])).toEqual([
      [0, true],
      [1, false],
      [2, true],
    ]);
  });
});

describe('removals', () => {
  it('go backwards, what was there before is released, and so is what is not empty', async () => {
    const root = place();
    const resources = [
      directory(join(root, 'd')),
      file(join(root, 'd/a')),
      directory(join(root, 'd/e')),
      file(join(root, 'd/e/b')),
      directory(join(root, 'full')),
      file(join(root, 'adopted')),
    ];
    await applied(content(resources));
    writeFileSync(join(root, 'full', 'other'), '');
    const removals = resources.map((resource, index) => removal(resource, index === 5 ? 'adopted' : 'created'));
    const run = content([file(join(root, 'stays'))], removals);
    const expected = (done: string) => [
      `stays create ${done}`,
      `d remove ${done}`,
      `a remove ${done}`,
      `e remove ${done}`,
      `b remove ${done}`,
      `full release ${done}`,
      `adopted release ${done}`,
    ];
    expect(summaryOf((await planned(run)).results)).toEqual(expected('pending'));
    const { end, results } = await applied(run);
    expect(end).toBe('succeeded');
    expect(summaryOf(results)).toEqual(expected('changed'));
    expect(readdirSync(root).sort()).toEqual(['adopted', 'full', 'stays']);
    expect(resultAt(results, 5).reason).toBe(`${join(root, 'full')} is not empty`);
    expect(summaryOf((await applied(run)).results)[2]).toBe('a none unchanged');
  });

  it('leave nothing, in whatever order directories and what lies in them were applied', async () => {
    const root = place();
    const at = (name: string) => join(root, name);
    const resources = [
      directory(at('d')),
      directory(at('d/e')),
      file(at('d/e/f')),
      file(at('d/g')),
      directory(at('d/e/h')),
      script('s', { manages: 's', apply: 'true', undo: 'true' }),
    ];
    const run = content(resources);
    await fc.assert(
      fc.asyncProperty(fc.shuffledSubarray([...resources.keys()], { minLength: resources.length }), async (order) => {
        expect((await applied(run)).end).toBe('succeeded');
        const removals = content(
          [],
          order.flatMap((index) => resources[index] ?? []).map((resource) => removal(resource)),
        );
        const foretold = (await planned(removals)).results.map(({ index, result }) => [index, result.action]);
        const { results } = await applied(removals);
        expect(results.map(({ index, result }) => [index, result.action])).toEqual(foretold);
        expect(readdirSync(root)).toEqual([]);
      }),
      { numRuns: drawn(20) },
    );
  });

  it('leave a directory alone as long as what lies in it could not be removed', async () => {
    const root = place();
    const resources = [directory(join(root, 'd')), file(join(root, 'd/f')), file(join(root, 'other'))];
    await applied(content(resources));
    const { machine } = watched();
    const failing: Host = {
      ...machine,
      commit: async (steps) =>
        steps.map((step) => (step.path.endsWith('/f') ? { code: 'busy', message: 'in use' } : null)),
    };
    const run = content(
      [],
      resources.map((resource) => removal(resource)),
    );
    const { results } = await applied(run, {}, failing);
    expect(summaryOf(results)[0]).toBe('d none skipped dependency_failed');
    expect(summaryOf(results)[1]).toBe('f remove failed busy');
    expect(summaryOf(results)[2]).toBe('other remove failed not_converged');
    expect(existsSync(join(root, 'd'))).toBe(true);
  });

  it('take away what a file has become only when it is still a file', async () => {
    const root = place();
    mkdirSync(join(root, 'f'));
    const { results } = await applied(content([], [removal(file(join(root, 'f')))]));
    expect(summaryOf(results)).toEqual(['f release changed']);
    expect(existsSync(join(root, 'f'))).toBe(true);
  });
});

describe('a drift check', () => {
  it('tells what has changed, repairs nothing, and looks at everything', async () => {
    const root = place();
    const resources = [
      file(join(root, 'same')),
      file(join(root, 'content')),
      file(join(root, 'mode'), { content: 'x', mode: '0600' }),
      file(join(root, 'gone')),
      file(join(root, 'now-a-directory'), { content: 'x' }, { after: [3] }),
      directory(join(root, 'd')),
      file(join(root, 'd/f')),
    ];
    await applied(content(resources));
    writeFileSync(join(root, 'content'), 'by hand');
    chmodSync(join(root, 'mode'), 0o644);
    rmSync(join(root, 'gone'));
    rmSync(join(root, 'now-a-directory'));
    mkdirSync(join(root, 'now-a-directory'));
    rmSync(join(root, 'd'), { recursive: true });
    const { end, results } = await drifted(resources);
    expect(end).toBe('succeeded');
    expect(summaryOf(results)).toEqual([
      'same none unchanged',
      'content update pending',
      'mode update pending',
      'gone create pending',
      'now-a-directory update pending',
      'd create pending',
      'f create pending',
    ]);
    expect(resultAt(results, 4)).toMatchObject({ error: null, reason: expect.stringContaining('is a directory') });
    expect(resultAt(results, 2).changes).toEqual([{ field: 'mode', before: '0644', after: '0600' }]);
    expect(readFileSync(join(root, 'content'), 'utf8')).toBe('by hand');
  });

  it('has failed when it could not look', async () => {
    const root = place();
    mkdirSync(join(root, 'open'));
    mkdirSync(join(root, 'real'));
    symlinkSync('../real', join(root, 'open/link'));
    chmodSync(join(root, 'open'), 0o777);
    const { end, results } = await drifted([file(join(root, 'open/link/f')), file(join(root, 'x'))]);
    expect(end).toBe('failed');
    expect(summaryOf(results)).toEqual(['f none failed unsafe_path', 'x create pending']);
  });

  it('ends at once when it is cancelled', async () => {
    const resources = Array.from({ length: 600 }, (_, index) => file(`/nowhere/f${index}`));
    const stopper = new AbortController();
    const { end, results } = await drift(content(resources), host(), {
      clock,
      signal: stopper.signal,
      onResults: () => stopper.abort(new Fault('cancelled', 'an apply comes')),
    });
    expect(end).toBe('cancelled');
    expect(results.length).toBeLessThan(600);
  });
});

describe('secrets', () => {
  const secret = 'hunter2-and-more';
  const tag = '7f3a';
  const tainted = (path: string, before: string, after: string, more: Record<string, unknown> = {}) => {
    const text = before + secret + after;
    const span = { start: before.length, end: before.length + secret.length, secret: 'db', tag };
    return file(path, { content: text, ...more }, { taint: { '/content': [span] } });
  };

  it('are masked in the diff, the old one too, and everything else is shown', async () => {
    const root = place();
    writeFileSync(join(root, 'f'), 'host=a\npassword=old-password\nextra=1\n');
    const wanted = tainted(join(root, 'f'), 'host=a\npassword=', '\n# end\n');
    const { results } = await planned(content([wanted]));
    const { diff, sensitive } = resultAt(results, 0);
    expect(sensitive).toBe(true);
    expect(diff).toBe(
      `--- a${root}/f\n+++ b${root}/f\n@@ -1,3 +1,3 @@\n host=a\n-password=‹masked›\n-‹masked line›\n+password=‹secret db #7f3a›\n+# end\n`,
    );
  });

  it('are nowhere in what is reported, whatever happens to the resource', async () => {
    const root = place();
    const owner = `user-${secret}`;
    const spans = [{ start: 5, end: owner.length, secret: 'name', tag }];
    const run = content([
      tainted(join(root, 'a'), 'x=', ''),
      file(join(root, 'b'), { content: 'x', owner }, { taint: { '/owner': spans } }),
      tainted(join(root, 'none/c'), '', '\n'),
    ]);
    const reports = JSON.stringify([
      await planned(run),
      await applied(run),
      await applied(run),
      await drifted(run.resources),
    ]);
    expect(reports).not.toContain(secret);
    expect(reports).toContain('‹secret db #7f3a›');
    expect(reports).toContain('there is no user \\"user-‹secret name #7f3a›\\"');
    expect(statSync(join(root, 'a')).mode & 0o7777).toBe(0o600);
    expect(readFileSync(join(root, 'a'), 'utf8')).toBe(`x=${secret}`);
  });
});

describe('a run of many kinds of wishes', () => {
  const names = fc.constantFrom('a', 'b', 'c', 'ü', '.d', 'e f', 'g\nh', '$x', "i'j", '‹k›');
  const mode = fc.option(fc.constantFrom('600', '0644', '0755', '4711', '2750', '1777'), { nil: null });
  const owner = fc.option(fc.constantFrom('0', '1', '1234'), { nil: null });
  const text = fc.option(
    fc.string({ unit: 'binary' }).filter((value) => !/\p{Surrogate}/u.test(value)),
    { nil: null },
  );
  const wish = fc.oneof(
    fc.record({ kind: fc.constant('file'), path: fc.tuple(names, names), content: text, mode, owner }),
    fc.record({ kind: fc.constant('directory'), path: fc.tuple(names), content: fc.constant(null), mode, owner }),
  );
  const isItem = validator(RunItemSchema);

  it('leaves nothing to do once it is applied, and everything gone once it is removed', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.uniqueArray(wish, { selector: ({ path }) => path.join('/'), maxLength: 25 }),
        async (wishes) => {
          const root = place();
          const parents = [...new Set(wishes.flatMap(({ kind, path }) => (kind === 'file' ? [path[0]] : [])))];
          const own = new Map(wishes.filter(({ kind }) => kind === 'directory').map((one) => [one.path[0], one]));
          const bodyOf = ({ mode: m, owner: o }: (typeof wishes)[number]) => ({ mode: m, owner: isRoot ? o : null });
          const directories = [...new Set([...parents, ...own.keys()])].map((name) => {
            const wanted = own.get(name);
            return directory(join(root, String(name)), wanted ? bodyOf({ ...wanted, mode: '0755', owner: null }) : {});
          });
          const files = wishes
            .filter(({ kind }) => kind === 'file')
            .map((one) => file(join(root, ...one.path), { content: one.content, ...bodyOf(one) }));
          const resources = [...directories, ...files];
          const first = await applied(content(resources));
          expect(first.results.filter(({ result }) => result.status === 'failed')).toEqual([]);
          expect(first.results.every((item) => isItem.check(item))).toBe(true);
          expect(first.results.map(({ index }) => index).sort((a, b) => a - b)).toEqual(
            resources.map((_, index) => index),
          );
          const second = await planned(content(resources));
          expect(second.results.filter(({ result }) => result.status !== 'unchanged')).toEqual([]);
          const gone = await applied(
            content(
              [],
              resources.map((resource) => removal(resource)),
            ),
          );
          expect(gone.end).toBe('succeeded');
          expect(readdirSync(root)).toEqual([]);
        },
      ),
      { numRuns: drawn(20) },
    );
  });
});
