/** What is declared absent goes in the order of the module, like everything that is wanted, and only once. */
import { existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { apply, drift, plan } from '../../../src/agent/converge.js';
import { Journal } from '../../../src/agent/journal.js';
import type { DesiredResource } from '../../../src/resources/desired.js';
import type { RunContent } from '../../../src/wire/parts.js';
import { clock, content, directory, file, host, place, removal, script, summaryOf } from '../../support/agent.js';

const noFile = (path: string, extra: Partial<DesiredResource> = {}): DesiredResource => ({
  ...file(path, {}),
  kind: 'absent-file-unix',
  body: { path },
  ...extra,
});
const noDirectory = (path: string, recursive = false): DesiredResource => ({
  ...file(path, {}),
  kind: 'absent-directory-unix',
  body: { path, ...(recursive && { recursive }) },
});

function site() {
  const root = place();
  const ledger = new Journal(place());
  onTestFinished(() => ledger.close());
  const at = (name: string) => join(root, name);
  /** Returns the plan, which the apply does. */
  const applied = async (run: RunContent): Promise<readonly string[]> => {
    const seen = summaryOf((await plan(run, host(), { clock, ledger })).results);
    const { results } = await apply(run, host(), {
      clock,
      ledger,
      onResults: (_items, notes) => {
        ledger.recordNotes(notes);
        ledger.sync();
      },
    });
    const done = summaryOf(results);
    expect(done).toEqual(seen.map((one) => one.replace('pending', 'changed')));
    return done;
  };
  return {
    root,
    at,
    applied,
    drifted: async (run: RunContent) => summaryOf((await drift(run, host(), { clock, ledger })).results),
  };
}

describe('an absent file', () => {
  it('goes, also when it is a link, whose target stays', async () => {
    const { at, applied, drifted } = site();
    writeFileSync(at('a'), 'x');
    writeFileSync(at('target'), 'x');
    symlinkSync('target', at('link'));
    symlinkSync('nowhere', at('dangling'));
    const run = content([noFile(at('a')), noFile(at('link')), noFile(at('dangling')), noFile(at('none'))]);
    expect(await applied(run)).toEqual([
      'a remove changed',
      'link remove changed',
      'dangling remove changed',
      'none none unchanged',
    ]);
    expect(existsSync(at('target'))).toBe(true);
    expect(await applied(run)).toEqual(['a', 'link', 'dangling', 'none'].map((name) => `${name} none unchanged`));
    writeFileSync(at('none'), '');
    expect((await drifted(run))[3]).toBe('none remove pending');
  });

  it('is refused when it is a directory, or something else', async () => {
    const { at, applied } = site();
    mkdirSync(at('a'));
    expect(await applied(content([noFile(at('a'))]))).toEqual(['a none failed wrong_type']);
    expect(existsSync(at('a'))).toBe(true);
  });

  it('triggers what waits for it when it goes, and not when it was gone', async () => {
    const { at, applied } = site();
    const run = content([
      noFile(at('a')),
      script('log', { check: 'exit 0', apply: `echo run >> ${at('log')}` }, { triggers: { rerun_on: [0] } }),
    ]);
    await applied(run);
    expect(existsSync(at('log'))).toBe(false);
    writeFileSync(at('a'), '');
    await applied(run);
    expect(existsSync(at('log'))).toBe(true);
  });

  it('is removed, as the plan says, where an earlier change of the apply takes it along', async () => {
    const { at, applied } = site();
    writeFileSync(at('a'), '');
    const sweep = script('sweep', { check: `test ! -e ${at('a')}`, apply: `rm ${at('a')}` });
    const log = script('log', { check: 'exit 0', apply: `echo run >> ${at('log')}` }, { triggers: { rerun_on: [1] } });
    const run = content([sweep, noFile(at('a')), log]);
    expect(await applied(run)).toEqual(['sweep run changed', 'a remove changed', 'log run changed']);
    expect(await applied(run)).toEqual(['sweep none unchanged', 'a none unchanged', 'log none unchanged']);
    expect(readFileSync(at('log'), 'utf8')).toBe('run\n');
  });

  it('keeps those that depend on it waiting when it cannot go', async () => {
    const { at, applied } = site();
    mkdirSync(at('a'));
    const run = content([noFile(at('a')), file(at('b'), { content: '' }, { after: [0] })]);
    expect(await applied(run)).toEqual(['a none failed wrong_type', 'b none skipped dependency_failed']);
  });
});

describe('an absent directory', () => {
  it('goes when it is empty, or with its content where the module says so', async () => {
    const { at, applied } = site();
    for (const name of ['empty', 'full/inner', 'tree/inner/deep']) mkdirSync(at(name), { recursive: true });
    mkdirSync(at('outside'));
    writeFileSync(at('outside/kept'), '');
    writeFileSync(at('tree/inner/file'), '');
    symlinkSync(at('outside'), at('tree/inner/link'));
    const run = content([noDirectory(at('empty')), noDirectory(at('full')), noDirectory(at('tree'), true)]);
    expect(await applied(run)).toEqual([
      'empty remove changed',
      'full none failed removal_refused',
      'tree remove changed',
    ]);
    expect(readdirSync(at('')).sort()).toEqual(['full', 'outside']);
    expect(existsSync(at('outside/kept'))).toBe(true);
  });

  it('goes after what the same apply takes out of it', async () => {
    const { at, applied } = site();
    mkdirSync(at('d'));
    writeFileSync(at('d/own'), '');
    writeFileSync(at('d/other'), '');
    const run = content([noFile(at('d/other')), noDirectory(at('d'))], [removal(file(at('d/own')))]);
    expect(await applied(run)).toEqual(['other remove changed', 'd remove changed', 'own remove changed']);
    expect(existsSync(at('d'))).toBe(false);
  });

  it('is refused when it is a link, whose target stays', async () => {
    const { at, applied } = site();
    mkdirSync(at('target'));
    symlinkSync('target', at('link'));
    expect(await applied(content([noDirectory(at('link'), true)]))).toEqual(['link none failed wrong_type']);
    expect(existsSync(at('target'))).toBe(true);
  });
});

describe('an absence beside what orch has made', () => {
  it('leaves the removal of the same thing to the one that comes first', async () => {
    const { at, applied } = site();
    mkdirSync(at('d'));
    writeFileSync(at('d/f'), '');
    const removals = [removal(directory(at('d'))), removal(file(at('d/f')))];
    const done = await applied(content([noDirectory(at('d')), noFile(at('g'))], removals));
    expect([...done].sort()).toEqual(['d none unchanged', 'd remove changed', 'f remove changed', 'g none unchanged']);
    expect(existsSync(at('d'))).toBe(false);
  });

  it('takes what orch had adopted', async () => {
    const { at, applied } = site();
    writeFileSync(at('a'), '');
    expect(await applied(content([noFile(at('a'))], [removal(file(at('a')), 'adopted')]))).toEqual([
      'a remove changed',
      'a release changed',
    ]);
    expect(existsSync(at('a'))).toBe(false);
  });

  it('lets a directory go in which something is absent', async () => {
    const { at, applied } = site();
    mkdirSync(at('d'));
    expect(await applied(content([noFile(at('d/x'))], [removal(directory(at('d')))]))).toEqual([
      'x none unchanged',
      'd remove changed',
    ]);
  });

  it('is released when the module no longer declares it, whatever is there', async () => {
    const { at, applied } = site();
    writeFileSync(at('a'), '');
    for (const origin of ['created', 'adopted'] as const) {
      expect(await applied(content([], [removal(noFile(at('a')), origin)]))).toEqual(['a release changed']);
    }
    expect(lstatSync(at('a')).isFile()).toBe(true);
  });

  it('provides nothing to what needs it', async () => {
    const { at, applied } = site();
    const user: DesiredResource = {
      ...file('nobody-of-orch'),
      kind: 'absent-user-unix',
      body: { name: 'nobody-of-orch' },
    };
    const owned = file(at('a'), { content: '', owner: 'nobody-of-orch' });
    expect(await applied(content([user, owned]))).toEqual([
      'nobody-of-orch none unchanged',
      'a none failed unknown_owner',
    ]);
  });
});
