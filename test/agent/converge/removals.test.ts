/** Removals as a part of the run: what is still wanted stays, what stands in the way goes first, and all others wait for success. */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { apply, plan } from '../../../src/agent/converge.js';
import { Journal } from '../../../src/agent/journal.js';
import type { DesiredResource } from '../../../src/resources/desired.js';
import type { RunItem } from '../../../src/wire/messages.js';
import type { RunContent } from '../../../src/wire/parts.js';
import {
  clock,
  content,
  directory,
  file,
  host,
  place,
  removal,
  resultAt,
  script,
  summaryOf,
} from '../../support/agent.js';

/** A directory, and runs on this machine with one journal. */
function site() {
  const root = place();
  const journal = new Journal(place());
  onTestFinished(() => journal.close());
  const at = (name: string) => join(root, name);
  const planned = async (run: RunContent) => plan(run, host(), { clock, ledger: journal });
  const applied = async (run: RunContent, { fails = [] }: { readonly fails?: readonly string[] } = {}) => {
    const machine = host();
    const commit = machine.commit.bind(machine);
    machine.commit = async (steps) =>
      Promise.all(
        steps.map(async (step) =>
          fails.includes(step.path)
            ? ({ code: 'busy', message: 'in use' } as const)
            : ((await commit([step]))[0] ?? null),
        ),
      );
    return apply(run, machine, {
      clock,
      ledger: journal,
      intend: (_intents, precautions) => {
        journal.recordPrecautions(precautions);
        journal.sync();
      },
      onResults: (_items, notes) => {
        journal.recordNotes(notes);
        journal.sync();
      },
    });
  };
  return { root, at, planned, applied };
}

type Site = ReturnType<typeof site>;

/** `identity action`, in the order in which it happens. */
const orderOf = (items: readonly RunItem[]) =>
  items.map(({ result: { identity, action, status } }) => `${identity.split('/').pop()} ${action} ${status}`);

/** Applies a run after its plan, and expects that both do the same in the same order. */
async function foretold({ planned, applied }: Site, run: RunContent): Promise<readonly RunItem[]> {
  const steps = (items: readonly RunItem[]) =>
    items
      .filter(({ result: { status } }) => status !== 'unchanged')
      .map(({ index, result: { action, error } }) => `${index} ${action} ${error?.code ?? ''}`);
  const seen = steps((await planned(run)).results);
  const { results } = await applied(run);
  expect([...steps(results)].sort()).toEqual([...seen].sort());
  const removals = (all: readonly string[]) => all.filter((step) => Number(step.split(' ')[0]) >= run.resources.length);
  expect(removals(steps(results))).toEqual(removals(seen));
  return results;
}

describe('a removal of what is still wanted', () => {
  /** A directory `usr/lib`, and a link `lib` to it. */
  function linked(): Site {
    const made = site();
    mkdirSync(made.at('usr/lib'), { recursive: true });
    symlinkSync('usr/lib', made.at('lib'));
    return made;
  }

  it('hands a file over that has another path through a link, with its origin', async () => {
    const made = linked();
    const { at, applied } = made;
    await applied(content([file(at('lib/x'))]));
    const results = await foretold(made, content([file(at('usr/lib/x'))], [removal(file(at('lib/x')))]));
    expect(summaryOf(results)).toEqual(['x none unchanged', 'x release changed']);
    expect(resultAt(results, 1).reason).toContain(`the same thing as file-unix ${at('usr/lib/x')}, which is wanted`);
    expect(results.find(({ index }) => index === 0)?.existed).toBe(false);
    expect(existsSync(at('lib/x'))).toBe(true);
  });

  it('does not make an adopted file one of orch', async () => {
    const { at, applied } = linked();
    writeFileSync(at('lib/x'), 'x');
    const { results } = await applied(content([file(at('usr/lib/x'))], [removal(file(at('lib/x')), 'adopted')]));
    expect(results.find(({ index }) => index === 0)?.existed).toBe(true);
  });

  it('leaves a directory in which something wanted lies, as the plan says', async () => {
    const made = linked();
    mkdirSync(made.at('lib/app'));
    const run = content([file(made.at('usr/lib/app/f'))], [removal(directory(made.at('lib/app')))]);
    const results = await foretold(made, run);
    expect(summaryOf(results)).toEqual(['f create changed', 'app release changed']);
  });

  it('hands a script over that was renamed, in its module or to another', async () => {
    const { at, applied } = site();
    const body = { check: `test -e ${at('flag')}`, apply: `touch ${at('flag')}`, undo: `rm ${at('flag')}` };
    await applied(content([script('old', body)]));
    const old = { ...removal(script('old', body)), module: 'other' };
    const { results } = await applied(content([script('new', body)], [old]));
    expect(summaryOf(results)).toEqual(['new none unchanged', 'old release changed']);
    expect(existsSync(at('flag'))).toBe(true);
  });
});

