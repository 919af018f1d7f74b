/** A tree of files in memory that behaves as the file system of a machine does, as far as steps and looks tell. */
import type { FileStep, Metadata, ObserveRequest, PathFact, Principal, StepOutcome } from '../../src/resources/host.js';
import { parentOf } from '../../src/resources/unix/unix-path.js';
import { keptMode } from '../../src/resources/unix/unix-permissions.js';

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
    }
  }

  private write(
    step: Extract<FileStep, { do: 'write-file' }>,
    old: Extract<FakeNode, { type: 'file' }> | null,
  ): StepOutcome {
    const metadata = this.metadataOf(step, old, step.mode ?? (old ? null : 0o644));
    if ('code' in metadata) return metadata;
    this.nodes.set(step.path, { type: 'file', text: step.content, ...metadata });
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
