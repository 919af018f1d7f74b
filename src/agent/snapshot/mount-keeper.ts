/** Saves what is mounted at a path with /etc/fstab, and mounts, remounts or unmounts it again. */
import { readFileSync } from 'node:fs';
import { FSTAB } from '../../resources/mounts/fstab.js';
import { MOUNT_TABLE, type MountEntry, mountHolding, parseMountTable } from '../../resources/mounts/mount-table.js';
import { run } from './account-keeper.js';
import type { Keeper, RestoreTools } from './keeper.js';
import type { SavedPath } from './saved-path.js';

interface SavedMount {
  readonly path: string;
  readonly fstab: SavedPath;
  /** The mount point where nothing was mounted; null where something was. */
  readonly place: SavedPath | null;
  /** The mount that counted; null for none. */
  readonly entry: MountEntry | null;
  /** Directory that a bind mount shows; null for other mounts. */
  readonly bound: string | null;
}

const readTable = (): readonly MountEntry[] => parseMountTable(readFileSync(MOUNT_TABLE, 'utf8'));

const entryAt = (table: readonly MountEntry[], path: string): MountEntry | null =>
  table.findLast((entry) => entry.path === path) ?? null;

export const mountKeeper: Keeper<SavedMount> = {
  async save(bodies, { paths }) {
    const table = readTable();
    const saved: (SavedMount | string)[] = [];
    for (const body of bodies) {
      const path = 'path' in body ? String(body.path) : '';
      const entry = entryAt(table, path);
      const [fstab = '', place = null] = await paths.save(entry === null ? [FSTAB, path] : [FSTAB]);
      if (typeof fstab === 'string') saved.push(fstab);
      else if (typeof place === 'string') saved.push(place);
      else saved.push({ path, fstab, place, entry, bound: entry === null ? null : directoryOf(table, entry) });
    }
    return saved;
  },

  async restore(saved, phase, tools) {
    if (phase !== 'state') return null;
    const line = await tools.paths.restore(saved.fstab);
    const live = await restoreMount(saved, tools);
    return [line, live].filter((reason) => reason !== null).join('; ') || null;
  },
};

async function restoreMount({ path, place, entry, bound }: SavedMount, { host, paths }: RestoreTools) {
  for (let now = entryAt(readTable(), path); now !== null; now = entryAt(readTable(), path)) {
    if (entry !== null && isSame(now, entry)) {
      return isAlike(now, entry) ? null : run(host, mountArgs(entry, bound, ['remount']));
    }
    const failure = await run(host, ['umount', '--', path]);
    if (failure !== null) return failure;
  }
  if (entry === null) return place === null ? null : paths.restore(place);
  if (entry.root !== '/' && bound === null) return `orch no longer knows which directory was mounted at ${path}`;
  const failure = await run(host, mountArgs(entry, bound, []));
  if (failure !== null) return failure;
  return IN_MEMORY.test(entry.type) ? `${path} is mounted again, and what it held in memory is gone` : null;
}

const IN_MEMORY = /^(?:tmpfs|ramfs)$/;

const isSame = (one: MountEntry, other: MountEntry): boolean =>
  one.device === other.device && one.root === other.root && one.type === other.type;

const isAlike = (one: MountEntry, other: MountEntry): boolean =>
  one.flags.join() === other.flags.join() && one.options.join() === other.options.join();

/** Options by which the kernel means that none of their opposites are set. */
const OPPOSITES: readonly (readonly [string, string])[] = [
  ['nosuid', 'suid'],
  ['nodev', 'dev'],
  ['noexec', 'exec'],
  ['nodiratime', 'diratime'],
];

function mountArgs(entry: MountEntry, bound: string | null, first: readonly string[]): readonly [string, ...string[]] {
  const { flags, options, type, source, path } = entry;
  const cleared = OPPOSITES.flatMap(([name, opposite]) => (flags.includes(name) ? [] : [opposite]));
  const hasTime = flags.some((flag) => flag === 'noatime' || flag === 'relatime');
  // A file system in memory takes the options that the kernel shows; others show what only they set.
  const own = IN_MEMORY.test(type) ? options.filter((option) => option !== 'rw' && option !== 'ro') : [];
  const all = [
    ...first,
    ...(bound === null ? own : ['bind']),
    ...flags,
    ...cleared,
    ...(hasTime ? [] : ['strictatime']),
  ];
  return ['mount', '-t', bound === null ? type : 'none', '-o', all.join(','), '--', bound ?? source, path];
}

/** Returns a directory that leads to what a bind mount shows; null for a whole file system, and where there is none. */
function directoryOf(table: readonly MountEntry[], { device, root, path }: MountEntry): string | null {
  for (const other of table) {
    if (other.device !== device || other.path === path) continue;
    const isInside = other.root === '/' || root === other.root || root.startsWith(`${other.root}/`);
    if (!isInside) continue;
    const inside = root.slice(other.root === '/' ? 0 : other.root.length).replace(/^\/$/, '');
    const directory = `${other.path === '/' ? '' : other.path}${inside}` || '/';
    if (mountHolding(table, directory)?.path === other.path) return directory;
  }
  return null;
}
