/** Triggers between resources, and what a run that does not come to them leaves owed in the journal. */
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { type ApplyOptions, apply, drift, plan } from '../../../src/agent/converge.js';
import { Journal } from '../../../src/agent/journal.js';
import { Fault } from '../../../src/kernel/fault.js';
import type { DesiredResource } from '../../../src/resources/desired.js';
import type { Host } from '../../../src/resources/host.js';
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

let root: string;
let dataDir: string;
let journal: Journal;
let count: number;

beforeEach(() => {
  root = place();
  dataDir = place();
  journal = new Journal(dataDir);
  count = 0;
});

const at = (name: string): string => join(root, name);
const lines = (name: string): number =>
  existsSync(at(name)) ? readFileSync(at(name), 'utf8').split('\n').length - 1 : 0;

/** Applies with what the journal holds, as the agent does, but for the apply's own records. */
function applied(run: RunContent, options: Partial<ApplyOptions> = {}, machine: Host = host()) {
  count += 1;
  return apply(run, machine, {
    clock,
    ledger: journal,
    runId: `OP${count}`,
    intend: (_intents, precautions) => {
      journal.recordPrecautions(precautions);
      journal.sync();
    },
    onResults: (_items, notes) => {
      journal.recordNotes(notes);
      journal.sync();
    },
    ...options,
  });
}
const planned = (run: RunContent) => plan(run, host(), { clock, ledger: journal });
const drifted = (run: RunContent) => drift(run, host(), { clock, ledger: journal });

/** Comes back as another process would. */
function restart(): void {
  journal.close();
  journal = new Journal(dataDir);
}

/** A file, and a script that counts its runs in `ran` and fails while `broken` is there. */
function site(text: string, more: readonly DesiredResource[] = []): RunContent {
  const apply = `[ ! -e ${at('broken')} ] || exit 3; cat ${at('conf')} >>${at('seen')}; echo >>${at('ran')}`;
  return content([
    file(at('conf'), { content: text }),
    script('reader', { apply, check: `test -e ${at('ran')}` }, { triggers: { rerun_on: [0] } }),
    ...more,
  ]);
}

describe('a trigger', () => {
  it('runs what listens when something it listens to has changed, and only then', async () => {
    const first = await applied(site('one\n'));
    expect(summaryOf(first.results)).toEqual(['conf create changed', 'reader run changed']);
    expect(lines('ran')).toBe(1);
    expect(summaryOf((await applied(site('one\n'))).results)).toEqual(['conf none unchanged', 'reader none unchanged']);
    const foretold = await planned(site('two\n'));
    expect(summaryOf(foretold.results)).toEqual(['conf update pending', 'reader run pending']);
    expect(resultAt(foretold.results, 1).reason).toBe(`file-unix ${at('conf')} changes`);
    const second = await applied(site('two\n'));
    expect(summaryOf(second.results)).toEqual(['conf update changed', 'reader run changed']);
    expect(resultAt(second.results, 1).reason).toBe(`file-unix ${at('conf')} changed`);
    expect(readFileSync(at('seen'), 'utf8')).toBe('one\ntwo\n');
    expect(journal.owed).toEqual([]);
  });

  it('runs it once for many, after the last of them', async () => {
    const run = content([
      file(at('a'), { content: 'a' }),
      file(at('b'), { content: 'b' }),
      script('both', { apply: `cat ${at('a')} ${at('b')}; echo >>${at('ran')}` }, { triggers: { rerun_on: [0, 1] } }),
    ]);
    const { results } = await applied(run);
    expect(lines('ran')).toBe(1);
    expect(results.find(({ index }) => index === 2)?.output).toMatchObject({ stdout: 'ab', exit_code: 0 });
    expect(resultAt(results, 2).reason).toContain(`file-unix ${at('a')} and 1 more changed`);
  });

  it('goes on from what was triggered to what listens to that', async () => {
    const chain = (text: string) =>
      site(text, [script('second', { apply: `echo >>${at('then')}`, check: 'true' }, { triggers: { rerun_on: [1] } })]);
    await applied(chain('one\n'));
    await applied(chain('one\n'));
    await applied(chain('two\n'));
    expect([lines('ran'), lines('then')]).toEqual([2, 2]);
  });
});

