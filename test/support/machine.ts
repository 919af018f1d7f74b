/**
 * A machine in memory that carries out what it is told: files, groups, and scripts in a handful of words. It can be told to
 * refuse changes, as a full disk or a program in the way would.
 */

import fc from 'fast-check';
import type { ModuleDefinition } from '../../src/language/schema.js';
import type { Command, CommandResult } from '../../src/resources/command.js';
import type {
  Accounts,
  FileStep,
  Host,
  Metadata,
  ObserveRequest,
  PathFact,
  Principal,
  StepOutcome,
} from '../../src/resources/host.js';
import { parentOf } from '../../src/resources/unix/unix-path.js';
import { keptMode } from '../../src/resources/unix/unix-permissions.js';

export interface FakeMachineOptions {
  readonly files?: Readonly<Record<string, FakeNode>>;
  /** Beside `root`, by name. */
  readonly groups?: Readonly<Record<string, number>>;
}

export class FakeMachine implements Host {
  readonly platform = 'linux';
  readonly files: FakeFiles;
  readonly groups = new Map<string, number>([['root', 0]]);
  /** Asked before every change; true makes it fail, with nothing changed. */
  breaks: () => boolean = () => false;
  /** Changes that were asked for. */
  changes = 0;

  constructor({ files = {}, groups = {} }: FakeMachineOptions = {}) {
    for (const [name, gid] of Object.entries(groups)) this.groups.set(name, gid);
    this.files = new FakeFiles(files, (of, name) => (of === 'owner' ? uidOf(name) : this.gidOf(name)));
  }

  /** All that a person could find on it. */
  get state(): unknown {
    return {
      files: [...this.files.nodes].sort(([a], [b]) => (a < b ? -1 : 1)),
      groups: [...this.groups].sort(([a], [b]) => (a < b ? -1 : 1)),
    };
  }

  accounts(): Accounts {
    return {
      uid: uidOf,
      gid: (group) => this.gidOf(group),
      loginGroup: (owner) => this.gidOf(owner),
      userName: (uid) => (uid === 0 ? 'root' : String(uid)),
      groupName: (gid) => [...this.groups].find(([, number]) => number === gid)?.[0] ?? String(gid),
      own: { uid: 0, gid: 0 },
    };
  }

  observe(requests: readonly ObserveRequest[]): readonly PathFact[] {
    return requests.map((request) => this.accountFile(request) ?? this.files.look(request));
  }

  async commit(steps: readonly FileStep[]): Promise<readonly StepOutcome[]> {
    return steps.map((step) => (this.isBroken() ? BROKEN : this.files.perform(step)));
  }

  async run({ argv: [program, ...args], script }: Command): Promise<CommandResult> {
    if (program === 'getent') return exit(2);
    if (program === 'sh' && script) return this.runScript(script.text);
    if (this.isBroken()) return exit(4, '', 'broken');
    return this.changeGroup(program, args);
  }

  private changeGroup(program: string, args: readonly string[]): CommandResult {
    const [name = ''] = args.slice(-1);
    if (program === 'groupdel') return exit(this.groups.delete(name) ? 0 : 6);
    if (program !== 'groupadd' && program !== 'groupmod') throw new Error(`the fake machine has no ${program}`);
    const gid = args.includes('-g') ? Number(args[args.indexOf('-g') + 1]) : this.freeGid(name);
    if ([...this.groups].some(([other, taken]) => other !== name && taken === gid)) return exit(4, '', 'GID exists');
    this.groups.set(name, gid);
    return exit(0);
  }

  /** Lines of `test -e PATH`, `touch PATH`, `rm PATH`, `cp FROM TO` and `echo TEXT`; the first that fails ends it. */
  private runScript(text: string): CommandResult {
    let stdout = '';
    for (const line of text.split('\n')) {
      const [word, ...rest] = line.split(' ');
      const [from = '', to = ''] = rest;
      const source = this.files.nodes.get(from);
      if (word === 'echo') stdout += `${rest.join(' ')}\n`;
      else if (word === 'test') {
        if (!this.files.nodes.has(to)) return exit(1, stdout);
      } else if (this.isBroken()) return exit(5, stdout, `${line}: broken`);
      else if (word === 'touch') this.files.nodes.set(from, source ?? fileOf(''));
      else if (word === 'rm') this.files.nodes.delete(from);
      else if (word === 'cp' && source?.type === 'file') this.files.nodes.set(to, fileOf(source.text));
      else return exit(1, stdout, `${line}: failed`);
    }
    return exit(0, stdout);
  }