describe('a removal of what goes with another change of the apply', () => {
  it('is done, as the plan says', async () => {
    const made = site();
    const { at, applied } = made;
    await applied(content([file(at('old'))]));
    const sweep = script('sweep', { check: `test ! -e ${at('old')}`, apply: `rm ${at('old')}` });
    const results = await foretold(made, content([sweep], [removal(file(at('old')))]));
    expect(summaryOf(results)).toEqual(['sweep run changed', 'old remove changed']);
    expect(resultAt(results, 1).reason).toBe('it went with an earlier change of this apply');
  });

  it('finds nothing to do when that was gone before', async () => {
    const made = site();
    const { at, applied } = made;
    await applied(content([file(at('old'))]));
    rmSync(at('old'));
    const other = script('other', { check: `test -e ${at('flag')}`, apply: `touch ${at('flag')}` });
    const results = await foretold(made, content([other], [removal(file(at('old')))]));
    expect(summaryOf(results)).toEqual(['other run changed', 'old none unchanged']);
  });
});

it.each(['file', 'directory'] as const)('refuses a %s that two entries declare through a link', async (type) => {
  const made = site();
  const { at } = made;
  mkdirSync(at('real'));
  symlinkSync('real', at('link'));
  const declare = (path: string): DesiredResource => (type === 'file' ? file(path) : directory(path));
  const run = content([declare(at('link/a/x')), file(at('y')), declare(at('real/a/x'))]);
  const results = await foretold(made, run);
  expect(summaryOf(results)).toEqual([
    'x none failed module_conflict',
    'y create changed',
    'x none failed module_conflict',
  ]);
  for (const index of [0, 2]) {
    expect(resultAt(results, index).error?.message).toContain(at('link/a/x'));
    expect(resultAt(results, index).error?.message).toContain(at('real/a/x'));
  }
  expect(existsSync(at('real/a'))).toBe(false);
});

describe('what stands in the way of a wanted path goes first', () => {
  it('as a file that becomes a directory with files in it, and back', async () => {
    const made = site();
    const { at, applied } = made;
    await applied(content([file(at('a'))]));
    const inner = [directory(at('a')), file(at('a/b'))];
    const there = await foretold(made, content(inner, [removal(file(at('a')))]));
    expect(orderOf(there)).toEqual(['a remove changed', 'a create changed', 'b create changed']);
    expect(there.find(({ index }) => index === 0)?.existed).toBe(false);
    const back = await foretold(
      made,
      content(
        [file(at('a'))],
        inner.map((one) => removal(one)),
      ),
    );
    expect(orderOf(back)).toEqual(['b remove changed', 'a remove changed', 'a create changed']);
    expect(readFileSync(at('a'), 'utf8')).toBe('x');
  });

  it('as a file with another one below it, and back over the directories that orch made', async () => {
    const made = site();
    const { at, applied } = made;
    await applied(content([file(at('a'))]));
    const there = await foretold(made, content([file(at('a/b/c'))], [removal(file(at('a')))]));
    expect(orderOf(there)).toEqual(['a remove changed', 'c create changed']);
    const back = await foretold(made, content([file(at('a'))], [removal(file(at('a/b/c')))]));
    expect(orderOf(back)).toEqual(['c remove changed', 'a create changed']);
    expect(back.find(({ index }) => index === 0)?.existed).toBe(false);
    expect(readFileSync(at('a'), 'utf8')).toBe('x');
  });

  it('but not with a directory that was there before, nor with what it holds besides', async () => {
    const { at, applied } = site();
    mkdirSync(at('found'));
    await applied(content([file(at('found/f')), file(at('made/f'))]));
    writeFileSync(at('made/other'), '');
    const removals = ['found/f', 'made/f'].map((name) => removal(file(at(name))));
    const { results } = await applied(content([file(at('found')), file(at('made'))], removals));
    expect(summaryOf(results).slice(0, 2)).toEqual(['found none failed wrong_type', 'made create failed apply_failed']);
    expect(readdirSync(at('made'))).toEqual(['other']);
    expect(existsSync(at('found'))).toBe(true);
  });

  it('although something else has failed', async () => {
    const { at, applied } = site();
    await applied(content([file(at('a'))]));
    const run = content([file(at('bad')), directory(at('a'))], [removal(file(at('a')))]);
    const { end, results } = await applied(run, { fails: [at('bad')] });
    expect(end).toBe('failed');
    expect(summaryOf(results)).toEqual(['bad create failed busy', 'a create changed', 'a remove changed']);
  });

  it('unless what it is for is not attempted', async () => {
    const { at, applied } = site();
    await applied(content([file(at('a'))]));
    const run = content([file(at('bad')), directory(at('a'), {}, { after: [0] })], [removal(file(at('a')))]);
    const { results } = await applied(run, { fails: [at('bad')] });
    expect(summaryOf(results).at(-1)).toBe('a none skipped dependency_failed');
    expect(existsSync(at('a'))).toBe(true);
  });

  it('as the undo of a script before the one in its place', async () => {
    const made = site();
    const { at, applied } = made;
    const undo = `rm -f ${at('flag')}`;
    await applied(content([script('old', { apply: `touch ${at('flag')}`, undo })]));
    const run = content(
      [script('new', { apply: `echo new >${at('flag')}`, undo })],
      [removal(script('old', { apply: `touch ${at('flag')}`, undo }))],
    );
    expect(orderOf(await foretold(made, run))).toEqual(['old remove changed', 'new run changed']);
    expect(readFileSync(at('flag'), 'utf8')).toBe('new\n');
  });
});

