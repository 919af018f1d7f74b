/** Checked modules that --local keeps: only what this user wrote completely is believed, and their number is bounded. */
import {
  chmodSync,
  chownSync,
  copyFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { findKept, findResolution, KEPT, keepModules, keepResolution } from '../../src/cli/local/kept-modules.js';
import { parseModule } from '../../src/language/parse-module.js';
import { isRoot } from '../support/agent.js';
import { Home } from '../support/cli.js';

let home: Home;
let data: string;
beforeEach(() => {
  home = new Home();
  data = home.file('data');
  mkdirSync(data, { mode: 0o700 });
});
afterEach(() => home.dispose());

const moduleOf = (source: string) => ({ path: 'web.orch.yaml', source });
const filesOf = (...sources: readonly string[]) => sources.map(moduleOf);

const textOf = (name: string) =>
  `name: ${name}\nsupports:\n  - platform: linux\nresources:\n  - resource:\n      file-unix: {path: /srv/x, content: "ü\\0"}\n`;

function checked(name: string) {
  const source = textOf(name);
  const { definition } = parseModule(source);
  if (definition === null) throw new Error('the module is not valid');
  return { source, definition };
}

const directory = () => join(data, 'modules');
const entries = () => readdirSync(directory()).map((name) => join(directory(), name));
const onlyEntry = () => entries()[0] ?? '';

describe('a kept module', () => {
  it('is what the parser gave, and belongs to its text alone', () => {
    const web = checked('web');
    expect(findKept(data, moduleOf(web.source))).toBeNull();
    keepModules(data, [web]);
    expect(findKept(data, moduleOf(web.source))).toEqual(web.definition);
    expect(findKept(data, moduleOf(`${web.source}\n`))).toBeNull();
    expect(statSync(directory()).mode & 0o777).toBe(0o700);
    expect(statSync(onlyEntry()).mode & 0o777).toBe(0o600);
  });

  const DAMAGES: Readonly<Record<string, (entry: string) => void>> = {
    'cut off': (entry) => truncateSync(entry, statSync(entry).size - 1),
    empty: (entry) => truncateSync(entry, 0),
    changed: (entry) => writeFileSync(entry, readFileSync(entry, 'utf8').replace('/srv/x', '/srv/y')),
    'readable by others': (entry) => chmodSync(entry, 0o644),
    'writable by a group': (entry) => chmodSync(entry, 0o620),
    'a link': (entry) => {
      renameSync(entry, join(data, 'elsewhere'));
      symlinkSync(join(data, 'elsewhere'), entry);
    },
    'a directory': (entry) => {
      rmSync(entry);
      mkdirSync(join(entry, 'below'), { recursive: true });
    },
  };
  for (const [what, damage] of Object.entries(DAMAGES)) {
    it(`is ignored and written again when it is ${what}`, () => {
      const web = checked('web');
      keepModules(data, [web]);
      damage(onlyEntry());
      expect(findKept(data, moduleOf(web.source))).toBeNull();
      keepModules(data, [web]);
      expect(findKept(data, moduleOf(web.source))).toEqual(web.definition);
      expect(entries()).toHaveLength(1);
    });
  }

  it('is ignored under the name of another one', () => {
    const [web, db] = [checked('web'), checked('db')];
    keepModules(data, [db]);
    const other = onlyEntry();
    keepModules(data, [web]);
    copyFileSync(entries().find((path) => path !== other) ?? '', other);
    expect(findKept(data, moduleOf(db.source))).toBeNull();
    expect(findKept(data, moduleOf(web.source))).toEqual(web.definition);
  });

  it.runIf(isRoot)('is ignored and written again when another user owns it', () => {
    const web = checked('web');
    keepModules(data, [web]);
    chownSync(onlyEntry(), 65534, 65534);
    expect(findKept(data, moduleOf(web.source))).toBeNull();
    keepModules(data, [web]);
    expect(findKept(data, moduleOf(web.source))).toEqual(web.definition);
  });

  it('is neither read nor written in a directory that others may enter', () => {
    const web = checked('web');
    keepModules(data, [web]);
    chmodSync(directory(), 0o755);
    expect(findKept(data, moduleOf(web.source))).toBeNull();
    rmSync(onlyEntry());
    keepModules(data, [web]);
    expect(entries()).toEqual([]);
  });

  it('that cannot be written is no failure', () => {
    writeFileSync(directory(), '');
    keepModules(data, [checked('web')]);
    expect(findKept(data, moduleOf(textOf('web')))).toBeNull();
  });
});

describe('the kept modules', () => {
  it('are bounded in number, and the oldest make room', () => {
    const first = checked('first');
    keepModules(data, [first]);
    utimesSync(onlyEntry(), 1, 1);
    writeFileSync(join(directory(), 'left-behind.new'), '');
    const many = Array.from({ length: KEPT.entries }, (_, index) => checked(`m${index}`));
    keepModules(data, many);
    expect(entries()).toHaveLength(KEPT.entries);
    expect(findKept(data, moduleOf(first.source))).toBeNull();
    for (const one of many) expect(findKept(data, moduleOf(one.source))).toEqual(one.definition);
  });

  it('are bounded in size', () => {
    const large = 'x'.repeat(KEPT.bytes / 4);
    const many = Array.from({ length: 5 }, (_, index) => ({
      source: `${index}`,
      definition: { name: `m${index}`, templates: [{ id: 'a', content: large }] },
    }));
    keepModules(data, many);
    const size = entries().reduce((bytes, path) => bytes + statSync(path).size, 0);
    expect(size).toBeLessThanOrEqual(KEPT.bytes);
    expect(entries().length).toBeGreaterThan(0);
  });
});

describe('the kept resolution', () => {
  const facts = { node_id: 'a', name: 'host', attributes: { platform: 'linux' }, tags: { role: 'web' } };
  const input = { files: filesOf('name: web', 'name: db'), facts, values: null };
  const resource = { module: 'web', kind: 'file-unix', identity: '/x', id: null, name: null, body: {}, after: [] };
  const resolution = { modules: ['web', 'db'], resources: [resource] };

  it('belongs to the texts in their order and to the facts', () => {
    keepResolution(data, input, resolution);
    expect(findResolution(data, input)).toEqual(resolution);
    const others = [
      { ...input, files: filesOf('name: db', 'name: web') },
      { ...input, files: filesOf('name: web') },
      { ...input, files: filesOf('name: webname: db') },
      { ...input, facts: { ...facts, tags: { role: 'db' } } },
      { ...input, facts: { ...facts, attributes: {} } },
      { ...input, values: { files: [], set: ['web:a=1'] } },
    ];
    for (const other of others) expect(findResolution(data, other)).toBeNull();
  });

  it('is only the last one, and takes no place from modules', () => {
    const web = checked('web');
    keepModules(data, [web]);
    for (const name of ['a', 'b', 'c']) keepResolution(data, { ...input, files: filesOf(name) }, resolution);
    keepModules(data, [checked('db')]);
    expect(entries()).toHaveLength(3);
    expect(findKept(data, moduleOf(web.source))).toEqual(web.definition);
    expect(findResolution(data, { ...input, files: filesOf('c') })).toEqual(resolution);
  });

  it('is ignored when it is damaged', () => {
    keepResolution(data, input, resolution);
    writeFileSync(onlyEntry(), readFileSync(onlyEntry(), 'utf8').replace('"/x"', '"/y"'));
    expect(findResolution(data, input)).toBeNull();
  });
});