  private isBroken(): boolean {
    this.changes += 1;
    return this.breaks();
  }

  private accountFile({ path }: ObserveRequest): PathFact | null {
    if (path !== '/etc/passwd' && path !== '/etc/group') return null;
    const lines = [...this.groups].map(([name, gid]) => `${name}:x:${gid}:`);
    const text = path === '/etc/passwd' ? 'root:x:0:0:root:/root:/bin/sh' : lines.join('\n');
    return { type: 'file', size: text.length, content: { kind: 'text', text }, uid: 0, gid: 0, mode: 0o644 };
  }

  private readonly gidOf = (group: string): number | undefined =>
    this.groups.get(group) ?? (/^\d+$/.test(group) ? Number(group) : undefined);

  /** The same for a name whatever came before it, as far as it is free. */
  private freeGid(name: string): number {
    const taken = new Set(this.groups.values());
    let gid = 1000 + name.charCodeAt(name.length - 1);
    while (taken.has(gid)) gid += 1;
    return gid;
  }
}

const uidOf = (owner: string): number | undefined =>
  owner === 'root' ? 0 : /^\d+$/.test(owner) ? Number(owner) : undefined;

const exit = (code: number, stdout = '', stderr = ''): CommandResult => ({
  end: { how: 'exited', code },
  stdout,
  stderr,
  truncated: false,
});

const BROKEN: StepOutcome = { code: 'apply_failed', message: 'broken' };

/** A tree of files in memory that behaves as the file system of a machine does, as far as steps and looks tell. */
export type FakeNode =
  | ({ readonly type: 'file'; readonly text: string } & Metadata)
  | ({ readonly type: 'directory' } & Metadata)
  | { readonly type: 'symlink'; readonly target: string }
  | { readonly type: 'fifo' };

export const fileOf = (text: string, mode = 0o644): FakeNode => ({ type: 'file', text, uid: 0, gid: 0, mode });
export const directoryOf = (mode = 0o755): FakeNode => ({ type: 'directory', uid: 0, gid: 0, mode });

/** The number of a principal; undefined when there is none of that name. */
export type Numbers = (of: 'owner' | 'group', name: string) => number | undefined;

type Refused = Exclude<StepOutcome, null>;

export class FakeFiles {
  readonly nodes = new Map<string, FakeNode>([['/', directoryOf()]]);
  private readonly numbers: Numbers;

  constructor(nodes: Readonly<Record<string, FakeNode>>, numbers: Numbers) {
    for (const [path, node] of Object.entries(nodes)) this.nodes.set(path, node);
    this.numbers = numbers;
  }

  look({ path, content, entries }: ObserveRequest): PathFact {
    const node = this.nodes.get(path);
    switch (node?.type) {
      case undefined: {
        const parent = this.nodes.get(parentOf(path))?.type;
        return { type: 'absent', parent: parent === undefined ? 'absent' : directoryOr(parent) };
      }
      case 'file': {
        const { text, uid, gid, mode } = node;
        const seen = content ? ({ kind: 'text', text } as const) : ({ kind: 'unread' } as const);
        return { type: 'file', size: Buffer.byteLength(text), content: seen, uid, gid, mode };
      }
      case 'directory': {
        const { uid, gid, mode } = node;
        return { type: 'directory', entries: entries ? this.namesIn(path) : null, uid, gid, mode };
      }
      case 'symlink':
        return { type: 'symlink', target: node.target };
      case 'fifo':
        return { type: 'other', what: 'fifo' };
    }
  }