describe('a trigger that was not answered', () => {
  it('is owed by the next run, which shows it, and pays it although nothing else changes', async () => {
    await applied(site('one\n'));
    writeFileSync(at('broken'), '');
    const failed = await applied(site('two\n'));
    expect(summaryOf(failed.results)).toEqual(['conf update changed', 'reader run failed script_failed']);
    restart();
    expect(journal.owed).toMatchObject([{ field: 'rerun_on', run: 'OP2' }]);
    for (const look of [await planned(site('two\n')), await drifted(site('two\n'))]) {
      expect(summaryOf(look.results)).toEqual(['conf none unchanged', 'reader run pending']);
      expect(resultAt(look.results, 1).reason).toBe('rerun owed since operation OP2');
    }
    rmSync(at('broken'));
    const paid = await applied(site('two\n'));
    expect(summaryOf(paid.results)).toEqual(['conf none unchanged', 'reader run changed']);
    restart();
    expect(journal.owed).toEqual([]);
    expect(summaryOf((await applied(site('two\n'))).results)).toEqual(['conf none unchanged', 'reader none unchanged']);
    expect(readFileSync(at('seen'), 'utf8')).toBe('one\ntwo\n');
  });

  it.each(['cancelled', 'interrupted'] as const)('stays owed by a run that is %s in between', async (code) => {
    await applied(site('one\n'));
    const stopper = new AbortController();
    const { end } = await applied(site('two\n'), {
      signal: stopper.signal,
      onResults: (items, notes) => {
        journal.recordNotes(notes);
        journal.sync();
        if (items.some(({ index }) => index === 0)) stopper.abort(new Fault(code, 'stop'));
      },
    });
    expect(end).toBe(code);
    restart();
    expect(summaryOf((await applied(site('two\n'))).results)).toEqual(['conf none unchanged', 'reader run changed']);
  });

  it('is owed when the process dies after the change, before anything is known of it', async () => {
    await applied(site('one\n'));
    const real = host();
    const dying: Host = {
      platform: 'linux',
      accounts: () => real.accounts(),
      observe: (requests) => real.observe(requests),
      run: (command) => real.run(command),
      commit: async (steps) => {
        await real.commit(steps);
        // The memory of the process is lost; its synced files are there.
        journal = new Journal(dataDir);
        throw new Error('dead');
      },
    };
    await applied(site('two\n'), { onResults: () => undefined }, dying);
    expect(readFileSync(at('conf'), 'utf8')).toBe('two\n');
    expect(summaryOf((await applied(site('two\n'))).results)).toEqual(['conf none unchanged', 'reader run changed']);
  });

  it('is not owed for a change that did not come about', async () => {
    await applied(site('one\n'));
    const real = host();
    const unable: Host = {
      platform: 'linux',
      accounts: () => real.accounts(),
      observe: (requests) => real.observe(requests),
      run: (command) => real.run(command),
      commit: async (steps) => steps.map(() => ({ code: 'read_only', message: 'it is read-only' })),
    };
    const { results } = await applied(site('two\n'), {}, unable);
    expect(summaryOf(results)).toEqual(
      ['conf none failed read_only', 'reader none skipped dependency_failed'].map((line) =>
        line.replace('conf none', 'conf update'),
      ),
    );
    expect(journal.owed).toEqual([]);
  });

  it('stays owed for a change that came about in part, whatever becomes of others that it listens to', async () => {
    const halfway = (check: string, apply: string) => ({ check: `test -e ${at(check)}`, apply });
    const run = content([
      script('partly', halfway('a', `touch ${at('a')}; exit 1`)),
      script('never', halfway('b', 'exit 1')),
      script('reader', { apply: `echo >>${at('ran')}` }, { triggers: { rerun_on: [0, 1] } }),
    ]);
    for (const name of ['a', 'b']) writeFileSync(at(name), '');
    await applied(run);
    for (const name of ['a', 'b']) rmSync(at(name));
    await applied(run);
    writeFileSync(at('b'), '');
    restart();
    expect(summaryOf((await applied(run)).results)).toEqual([
      'partly none unchanged',
      'never none unchanged',
      'reader run changed',
    ]);
    expect([lines('ran'), journal.owed]).toEqual([2, []]);
  });

  it('is forgotten with the resource that owed it', async () => {
    await applied(site('one\n'));
    writeFileSync(at('broken'), '');
    await applied(site('two\n'));
    const { resources } = site('two\n');
    const [conf, reader] = resources;
    if (!conf || !reader) throw new Error('the site has two resources');
    await applied(content([conf], [removal(reader)]));
    expect(journal.owed).toEqual([]);
  });
});

