/** The snapshot of one apply: saves what is about to be changed, and moves from state to state durably. */
import { directoryUnix } from '../../resources/directory-unix.js';
import { fileUnix } from '../../resources/file-unix.js';
import type { FileStep, Host } from '../../resources/host.js';
import type { RunItem } from '../../wire/messages.js';
import type { Target } from '../converge/target.js';
import type { BootTime } from './boot-time.js';
import type { SaveTools } from './keeper.js';
import { keeperOf, pathsOf } from './keepers.js';
import { PathSaver, type PathSaverOptions } from './path-saver.js';
import {
  deleteSnapshot,
  makeSnapshotDirectory,
  type SavedItem,
  type SnapshotRecord,
  writeSnapshot,
} from './snapshot-record.js';

/** A resource that is about to be changed. */
export interface Doomed {
  readonly target: Target;
  readonly action: RunItem['result']['action'];
}

interface NewSnapshot extends Pick<SnapshotRecord, 'run_id' | 'confirm_secs' | 'keeps'> {
  readonly dataDir: string;
  readonly host: Host;
  readonly freeBytes?: PathSaverOptions['freeBytes'];
}

export class Snapshot {
  private readonly dataDir: string;
  private readonly tools: SaveTools;
  private readonly known = new Set<string>();
  private current: SnapshotRecord;

  /** Makes an empty snapshot in the place of the last one. Throws the system's error. */
  constructor({ dataDir, host, freeBytes, run_id, confirm_secs, keeps }: NewSnapshot) {
    this.dataDir = dataDir;
    makeSnapshotDirectory(dataDir);
    this.tools = { host, paths: new PathSaver({ dataDir, ...(freeBytes ? { freeBytes } : {}) }) };
    this.current = {
      format: 1,
      run_id,
      state: 'applying',
      confirm_secs,
      keeps,
      deadline: null,
      why: null,
      items: [],
      restored: null,
    };
    writeSnapshot(dataDir, this.current);
  }

  get record(): SnapshotRecord {
    return this.current;
  }

  /**
   * Saves resources that are not saved yet; they are on the disk when this resolves. Throws `disk_full`, and `apply_failed` when
   * they are too large; then nothing of them may be changed.
   */
  async save(doomed: readonly Doomed[]): Promise<void> {
    const fresh = doomed.filter(({ target, action }) => action !== 'release' && !this.known.has(target.key));
    if (fresh.length === 0) return;
    this.tools.paths.requireRoom(fresh.flatMap(({ target: { source } }) => pathsOf(source.kind, source.body)));
    const items: SavedItem[] = [];
    for (const [kind, members] of byKind(fresh)) items.push(...(await this.saveKind(kind, members)));
    const order = new Map(fresh.map(({ target }, at) => [target.key, at]));
    items.sort((a, b) => (order.get(a.key) ?? 0) - (order.get(b.key) ?? 0));
    this.write({ items: [...this.current.items, ...items] });
    for (const { target } of fresh) this.known.add(target.key);
  }

  /** Saves the files and links that purges delete, but not the content of directories that they delete. Throws as `save`. */
  async savePurged(steps: readonly FileStep[]): Promise<void> {
    const fresh = steps.filter(({ path }) => !this.known.has(purgeKey(path)));
    if (fresh.length === 0) return;
    const paths = fresh.flatMap((step) => (step.do === 'remove-file' ? [step.path] : []));
    this.tools.paths.requireRoom(paths);
    const states = await this.tools.paths.save(paths);
    const saved = new Map(paths.map((path, at) => [path, states[at] ?? 'it was not saved'] as const));
    const items = fresh.map(({ path }): SavedItem => {
      const state = saved.get(path) ?? 'what was in the directory stays gone';
      const isSaved = typeof state !== 'string';
      const kind = saved.has(path) ? fileUnix.kind : directoryUnix.kind;
      const rest = isSaved ? { saved: state, reason: null } : { saved: null, reason: state.slice(0, 1_024) };
      return { kind, identity: path, key: purgeKey(path), action: 'remove', ...rest };
    });
    this.write({ items: [...this.current.items, ...items] });
    for (const { path } of fresh) this.known.add(purgeKey(path));
  }

  awaitUntil(deadline: BootTime, checks: SnapshotRecord['checks']): void {
    this.write({ state: 'awaiting', deadline, checks });
  }

  confirm(): void {
    this.write({ state: 'confirmed' });
  }

  discard(): void {
    deleteSnapshot(this.dataDir);
  }

  private async saveKind(kind: string, members: readonly Doomed[]): Promise<readonly SavedItem[]> {
    const keeper = keeperOf(kind);
    const states =
      typeof keeper === 'string'
        ? members.map(() => keeper)
        : await keeper.save(
            members.map(({ target }) => target.source.body),
            this.tools,
          );
    return members.map(({ target, action }, at) => {
      const state = states[at] ?? 'it was not saved';
      const { identity } = target.source;
      const isSaved = typeof state !== 'string';
      const { key } = target;
      return {
        kind,
        identity,
        key,
        action,
        saved: isSaved ? state : null,
        reason: isSaved ? null : state.slice(0, 1_024),
      };
    });
  }

  private write(change: Partial<SnapshotRecord>): void {
    const next = { ...this.current, ...change };
    writeSnapshot(this.dataDir, next);
    this.current = next;
  }
}

const purgeKey = (path: string): string => `purge\0${path}`;

function byKind(doomed: readonly Doomed[]): ReadonlyMap<string, readonly Doomed[]> {
  const kinds = new Map<string, Doomed[]>();
  for (const one of doomed) {
    const { kind } = one.target.source;
    const members = kinds.get(kind);
    if (members) members.push(one);
    else kinds.set(kind, [one]);
  }
  return kinds;
}