  perform(step: FileStep): StepOutcome {
    const node = this.nodes.get(step.path);
    if (this.nodes.get(parentOf(step.path))?.type !== 'directory') return refused('parent_missing', step.path);
    switch (step.do) {
      case 'write-file':
        return node?.type === 'directory' || node?.type === 'fifo'
          ? refused('wrong_type', step.path)
          : this.write(step, node?.type === 'file' ? node : null);
      case 'make-directory': {
        if (node) return refused('wrong_type', step.path);
        const metadata = this.metadataOf(step, null, step.mode);
        if ('code' in metadata) return metadata;
        this.nodes.set(step.path, { type: 'directory', ...metadata });
        return null;
      }
      case 'make-link':
        if (node && node.type !== 'symlink' && !(step.replace && node.type === 'file'))
          return refused('wrong_type', step.path);
        this.nodes.set(step.path, { type: 'symlink', target: step.target });
        return null;
      case 'set-metadata': {
        if (node?.type !== step.expect) return refused('wrong_type', step.path);
        const metadata = this.metadataOf(step, node, step.mode);
        if ('code' in metadata) return metadata;
        this.nodes.set(step.path, { ...node, ...metadata });
        return null;
      }
      case 'remove-file':
        return this.remove(step.path, node?.type !== 'directory');
      case 'remove-directory':
        return this.remove(step.path, node?.type === 'directory' && this.namesIn(step.path).length === 0);
      case 'remove-tree':
        for (const path of [...this.nodes.keys()]) if (path.startsWith(`${step.path}/`)) this.nodes.delete(path);
        return this.remove(step.path, node?.type === 'directory');
      case 'unpack':
      case 'remove-unpacked':
        throw new Error('archives are unpacked on real machines only');
    }
  }

  private write(
    step: Extract<FileStep, { do: 'write-file' }>,
    old: Extract<FakeNode, { type: 'file' }> | null,
  ): StepOutcome {
    const metadata = this.metadataOf(step, old, step.mode ?? (old ? null : 0o644));
    if ('code' in metadata) return metadata;
    this.nodes.set(step.path, {
      type: 'file',
      text: typeof step.content === 'string' ? step.content : `content of ${step.content.sha256}`,
      ...metadata,
    });
    return null;
  }

  private remove(path: string, may: boolean): StepOutcome {
    if (!this.nodes.has(path) || !may) return refused('wrong_type', path);
    this.nodes.delete(path);
    return null;
  }

  private metadataOf(
    { owner, group }: { readonly owner: Principal; readonly group: Principal },
    old: Metadata | null,
    mode: number | null,
  ): Metadata | Refused {
    const uid = owner === null ? (old?.uid ?? 0) : this.numbers('owner', owner);
    const gid = group === null ? (old?.gid ?? 0) : this.numbers('group', group);
    if (uid === undefined) return refused('unknown_owner', String(owner));
    if (gid === undefined) return refused('unknown_group', String(group));
    if (mode !== null || old === null) return { uid, gid, mode: mode ?? 0 };
    const takeover = { isNewOwner: uid !== old.uid, isNewGroup: gid !== old.gid, isGroupDeclared: group !== null };
    return { uid, gid, mode: keptMode(old.mode, { ...takeover, isReplaced: true }) };
  }

  private namesIn(directory: string): readonly string[] {
    const inside = [...this.nodes.keys()].filter((path) => path !== '/' && parentOf(path) === directory);
    return inside.map((path) => path.slice(path.lastIndexOf('/') + 1)).sort();
  }
}

const directoryOr = (type: FakeNode['type']): 'directory' | 'not-directory' =>
  type === 'directory' ? 'directory' : 'not-directory';

const refused = (code: Refused['code'], message: string): Refused => ({ code, message });

/** Modules that make sense to apply, and machines to apply them to, by chance. */
type Entry = NonNullable<ModuleDefinition['resources']>[number];

const OPEN = '$' + '{{';

const content = fc.constantFrom(
  'one\n',
  'two\n',
  '',
  `key = ${OPEN} secrets.s }}\n`,
  `on ${OPEN} agent.name }}\n`,
  null,
);
const metadata = {
  owner: fc.constantFrom('root', '0', null),
  group: fc.constantFrom('root', 'g1', '0', null),
  mode: fc.constantFrom('0644', '600', '2750', null),
};

const file = (path: string) =>
  fc
    .record({ content, ...metadata }, { requiredKeys: [] })
    .map((body): Entry => ({ resource: { 'file-unix': { path, ...body } } }));

