import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { OwnFactsReader } from '../../src/agent/facts/own-facts.js';
import { OwnFactsSchema } from '../../src/kernel/facts.js';
import { validator } from '../../src/kernel/validator.js';

let directory = '';
let clock = 0;
const valid = validator(OwnFactsSchema);

beforeEach(() => {
  directory = join(mkdtempSync(join(tmpdir(), 'orch-facts-')), 'facts.d');
  mkdirSync(directory, { mode: 0o755 });
  clock = 0;
});
afterEach(() => rmSync(join(directory, '..'), { recursive: true, force: true }));

const reader = (limits: { program?: number; all?: number } = {}) =>
  new OwnFactsReader({ directory: () => directory, now: () => clock, limits });

async function read(one = reader(), isFresh = true) {
  const report = await one.read(isFresh);
  expect(valid.problems(report.own)).toEqual([]);
  return report;
}

function write(name: string, text: string, mode = 0o644): string {
  const path = join(directory, name);
  writeFileSync(path, text);
  chmodSync(path, mode);
  return path;
}

const program = (name: string, body: string) => write(name, `#!/bin/sh\n${body}\n`, 0o755);
const value = (given: unknown) => ({ value: given, error: null });

/** Returns the errors by name, without the directory. */
async function errors(one = reader()): Promise<Record<string, string | null>> {
  const { own } = await read(one);
  return Object.fromEntries(
    Object.entries(own).map(([name, { error }]) => [name, error?.replaceAll(directory, 'DIR') ?? null]),
  );
}