describe('what a script left', () => {
  const once = (text: string) => content([script('once', { apply: `echo ${text} >>${at('ran')}` })]);

  it('is remembered, so that one without a check runs once for each body', async () => {
    expect(summaryOf((await applied(once('a'))).results)).toEqual(['once run changed']);
    restart();
    for (const look of [await planned(once('a')), await applied(once('a')), await drifted(once('a'))]) {
      expect(summaryOf(look.results)).toEqual(['once none unchanged']);
    }
    expect(summaryOf((await applied(once('b'))).results)).toEqual(['once run changed']);
    expect(readFileSync(at('ran'), 'utf8')).toBe('a\nb\n');
  });

  it('is not remembered of a failure, and forgotten with its removal', async () => {
    const failing = content([script('once', { apply: `echo >>${at('ran')}; exit 1` })]);
    await applied(failing);
    await applied(failing);
    expect(lines('ran')).toBe(2);
    await applied(once('a'));
    const [resource] = once('a').resources;
    if (!resource) throw new Error('there is one resource');
    expect(summaryOf((await applied(content([], [removal(resource)]))).results)).toEqual(['once release changed']);
    expect(summaryOf((await applied(once('a'))).results)).toEqual(['once run changed']);
  });

  it('is forgotten when another body begins, so that what a failure has changed is put right', async () => {
    const body = (text: string, end = '') => content([script('once', { apply: `echo ${text} >${at('f')}${end}` })]);
    await applied(body('A'));
    expect(summaryOf((await applied(body('B', '; exit 1'))).results)).toEqual(['once run failed script_failed']);
    restart();
    expect(summaryOf((await applied(body('A'))).results)).toEqual(['once run changed']);
    expect(readFileSync(at('f'), 'utf8')).toBe('A\n');
  });

  it('is undone by its undo', async () => {
    const run = content([
      script('made', { apply: `mkdir ${at('d')}`, check: `test -d ${at('d')}`, undo: `rmdir ${at('d')}; echo undone` }),
    ]);
    await applied(run);
    const [resource] = run.resources;
    if (!resource) throw new Error('there is one resource');
    const { results } = await applied(content([], [removal(resource)]));
    expect(results).toMatchObject([{ output: { stdout: 'undone\n' }, result: { status: 'changed' } }]);
    expect(existsSync(at('d'))).toBe(false);
    mkdirSync(at('d'));
    expect((await applied(run)).results).toMatchObject([{ existed: true, result: { status: 'unchanged' } }]);
  });

  it('shows no secret, in whatever form it is written', async () => {
    const secret = 'hunter2/and more';
    const text = `printf '%s\\n' '${secret}'; printf %s '${secret}' | base64; echo '${encodeURIComponent(secret)}' >&2; exit 1`;
    const start = text.indexOf(secret);
    const span = (from: number) => ({ start: from, end: from + secret.length, secret: 'pw', tag: 'ab12' });
    const second = text.indexOf(secret, start + 1);
    const run = content([script('leaky', { apply: text }, { taint: { '/apply': [span(start), span(second)] } })]);
    const { results } = await applied(run);
    const told = JSON.stringify(results);
    for (const form of [secret, Buffer.from(secret).toString('base64'), encodeURIComponent(secret)]) {
      expect(told).not.toContain(form.replace(/=+$/, ''));
    }
    expect(results[0]?.output?.stdout).toContain('‹secret pw #ab12›');
    expect(results[0]?.result.error?.code).toBe('script_failed');
  });
});

