import { execFileSync } from 'node:child_process';
import {
  appendFileSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it, onTestFinished } from 'vitest';
import { forgetLoss, isJournalWhole, readLoss } from '../../../src/agent/journal/journal-loss.js';
import type { JournalledRun } from '../../../src/agent/journal/journal-state.js';
import { frameOf, inspectJournal } from '../../../src/agent/journal/read-journal.js';
import { Journal } from '../../../src/agent/journal.js';
import { type Fault, isFault } from '../../../src/kernel/fault.js';
import type { RunItem } from '../../../src/wire/messages.js';
import { content, file, isRoot, needs, place, removal, run, script, succeeds } from '../../support/agent.js';
import { drawn } from '../../support/exhaustive.js';
import { isInstalled } from '../../support/is-installed.js';

const idOf = (number: number): string => `01J0000000000000000000000${number}`;

const item = (index: number, diff = ''): RunItem => ({
  index,
  existed: false,
  result: {
    module: 'site',
    kind: 'file-unix',
    identity: `/f${index}`,
    id: null,
    name: null,
    action: 'create',
    status: 'changed',
    changes: [],
    diff,
    sensitive: false,
    reason: null,
    error: null,
    duration_ms: 1,
  },
});

const intent = (index: number) => ({ index, action: 'create', existed: false }) as const;

const accept = (journal: Journal, number: number, resources = [file('/f0'), file('/f1')]) =>
  journal.accept({ id: idOf(number), epoch: 1, generation: number, content: content(resources) });

/** An apply from acceptance to end. */
function complete(journal: Journal, number: number): void {
  accept(journal, number);
  journal.intend(idOf(number), [intent(0)]);
  journal.record(idOf(number), [item(0)]);
  journal.intend(idOf(number), [intent(1)]);
  journal.record(idOf(number), [item(1)]);
  journal.end(idOf(number), 'succeeded', null);
  journal.sync();
}

function reopened(journal: Journal, directory: string): Journal {
  journal.close();
  return new Journal(directory);
}

const faultOf = (open: () => unknown): Fault => {
  try {
    open();
  } catch (error) {
    if (isFault(error)) return error;
    throw error;
  }
  throw new Error('nothing was thrown');
};