describe("facts of one's own", () => {
  it('are JSON files and what programs print, without nulls', async () => {
    write('app.json', '{"port": 80, "name": null, "tags": ["a"], "__proto__": {"x": 1}}');
    write('plain.json', '"text"');
    program('rack.sh', 'echo \'{"row": 3}\'; echo noise >&2');
    program('Site-1', 'printf true');
    write('.hidden.json', 'wrong');
    write('app.json.dpkg-old', 'wrong');
    write('app.json~', 'wrong');
    const { own, problem } = await read();
    expect(problem).toBeNull();
    expect(own).toEqual({
      app: value(JSON.parse('{"port": 80, "tags": ["a"], "__proto__": {"x": 1}}')),
      plain: value('text'),
      rack: value({ row: 3 }),
      'Site-1': value(true),
    });
  });

  it('are none without the directory', async () => {
    rmSync(directory, { recursive: true });
    expect(await read()).toEqual({ own: {}, problem: null });
  });

  it('get a clean environment and no input', async () => {
    process.env.ORCH_TEST_SECRET = 'x';
    try {
      program(
        'env',
        'read line; printf \'{"secret": "%s", "line": "%s", "pwd": "%s"}\' "$ORCH_TEST_SECRET" "$line" "$PWD"',
      );
      expect((await read()).own.env).toEqual(value({ secret: '', line: '', pwd: '/' }));
    } finally {
      delete process.env.ORCH_TEST_SECRET;
    }
  });

  it('are refused with a reason when they are no JSON of the right size and depth', async () => {
    write('broken.json', '{"a": ');
    write('empty.json', ' \n');
    write('null.json', 'null');
    write('huge.json', JSON.stringify('x'.repeat(40_000)));
    write('deep.json', `${'['.repeat(5_000)}${']'.repeat(5_000)}`);
    write('deeper.json', `${'{"a":'.repeat(9)}1${'}'.repeat(9)}`);
    write('wide.json', JSON.stringify(Object.fromEntries(Array.from({ length: 300 }, (_, n) => [`k${n}`, n]))));
    write('many.json', JSON.stringify(Array.from({ length: 200 }, () => Array.from({ length: 20 }, () => 1))));
    write('number.json', '[12345678901234567890]');
    write('holes.json', '[1, null]');
    write('nul.json', '"a\\u0000b"');
    const found = await errors();
    expect(found).toMatchObject({
      empty: 'DIR/empty.json: it is empty, and a fact is JSON',
      null: 'DIR/null.json: it is null, and a fact has a value',
      huge: 'DIR/huge.json is larger than 32768 bytes',
      deep: 'DIR/deep.json: it is deeper than 8 levels',
      deeper: 'DIR/deeper.json: it is deeper than 8 levels',
      wide: 'DIR/wide.json: a mapping in it has more than 256 members',
      many: 'DIR/many.json: it has more than 2000 values',
      number: 'DIR/number.json: a number in it is too large',
      holes: 'DIR/holes.json: a list in it holds null',
      nul: 'DIR/nul.json: a text in it has a NUL character',
    });
    expect(found.broken).toMatch(/^DIR\/broken\.json: it is not valid JSON \(/);
  });

  it('are refused when they are links, writable by others, or neither JSON nor a program', async () => {
    const target = write('real.json', '1');
    symlinkSync(target, join(directory, 'link.json'));
    symlinkSync('/dev/zero', join(directory, 'zero.json'));
    mkdirSync(join(directory, 'sub.json'));
    write('open.json', '1', 0o666);
    write('group.json', '1', 0o664);
    write('run', '#!/bin/sh\necho 1\n', 0o777);
    write('README', 'text');
    write('bad name.json', '1');
    expect(await errors()).toEqual({
      real: null,
      link: 'DIR/link.json is a link; put a file of its own there',
      zero: 'DIR/zero.json is a link; put a file of its own there',
      sub: 'DIR/sub.json is a directory; put a file of its own there',
      open: 'DIR/open.json can be written by others; take that away with chmod go-w',
      group: 'DIR/group.json can be written by others; take that away with chmod go-w',
      run: 'DIR/run can be written by others; take that away with chmod go-w',
      README: 'DIR/README is neither a .json file nor executable',
      bad_name: '"bad name.json" names no fact; a name has letters, digits, "_" and "-"',
    });
  });

  it('are all refused when others could put them there', async () => {
    write('a.json', '1');
    chmodSync(directory, 0o777);
    expect(await read()).toEqual({
      own: {},
      problem: `${directory} can be written by others; take that away with chmod go-w`,
    });
    chmodSync(directory, 0o755);
    const above = join(directory, '..');
    chmodSync(above, 0o777);
    expect((await read()).problem).toContain(', can be written by others');
    chmodSync(above, 0o755);
    const link = `${directory}-link`;
    symlinkSync(directory, link);
    const linked = new OwnFactsReader({ directory: () => link, now: () => 0 });
    expect((await linked.read(true)).problem).toBe(`${link} is no directory`);
  });

  it('refuse two files that give one fact', async () => {
    write('a.json', '1');
    program('a.sh', 'echo 2');
    expect(await errors()).toEqual({ a: 'DIR/a.json and DIR/a.sh give the same fact; remove one of them' });
  });

  it('are at most 64, of which the first by name are read, and 128 KiB together', async () => {
    for (let n = 0; n < 1_000; n += 1) write(`f${String(n).padStart(4, '0')}.json`, String(n));
    const { own, problem } = await read();
    expect(Object.keys(own)).toHaveLength(64);
    expect(own.f0063).toEqual(value(63));
    expect(problem).toBe(`${directory} has 1000 entries, and only the first 64 are read`);
    for (let n = 0; n < 200; n += 1) write(`g${n}.json`, '1');
    expect(await read()).toMatchObject({
      own: {},
      problem: `${directory} has more than 1024 entries, and none is read`,
    });
    for (const name of readdirSync(directory)) rmSync(join(directory, name));
    for (let n = 0; n < 6; n += 1) write(`big${n}.json`, JSON.stringify('x'.repeat(30_000)));
    const found = await errors();
    expect(found.big3).toBeNull();
    expect(found.big4).toBe('DIR/big4.json: the facts up to this one are larger than 131072 bytes');
  });
});

describe('a program that gives a fact', () => {
  it('is ended when it takes too long, prints too much or without end, and its children with it', async () => {
    program('sleeps', `sleep 300 & echo $! > ${directory}/../child; wait`);
    program('endless', 'while :; do echo xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; done');
    program('fails', 'echo "cannot reach the rack" >&2; exit 3');
    program('killed', 'kill -9 $$');
    write('no-interpreter', '#!/nonexistent/sh\n', 0o755);
    program('leaves', 'sleep 300 & echo 1');
    program('stubborn', 'trap "" TERM HUP INT; while :; do sleep 1; done');
    const found = await errors(reader({ program: 1_500 }));
    expect(found).toMatchObject({
      sleeps: 'DIR/sleeps took longer than 1.5 s and was ended',
      endless: 'DIR/endless printed more than 32768 bytes and was ended',
      fails: 'DIR/fails ended with status 3: cannot reach the rack',
      killed: 'DIR/killed was ended by SIGKILL',
      leaves: null,
      stubborn: 'DIR/stubborn took longer than 1.5 s and was ended',
    });
    expect(found['no-interpreter']).toContain('DIR/no-interpreter ');
    const child = Number(readFileSync(join(directory, '../child'), 'utf8'));
    for (let n = 0; n < 50 && isThere(child); n += 1) await sleep(20);
    expect(isThere(child)).toBe(false);
  });

  it('is not run once the time for all is over', async () => {
    program('a', 'echo 1');
    const all = new OwnFactsReader({ directory: () => directory, now: () => (clock += 10), limits: { all: 5 } });
    expect((await all.read(true)).own.a?.error).toContain('/a was not run, because the programs before it took');
  });

  it('runs again only when it has changed, after an hour, or when asked', async () => {
    const count = join(directory, '../count');
    const body = `echo x >> ${count}; wc -l < ${count}`;
    program('n', body);
    const one = reader();
    const now = async (isFresh: boolean) => (await read(one, isFresh)).own.n?.value;
    expect(await now(false)).toBe(1);
    expect(await now(false)).toBe(1);
    expect(await now(true)).toBe(2);
    clock += 59 * 60_000;
    expect(await now(false)).toBe(2);
    clock += 60_000;
    expect(await now(false)).toBe(3);
    program('n', `${body} # changed`);
    expect(await now(false)).toBe(4);
  });
});

/** Returns false also for a process that has ended and that nothing has waited for. */
function isThere(pid: number): boolean {
  try {
    return !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
}