describe('all other removals', () => {
  it('wait for an apply in which nothing fails, and say which failure held them back', async () => {
    const made = site();
    const { at, applied } = made;
    await applied(content([file(at('old'))]));
    const run = content([file(at('new'))], [removal(file(at('old'))), removal(file(at('found')), 'adopted')]);
    const { results } = await applied(run, { fails: [at('new')] });
    expect(summaryOf(results)).toEqual([
      'new create failed busy',
      'old none skipped dependency_failed',
      'found none skipped dependency_failed',
    ]);
    expect(resultAt(results, 1).error?.message).toBe(
      `not removed, because file-unix ${at('new')} failed; the next apply in which nothing fails removes it`,
    );
    expect(existsSync(at('old'))).toBe(true);
    expect(orderOf(await foretold(made, run))).toEqual([
      'new create changed',
      'found release changed',
      'old remove changed',
    ]);
  });

  it('are planned as held back when a wanted resource fails in the plan', async () => {
    const made = site();
    mkdirSync(made.at('a'));
    writeFileSync(made.at('old'), '');
    const results = await foretold(made, content([file(made.at('a'))], [removal(file(made.at('old')))]));
    expect(summaryOf(results)).toEqual(['a none failed wrong_type', 'old none skipped dependency_failed']);
  });
});

describe('what a removal takes along', () => {
  const taken = async (undo: (at: Site['at']) => string, wanted: (at: Site['at']) => DesiredResource) => {
    const made = site();
    const { at, applied } = made;
    const effect = script('effect', { apply: 'true', undo: undo(at) });
    await applied(content([wanted(at), effect]));
    return { at, ...(await applied(content([wanted(at)], [removal(effect)]))) };
  };

  it('is read again and repaired', async () => {
    const { at, end, results } = await taken(
      (at) => `rm ${at('f')}`,
      (at) => file(at('f')),
    );
    expect(end).toBe('succeeded');
    expect(summaryOf(results)).toEqual(['f create changed', 'effect remove changed']);
    expect(resultAt(results, 0).reason).toContain('a removal of this apply had changed it');
    expect(readFileSync(at('f'), 'utf8')).toBe('x');
  });

  it('fails when it cannot be repaired, and is never called unchanged', async () => {
    const { end, results } = await taken(
      (at) => `rm ${at('f')} && mkdir ${at('f')}`,
      (at) => file(at('f')),
    );
    expect(end).toBe('failed');
    expect(summaryOf(results)).toEqual(['f none failed wrong_type', 'effect remove changed']);
  });
});

describe('what an apply brings', () => {
  it('did not exist before it, whatever comes first', async () => {
    const { at, applied } = site();
    const resources = [
      script('makes', { apply: `touch ${at('made')} ${at('flag')}` }),
      file(at('made'), {}),
      script('checks', { check: `test -e ${at('flag')}`, apply: 'false' }),
    ];
    writeFileSync(at('found'), '');
    const { results } = await applied(content([...resources, file(at('found'), {})]));
    expect(results.map(({ index, existed }) => [index, existed])).toEqual([
      [0, false],
      [1, false],
      [2, false],
      [3, true],
    ]);
  });

  it('and fails to finish is distinguished from one that fails and leaves nothing', async () => {
    const { at, applied } = site();
    rmSync(at('none'), { force: true });
    const { results } = await applied(content([file(at('none'))]), { fails: [at('none')] });
    expect(results).toMatchObject([{ existed: null, result: { action: 'create', status: 'failed' } }]);
  });
});
