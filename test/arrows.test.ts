/** The house keeps its arrows: the table in ARCHITECTURE.md against every import of the product. */
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const root = fileURLToPath(new URL('..', import.meta.url));
const PURE = ['src/kernel', 'src/resources', 'src/language', 'src/contract'];
const rooms = readRooms();

interface Import {
  readonly from: string;
  readonly to: string;
}

function readRooms(): ReadonlyMap<string, ReadonlySet<string>> {
  const table = readFileSync(join(root, 'ARCHITECTURE.md'), 'utf8').split('## Rooms')[1]?.split('## ')[0] ?? '';
  const rows = [...table.matchAll(/^\| `([^`]+)` \|[^|]*\| ([^|]+) \|$/gm)];
  const names = rows.map(([, room]) => room as string);
  return new Map(
    rows.map(([, room, allowed]) => [room as string, new Set(parseAllowed(room as string, allowed as string, names))]),
  );
}

function parseAllowed(room: string, allowed: string, names: readonly string[]): readonly string[] {
  if (allowed === 'everything') return names;
  if (allowed === 'nothing of ours') return [];
  const words = allowed.split(',').map((word) => word.trim());
  return words.flatMap((word) => {
    if (word === 'every room of daemon') return names.filter((name) => name.startsWith('daemon/'));
    const found = names.find((name) => name === word || name === `src/${word}` || name === `daemon/${word}`);
    if (found === undefined) throw new Error(`ARCHITECTURE.md: ${room} may import "${word}", which is no room`);
    return [found];
  });
}

function sources(folder: string): readonly string[] {
  return readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
    .map((entry) => relative(root, join(entry.parentPath, entry.name)));
}

const files = ['bin', 'src', 'daemon'].flatMap(sources);

function roomOf(file: string): string | undefined {
  const candidates = [...rooms.keys()].filter((room) => file.startsWith(`${room}/`));
  return candidates.sort((a, b) => b.length - a.length)[0];
}

const withoutComments = (file: string): string =>
  readFileSync(join(root, file), 'utf8').replace(/\/\*[\s\S]*?\*\//g, '');

function specifiers(file: string): readonly string[] {
  return [...withoutComments(file).matchAll(/(?:\bfrom\s*|\bimport\s*\(?\s*)'([^']+)'/g)].map(
    ([, specifier]) => specifier as string,
  );
}

const imports: readonly Import[] = files.flatMap((from) =>
  specifiers(from)
    .filter((specifier) => specifier.startsWith('.'))
    .map((specifier) => ({ from, to: relative(root, join(root, dirname(from), specifier)).replace(/\.js$/, '.ts') })),
);

/** Files that a file loads when it is loaded: neither types nor what it loads later. */
function loadedBy(file: string): readonly string[] {
  const statements = /^(?:import|export)\b(?! type\b)([^;']*)\bfrom\s*'(\.[^']+)';/gm;
  return [...withoutComments(file).matchAll(statements)].map(([, , specifier]) =>
    relative(root, join(root, dirname(file), specifier as string)).replace(/\.js$/, '.ts'),
  );
}

/** Files that a file names when it is compiled, types included, without what it loads later. */
function importedBy(file: string): readonly string[] {
  return [...withoutComments(file).matchAll(/\bfrom\s*'(\.[^']+)'/g)]
    .map(([, specifier]) => relative(root, join(root, dirname(file), specifier as string)).replace(/\.js$/, '.ts'))
    .filter((path) => files.includes(path));
}

/** Returns the groups of nodes of which each reaches each other (Tarjan's strongly connected components), of two and more. */
function circlesOf(edges: ReadonlyMap<string, readonly string[]>): readonly (readonly string[])[] {
  const numbers = new Map<string, number>();
  const open: string[] = [];
  const circles: string[][] = [];
  const visit = (node: string): number => {
    const number = numbers.size;
    numbers.set(node, number);
    let low = number;
    open.push(node);
    for (const next of edges.get(node) ?? []) {
      if (!numbers.has(next)) low = Math.min(low, visit(next));
      else if (open.includes(next)) low = Math.min(low, numbers.get(next) ?? low);
    }
    if (low === number) {
      const circle = open.splice(open.indexOf(node));
      if (circle.length > 1) circles.push(circle);
    }
    return low;
  };
  for (const node of edges.keys()) if (!numbers.has(node)) visit(node);
  return circles;
}

describe('the house', () => {
  it('has a room for every file', () => {
    expect(files.length).toBeGreaterThan(20);
    expect(files.filter((file) => roomOf(file) === undefined)).toEqual([]);
  });

  it('has only the arrows of ARCHITECTURE.md', () => {
    const forbidden = imports.filter(({ from, to }) => {
      const [source, target] = [roomOf(from), roomOf(to)];
      return source === undefined || target === undefined || (source !== target && !rooms.get(source)?.has(target));
    });
    expect(forbidden).toEqual([]);
  });

  it('has no circles between rooms', () => {
    const edges = new Map<string, Set<string>>();
    for (const { from, to } of imports) {
      const [source, target] = [roomOf(from) as string, roomOf(to) as string];
      if (source !== target) edges.set(source, (edges.get(source) ?? new Set()).add(target));
    }
    const reaches = (from: string, goal: string, seen = new Set<string>()): boolean =>
      [...(edges.get(from) ?? [])].some(
        (next) => next === goal || (!seen.has(next) && reaches(next, goal, seen.add(next))),
      );
    expect([...edges.keys()].filter((room) => reaches(room, room))).toEqual([]);
  });

  it('has no circles between files at run time', () => {
    const edges = new Map(files.map((file) => [file, loadedBy(file)]));
    const circles: string[] = [];
    const done = new Set<string>();
    const visit = (file: string, way: readonly string[]): void => {
      if (way.includes(file)) circles.push([...way.slice(way.indexOf(file)), file].join(' -> '));
      if (done.has(file)) return;
      done.add(file);
      for (const next of edges.get(file) ?? []) visit(next, [...way, file]);
    };
    for (const file of files) visit(file, []);
    expect(circles).toEqual([]);
  });

  it('has few circles of types: those of a kind and its plans, and of terminal sessions', () => {
    const edges = new Map(files.map((file) => [file, importedBy(file)]));
    const first = circlesOf(edges).map((circle) => circle.toSorted()[0]);
    expect(first.toSorted()).toEqual([
      'daemon/terminal/live-sessions.ts',
      'src/resources/service-launchd.ts',
      'src/resources/service-systemd.ts',
      'src/resources/service-windows.ts',
      'src/resources/unix/linux-user-commands.ts',
    ]);
  });

  it('has no file of more than 500 lines but the schema of the store', () => {
    const long = files.filter((file) => readFileSync(join(root, file), 'utf8').split('\n').length > 501);
    expect(long).toEqual(['daemon/database/schema.ts']);
  });

  it('keeps the pure rooms free of the platform', () => {
    const tainted = files
      .filter((file) => PURE.includes(roomOf(file) ?? ''))
      .flatMap((file) => specifiers(file).map((specifier) => `${file}: ${specifier}`))
      .filter((line) => /: (node:|fs$|path$|crypto$|os$|process$)/.test(line));
    expect(tainted).toEqual([]);
  });

  it('names columns of JSON only in the stores of their tables, where they are decoded', () => {
    const own = /^daemon\/database\/(schema|json-columns|migrations\/.*)\.ts$/;
    const strays = files
      .filter((file) => file.startsWith('daemon/') && !own.test(file))
      .map((file) => ({ file, text: withoutComments(file) }))
      .filter(({ text }) => /\w_json\b/.test(text) && !/\.(selectFrom|insertInto|updateTable)\(/.test(text));
    expect(strays.map(({ file }) => file)).toEqual([]);
  });
});
