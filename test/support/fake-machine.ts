/**
 * A machine in memory that carries out what it is told: files, groups, and scripts in a handful of words. It can be told to
 * refuse changes, as a full disk or a program in the way would.
 */
import type { Command, CommandResult } from '../../src/resources/command.js';
import type { Accounts, FileStep, Host, ObserveRequest, PathFact, StepOutcome } from '../../src/resources/host.js';
import { FakeFiles, type FakeNode, fileOf } from './fake-files.js';

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