const directory = (path: string) =>
  fc
    .record(metadata, { requiredKeys: [] })
    .map((body): Entry => ({ resource: { 'directory-unix': { path, ...body } } }));

const group = (name: string) =>
  fc
    .record({ gid: fc.constantFrom(2000, 2001, null) }, { requiredKeys: [] })
    .map((body): Entry => ({ resource: { 'group-unix': { name, ...body } } }));

const script = (body: Record<string, unknown>) =>
  fc.constant<Entry>({ resource: { script: { program: 'sh', ...body } } });

/** Resources of a module in an order in which they can be applied. The copies are made anew when their source changes. */
const SLOTS: Readonly<Record<string, fc.Arbitrary<Entry>>> = {
  g1: group('g1'),
  g2: group('g2'),
  a: directory('/a'),
  b: directory('/a/b'),
  f: file('/a/b/f'),
  g: file('/a/g'),
  h: file('/h'),
  d: directory('/d'),
  x: file('/d/x'),
  touched: script({ apply: 'touch /touched', check: 'test -e /touched', undo: 'rm /touched' }),
  'copy-of-h': script({ apply: 'cp /h /copy-of-h', undo: 'rm /copy-of-h' }),
  'copy-of-g': script({ apply: 'cp /a/g /copy-of-g', check: 'test -e /copy-of-g', undo: 'rm /copy-of-g' }),
};

const SOURCES: Readonly<Record<string, string>> = { 'copy-of-h': 'h', 'copy-of-g': 'g' };
const names = Object.keys(SLOTS);

const moduleOf = (chosen: readonly string[]): fc.Arbitrary<ModuleDefinition> =>
  fc
    .tuple(...chosen.map((name, at) => entryOf(name, chosen.slice(0, at), chosen)))
    .map((resources) => ({ name: 'm', supports: [{}], resources }));

/** In an order that works, with some dependencies on what comes earlier. */
export const orderedModule: fc.Arbitrary<ModuleDefinition> = fc.subarray(names).chain(moduleOf);

/** At times in an order in which files come before their directory and their group. */
export const anyModule: fc.Arbitrary<ModuleDefinition> = fc.oneof(
  { weight: 3, arbitrary: orderedModule },
  { weight: 1, arbitrary: fc.shuffledSubarray(names).chain(moduleOf) },
);

function entryOf(id: string, earlier: readonly string[], chosen: readonly string[]): fc.Arbitrary<Entry> {
  const source = SOURCES[id];
  const isHeard = source !== undefined && chosen.includes(source);
  const depends = fc.subarray([...earlier], { maxLength: Math.min(1, earlier.length) });
  return fc.tuple(SLOTS[id] ?? fc.constant<Entry>({}), depends).map(([entry, depends_on]) => ({
    id,
    depends_on,
    ...entry,
    ...(isHeard && { resource: { script: { ...entry.resource?.script, rerun_on: [source] } } }),
  }));
}

const somethingAt = fc.constantFrom<FakeNode | null>(
  null,
  directoryOf(),
  directoryOf(0o700),
  fileOf('by hand\n', 0o600),
  { type: 'symlink', target: '/elsewhere' },
  { type: 'fifo' },
);

/** Machines on which some of that is already, as it should be or not. */
export const anyMachine: fc.Arbitrary<FakeMachineOptions> = fc
  .record({
    a: somethingAt,
    h: somethingAt,
    inA: fc.constantFrom(null, fileOf('old\n')),
    d: fc.constantFrom(null, directoryOf()),
    groups: fc.constantFrom<Record<string, number>>({}, { g1: 1000 }, { g1: 2000 }, { g2: 2001, other: 2000 }),
  })
  .map(({ a, h, inA, d, groups }) => {
    const nodes: readonly (readonly [string, FakeNode | null])[] = [
      ['/a', a],
      ['/h', h],
      ['/a/g', a?.type === 'directory' ? inA : null],
      ['/d', d],
      ['/d/by-hand', d && fileOf('stays\n')],
    ];
    return { groups, files: Object.fromEntries(nodes.flatMap(([path, node]) => (node ? [[path, node]] : []))) };
  });