describe('a removal that something listens to', () => {
  /** A kept file, a reader that listens to it and to what goes, and a file that comes last. */
  const without = (text: string, removals: readonly DesiredResource[], ...more: readonly DesiredResource[]) => {
    const count = 3 + more.length;
    const rerun_on = [0, ...removals.map((_, index) => count + index)];
    const apply = `[ ! -e ${at('broken')} ] || exit 3; ls ${at('sites')} | wc -l >>${at('seen')}; echo >>${at('ran')}`;
    return content(
      [
        file(at('conf'), { content: text }),
        script('reader', { apply, check: 'true' }, { after: [], triggers: { rerun_on } }),
        file(at('last'), { content: 'x' }),
        ...more,
      ],
      removals.map((one) => removal(one)),
    );
  };
  const site = (name: string) => file(at(`sites/${name}`), { content: name });
  const sites = () => directory(at('sites'));

  beforeEach(async () => {
    await applied(content([sites(), site('a'), site('b'), file(at('conf'), { content: 'one\n' })]));
  });

  it('goes before the trigger fires, which it does once, as the plan says', async () => {
    const run = without('two\n', [site('a'), site('b')]);
    const foretold = await planned(run);
    const done = await applied(run);
    expect(summaryOf(foretold.results)).toEqual([
      ...['conf update pending', 'reader run pending', 'last create pending'],
      ...['a remove pending', 'b remove pending'],
    ]);
    const conf = `file-unix ${at('conf')}`;
    const gone = `file-unix ${at('sites/a')} and 1 more`;
    expect(resultAt(foretold.results, 1).reason).toBe(`${conf} changes; ${gone} go`);
    expect(resultAt(done.results, 1)).toMatchObject({ status: 'changed', reason: `${conf} changed; ${gone} are gone` });
    expect(readFileSync(at('seen'), 'utf8').trim()).toBe('0');
    expect(lines('ran')).toBe(1);
    expect(journal.owed).toEqual([]);
  });

  it('takes along what has to go before it', async () => {
    const { results } = await applied(without('one\n', [sites(), site('a'), site('b')]));
    expect(results.every(({ result }) => ['changed', 'unchanged'].includes(result.status))).toBe(true);
    expect(existsSync(at('sites'))).toBe(false);
    expect(lines('ran')).toBe(1);
  });

  it('leaves the trigger owed when what listens fails', async () => {
    writeFileSync(at('broken'), '');
    const failed = await applied(without('one\n', [site('a')]));
    expect(summaryOf(failed.results)).toContain('reader run failed script_failed');
    expect(existsSync(at('sites/a'))).toBe(false);
    restart();
    rmSync(at('broken'));
    const paid = await applied(without('one\n', []));
    expect(resultAt(paid.results, 1)).toMatchObject({ status: 'changed', reason: 'rerun owed since operation OP2' });
    expect(lines('ran')).toBe(1);
  });

  it('stays while something before has failed, and causes nothing then', async () => {
    mkdirSync(at('last'));
    const held = without('one\n', [site('a')]);
    const [conf, reader, last] = held.resources as [DesiredResource, DesiredResource, DesiredResource];
    const run = content([last, conf, reader], held.removals);
    const { results } = await applied(run);
    expect(summaryOf(results)).toEqual([
      ...['last none failed wrong_type', 'conf none unchanged', 'reader none unchanged'],
      'a none skipped dependency_failed',
    ]);
    expect([existsSync(at('sites/a')), lines('ran')]).toEqual([true, 0]);
  });

  it('causes nothing when it was gone already, or is only released', async () => {
    rmSync(at('sites/a'));
    const { resources, removals } = without('one\n', [site('a'), site('b')]);
    const released = removals.map((one, index) => ({
      ...one,
      origin: index === 1 ? ('adopted' as const) : one.origin,
    }));
    const { results } = await applied(content(resources, released));
    expect(summaryOf(results)).toEqual([
      ...['conf none unchanged', 'reader none unchanged', 'last create changed'],
      ...['a none unchanged', 'b release changed'],
    ]);
    expect([existsSync(at('sites/b')), lines('ran')]).toEqual([true, 0]);
  });
});