describe('the journal', () => {
  it('gives back after a restart what was synced', () => {
    const directory = place();
    const journal = new Journal(directory);
    complete(journal, 1);
    accept(journal, 2);
    journal.intend(idOf(2), [intent(1)]);
    const before = structuredClone(journal.runs);
    const after = reopened(journal, directory);
    expect(after.runs).toEqual(before);
    expect(after.find(idOf(1))).toMatchObject({ end: 'succeeded', items: [item(0), item(1)] });
    expect(after.find(idOf(2))).toMatchObject({ end: null, intents: [intent(1)], items: [] });
    expect(inspectJournal(directory)).toMatchObject({ unacknowledged: 2, running: 1 });
    expect(statSync(join(directory, 'journal')).mode & 0o777).toBe(0o600);
  });

  it('lets results count only when they are on the disk', () => {
    const journal = new Journal(place());
    accept(journal, 1);
    journal.record(idOf(1), [item(0)]);
    expect(journal.find(idOf(1))?.items).toEqual([]);
    journal.intend(idOf(1), [intent(1)]);
    expect(journal.find(idOf(1))?.items).toEqual([item(0)]);
  });

  it('forgets what is acknowledged, but never the newest generation', () => {
    const directory = place();
    let journal = new Journal(directory);
    complete(journal, 1);
    complete(journal, 2);
    journal.acknowledge(idOf(2));
    journal.acknowledge(idOf(9));
    journal = reopened(journal, directory);
    expect(journal.runs.map(({ id }) => id)).toEqual([idOf(1)]);
    journal.acknowledge(idOf(1));
    journal = reopened(journal, directory);
    expect(journal.runs).toEqual([]);
    expect([journal.isNewer(1, 2), journal.isNewer(0, 9), journal.isNewer(1, 3), journal.isNewer(2, 0)]).toEqual([
      false,
      false,
      true,
      true,
    ]);
  });

  it('does not forget an apply that has not ended', () => {
    const directory = place();
    const journal = new Journal(directory);
    accept(journal, 1);
    journal.acknowledge(idOf(1));
    expect(reopened(journal, directory).runs).toHaveLength(1);
  });

  it('is written anew when it has grown, with all that is still open', () => {
    const directory = place();
    let journal = new Journal(directory);
    accept(journal, 1);
    journal.intend(idOf(1), [intent(0)]);
    for (let number = 2; number < 8; number += 1) {
      accept(journal, number, [file('/f', { content: 'x'.repeat(300_000) })]);
      journal.end(idOf(number), 'succeeded', null);
      journal.sync();
      journal.record(idOf(1), [item(number)]);
      journal.acknowledge(idOf(number));
    }
    expect(inspectJournal(directory).bytes).toBeLessThan(1_500_000);
    journal.sync();
    journal = reopened(journal, directory);
    expect(journal.runs).toMatchObject([
      { id: idOf(1), intents: [intent(0)], items: [2, 3, 4, 5, 6, 7].map((i) => item(i)) },
    ]);
    expect(journal.isNewer(1, 7)).toBe(false);
    expect(readdirSync(directory)).toEqual(['journal', 'journal.made']);
  });

  it('is written anew at its opening when nearly all of it means nothing and nothing is open', () => {
    const directory = place();
    const bytes = () => inspectJournal(directory).bytes;
    let journal = new Journal(directory);
    const digest = journal.digest('x');
    const remember = (times: number) => {
      for (let time = 0; time < times; time += 1) {
        journal.recordNotes({ paid: [], memos: [{ key: 'site\0script\0a', memo: `${time}`.padStart(500, '0') }] });
        journal.sync();
      }
    };
    remember(50);
    const small = bytes();
    journal = reopened(journal, directory);
    expect(bytes()).toBe(small);
    remember(500);
    expect(bytes()).toBeGreaterThan(200_000);
    journal = reopened(journal, directory);
    expect(bytes()).toBeLessThan(2_000);
    expect(journal.memo('site\0script\0a')).toMatch(/^0+499$/);
    expect(journal.digest('x')).toBe(digest);
    accept(journal, 1);
    remember(500);
    const open = bytes();
    journal = reopened(journal, directory);
    expect(bytes()).toBe(open);
  });

  it('has no secret left on the disk once an apply is acknowledged', () => {
    const directory = place();
    const journal = new Journal(directory);
    const span = { start: 0, end: 7, secret: 'pw', tag: '0000' };
    accept(journal, 1, [file('/f', { content: 'hunter2' }, { taint: { '/content': [span] } })]);
    journal.end(idOf(1), 'succeeded', null);
    journal.sync();
    expect(readFileSync(join(directory, 'journal'), 'utf8')).toContain('hunter2');
    journal.acknowledge(idOf(1));
    expect(readFileSync(join(directory, 'journal'), 'utf8')).not.toContain('hunter2');
    const taint = { '/undo': [{ ...span, start: 5, end: 12 }] };
    const undone = { ...removal(script('made', { apply: 'true', undo: 'echo hunter2' })), taint };
    journal.accept({ id: idOf(2), epoch: 1, generation: 2, content: content([], [undone]) });
    journal.end(idOf(2), 'succeeded', null);
    journal.sync();
    expect(readFileSync(join(directory, 'journal'), 'utf8')).toContain('hunter2');
    journal.acknowledge(idOf(2));
    expect(readFileSync(join(directory, 'journal'), 'utf8')).not.toContain('hunter2');
  });
});

describe('a journal that was cut off', () => {
  it('opens at every length, and has everything that was synced by then', () => {
    const directory = place();
    const path = join(directory, 'journal');
    /** The length after each sync, and what counts from then on. */
    const known: { readonly length: number; readonly runs: readonly JournalledRun[] }[] = [{ length: 0, runs: [] }];
    const journal = new Journal(directory);
    const note = () => known.push({ length: statSync(path).size, runs: structuredClone(journal.runs) });
    note();
    accept(journal, 1, []);
    note();
    journal.intend(idOf(1), [intent(0)]);
    note();
    journal.record(idOf(1), [item(0, 'grüezi\n')]);
    journal.intend(idOf(1), [intent(1)]);
    note();
    journal.end(idOf(1), 'succeeded', null);
    journal.sync();
    note();
    accept(journal, 2, []);
    note();
    journal.close();
    const whole = readFileSync(path);
    const other = place();
    const copy = join(other, 'journal');
    for (let length = 0; length <= whole.length; length += 1) {
      writeFileSync(copy, whole.subarray(0, length));
      const cut = new Journal(other);
      const sure = known.findLast((one) => one.length <= length);
      for (const { id, items, intents, end } of sure?.runs ?? []) {
        const found = cut.find(id);
        expect(found?.items.slice(0, items.length)).toEqual(items);
        expect(found?.intents.slice(0, intents.length)).toEqual(intents);
        if (end !== null) expect(found?.end).toBe(end);
      }
      if (length % 10 === 0) {
        // It can be written on.
        accept(cut, 9);
        expect(reopened(cut, other).find(idOf(9))).toBeDefined();
      } else {
        cut.close();
      }
    }
  });

  it('is cut where the last write was torn, even when its length is there', () => {
    const directory = place();
    const path = join(directory, 'journal');
    const journal = new Journal(directory);
    complete(journal, 1);
    const good = statSync(path).size;
    journal.close();
    appendFileSync(path, Buffer.alloc(4_096));
    expect(new Journal(directory).runs).toHaveLength(1);
    expect(statSync(path).size).toBe(good);
    const frame = frameOf([{ t: 'ack', run: idOf(1) }]);
    appendFileSync(path, Buffer.concat([frame.subarray(0, 20), Buffer.alloc(frame.length - 20)]));
    expect(new Journal(directory).runs).toHaveLength(1);
    expect(statSync(path).size).toBe(good);
  });
});

describe('a damaged journal', () => {
  it('is kept aside and reported, and the work goes on from what it proves', () => {
    const directory = place();
    const path = join(directory, 'journal');
    const journal = new Journal(directory);
    complete(journal, 1);
    complete(journal, 2);
    journal.recordPrecautions({ owed: [{ key: 'web', field: 'restart_on', run: idOf(2) }], memos: [] });
    journal.sync();
    const runs = new Map(journal.runs.map((one) => [one.id, one]));
    journal.close();
    const whole = readFileSync(path);
    const lastFrame = whole.lastIndexOf(Buffer.from([0x1e]));
    fc.assert(
      fc.property(fc.nat(lastFrame - 1), fc.integer({ min: 1, max: 255 }), (at, change) => {
        const damaged = Buffer.from(whole);
        damaged.writeUInt8((damaged.readUInt8(at) ^ change) & 0xff, at);
        writeFileSync(path, damaged);
        expect(faultOf(() => inspectJournal(directory)).code).toBe('journal_corrupt');
        const recovered = new Journal(directory);
        expect(recovered.loss).toContain(`${path}.damaged-1`);
        expect(readLoss(directory)).toBe(recovered.loss);
        expect(readFileSync(`${path}.damaged-1`).equals(damaged)).toBe(true);
        rmSync(`${path}.damaged-1`);
        for (const one of recovered.runs) expect(one).toEqual(runs.get(one.id));
        expect(recovered.owed).toHaveLength(1);
        expect(recovered.isNewer(1, 1)).toBe(false);
        const again = reopened(recovered, directory);
        expect(again.loss).toBeNull();
        expect(again.runs).toEqual(recovered.runs);
        accept(again, 3);
        again.close();
      }),
      { numRuns: drawn(100) },
    );
    forgetLoss(directory);
    expect(readLoss(directory)).toBeNull();
  });

  it('does not give back an apply whose results have gaps', () => {
    const directory = place();
    const path = join(directory, 'journal');
    const journal = new Journal(directory);
    complete(journal, 1);
    const before = statSync(path).size;
    complete(journal, 2);
    journal.close();
    const damaged = readFileSync(path);
    const second = damaged.indexOf(Buffer.from([0x1e]), before + 1);
    damaged.writeUInt8(damaged.readUInt8(second + 20) ^ 1, second + 20);
    writeFileSync(path, damaged);
    const recovered = new Journal(directory);
    expect(recovered.runs.map(({ id }) => id)).toEqual([idOf(1)]);
    expect(recovered.isNewer(1, 2)).toBe(false);
    expect(recovered.isNewer(1, 3)).toBe(true);
  });

  it('is not mistaken for an empty one', () => {
    for (const text of ['x'.repeat(500), `${'0'.repeat(8)} {"t":"accepted"}\n`.repeat(20)]) {
      const directory = place();
      const path = join(directory, 'journal');
      writeFileSync(path, text);
      expect(new Journal(directory).loss).toContain('does not begin like a journal');
      expect(readFileSync(`${path}.damaged-1`, 'utf8')).toBe(text);
    }
  });

  it('is missed when it was removed or emptied, but not before it was made', () => {
    const directory = place();
    const path = join(directory, 'journal');
    expect(isJournalWhole(directory)).toBe(true);
    expect(new Journal(directory).loss).toBeNull();
    for (const lose of [() => rmSync(path), () => truncateSync(path, 0)]) {
      lose();
      expect(isJournalWhole(directory)).toBe(false);
      expect(new Journal(directory).loss).toContain('empty or missing');
      expect(isJournalWhole(directory)).toBe(true);
    }
  });

  it('of a newer version is refused', () => {
    const directory = place();
    writeFileSync(join(directory, 'journal'), frameOf([{ t: 'journal', version: 2, epoch: 0, generation: 0 }]));
    expect(faultOf(() => new Journal(directory)).message).toContain('newer version');
  });

  it('is not followed to another place', () => {
    const directory = place();
    writeFileSync(join(directory, 'elsewhere'), '');
    symlinkSync('elsewhere', join(directory, 'journal'));
    expect(faultOf(() => new Journal(directory)).code).toBe('data_dir_invalid');
    const second = place();
    mkdirSync(join(second, 'journal'));
    expect(new Journal(second).loss).toContain('not a regular file');
    expect(statSync(join(second, 'journal.damaged-1')).isDirectory()).toBe(true);
  });
});

describe('a full disk', () => {
  it('takes no apply, keeps what there was, and goes on when there is room again', (context) => {
    needs(context, isRoot && process.platform === 'linux', 'root on Linux');
    const directory = join(place(), 'mount');
    mkdirSync(directory);
    needs(context, succeeds('mount', '-t', 'tmpfs', '-o', 'size=128k', 'orch-test', directory), 'the right to mount');
    onTestFinished(() => {
      run('umount', '-l', directory);
    });
    let journal = new Journal(directory);
    complete(journal, 1);
    accept(journal, 2);
    writeFileSync(join(directory, 'ballast'), '');
    const fill = () =>
      execFileSync('sh', ['-c', 'head -c 200k /dev/zero > "$0" 2>/dev/null || true', join(directory, 'ballast')]);
    fill();
    const large = [file('/f', { content: 'x'.repeat(20_000) })];
    expect(faultOf(() => accept(journal, 3, large)).code).toBe('disk_full');
    expect(journal.find(idOf(3))).toBeUndefined();
    journal.record(idOf(2), [item(0, 'y'.repeat(20_000))]);
    expect(faultOf(() => journal.sync()).code).toBe('disk_full');
    expect(journal.find(idOf(2))?.items).toEqual([]);
    journal.acknowledge(idOf(1));
    truncateSync(join(directory, 'ballast'), 0);
    journal.sync();
    journal = reopened(journal, directory);
    expect(journal.runs.map(({ id }) => id)).toEqual([idOf(2)]);
    expect(journal.find(idOf(2))?.items).toHaveLength(1);
    expect(journal.isNewer(1, 2)).toBe(false);
    fill();
    journal.end(idOf(2), 'failed', { code: 'x', message: 'y'.repeat(30_000) });
    expect(faultOf(() => journal.sync()).code).toBe('disk_full');
    journal.assumeWritten();
    expect(journal.find(idOf(2))?.end).toBe('failed');
    truncateSync(join(directory, 'ballast'), 0);
    accept(journal, 4);
    expect(reopened(journal, directory).runs).toMatchObject([
      { id: idOf(2), end: 'failed' },
      { id: idOf(4), end: null },
    ]);
  });
});

describe('a sync that fails', () => {
  it('makes the journal start a new file, since the old one cannot be trusted', (context) => {
    needs(context, process.platform === 'linux' && isInstalled('strace'), 'strace');
    const dist = new URL('../../../dist/src/agent/journal.js', import.meta.url).pathname;
    needs(context, existsSync(dist), 'a build');
    const directory = place();
    const program = `
      const { Journal } = await import(${JSON.stringify(dist)});
      const journal = new Journal(${JSON.stringify(directory)});
      const { ino } = (await import('node:fs')).statSync(${JSON.stringify(join(directory, 'journal'))});
      const accept = (generation) => {
        const id = ${JSON.stringify(idOf(0).slice(0, -1))} + generation;
        try { journal.accept({ id, epoch: 1, generation, content: { resources: [], removals: [] } }); return 'ok'; }
        catch (error) { return error.code; }
      };
      const answers = [accept(1), accept(2)];
      journal.close();
      console.log(JSON.stringify([...answers, ino]));`;
    const inject = ['-f', '-qq', '-o', '/dev/null', '-e', 'trace=fdatasync', '-e', 'inject=fdatasync:error=EIO:when=1'];
    const { stdout } = run('strace', ...inject, process.execPath, '--input-type=module', '-e', program);
    const [first, second, inode] = JSON.parse(stdout) as [string, string, number];
    expect([first, second]).toEqual(['internal', 'ok']);
    expect(statSync(join(directory, 'journal')).ino).not.toBe(inode);
    expect(new Journal(directory).runs.map(({ id }) => id)).toEqual([idOf(2)]);
  });
});

describe('a copy of a journal', () => {
  it('can be inspected while it is written', () => {
    const directory = place();
    const journal = new Journal(directory);
    complete(journal, 1);
    const other = place();
    copyFileSync(join(directory, 'journal'), join(other, 'journal'));
    appendFileSync(join(other, 'journal'), frameOf([{ t: 'ack', run: idOf(1) }]).subarray(0, 30));
    expect(inspectJournal(other)).toMatchObject({ unacknowledged: 1, running: 0 });
    expect(inspectJournal(place())).toEqual({ unacknowledged: 0, running: 0, owed: 0, bytes: 0 });
  });
});
