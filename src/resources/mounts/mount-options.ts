/**
 * Options of a mount: which the kernel shows as they were written, and whether those of a mount are the wanted ones. Options of a
 * file system are not compared with the kernel's, because each file system shows them in another form (`size=1g` as
 * `size=1048576k`) and adds its own. A change of them is a change of the line in /etc/fstab.
 */
import type { MountEntry } from './mount-table.js';

type Atime = 'noatime' | 'relatime' | 'strictatime';

/** The options that the kernel keeps for each mount, whatever the file system. */
interface MountFlags {
  readonly ro: boolean;
  readonly nosuid: boolean;
  readonly nodev: boolean;
  readonly noexec: boolean;
  readonly nosymfollow: boolean;
  readonly nodiratime: boolean;
  readonly atime: Atime;
}

const DEFAULTS: MountFlags = {
  ro: false,
  nosuid: false,
  nodev: false,
  noexec: false,
  nosymfollow: false,
  nodiratime: false,
  atime: 'relatime',
};

/** What each option sets; later ones win. */
const EFFECTS: Readonly<Record<string, Partial<MountFlags>>> = {
  defaults: { ro: false, nosuid: false, nodev: false, noexec: false },
  ro: { ro: true },
  rw: { ro: false },
  nosuid: { nosuid: true },
  suid: { nosuid: false },
  nodev: { nodev: true },
  dev: { nodev: false },
  noexec: { noexec: true },
  exec: { noexec: false },
  nosymfollow: { nosymfollow: true },
  symfollow: { nosymfollow: false },
  nodiratime: { nodiratime: true },
  diratime: { nodiratime: false },
  noatime: { atime: 'noatime' },
  relatime: { atime: 'relatime' },
  atime: { atime: 'relatime' },
  strictatime: { atime: 'strictatime' },
  // Mounts of users take these along unless later options say otherwise.
  user: { nosuid: true, nodev: true, noexec: true },
  users: { nosuid: true, nodev: true, noexec: true },
  owner: { nosuid: true, nodev: true },
  group: { nosuid: true, nodev: true },
};

function flagsOf(options: readonly string[], base: MountFlags = DEFAULTS): MountFlags {
  const flags = { ...base };
  for (const option of options) Object.assign(flags, own(EFFECTS, option));
  return flags;
}

const own = <T>(map: Readonly<Record<string, T>>, key: string): T | undefined =>
  Object.hasOwn(map, key) ? map[key] : undefined;

/** The kernel shows neither `relatime` nor `noatime` for `strictatime`. */
const flagsNow = ({ flags }: MountEntry): MountFlags => flagsOf(flags, { ...DEFAULTS, atime: 'strictatime' });

/** Options for programs, which are no property of the mount. */
const FOR_PROGRAMS = /^(?:auto|noauto|nouser|nofail|_netdev|bind|rbind|loop|x-.*|X-.*|comment=.*)$/;

/** Returns the options that belong to the file system. */
export const fileSystemOptions = (options: readonly string[]): readonly string[] =>
  options.filter((option) => !Object.hasOwn(EFFECTS, option) && !FOR_PROGRAMS.test(option));

export const isBind = (options: readonly string[]): boolean => options.includes('bind') || options.includes('rbind');

/** True for options with which systemd or a person mounts, later than at the start of the machine. */
export const isMountedByOthers = (options: readonly string[]): boolean =>
  options.some((option) => option === 'noauto' || option === 'x-systemd.automount');

/** A difference between the options of a mount and the wanted ones, as a plan shows it. */
export interface OptionDifference {
  readonly before: string;
  readonly after: string;
}

/** Returns how the options of a mount differ; null where nothing is known to differ. */
export function differenceOfOptions(wanted: readonly string[], entry: MountEntry): OptionDifference | null {
  const want = flagsOf(wanted);
  const have = flagsNow(entry);
  // Drivers in programs add nosuid and nodev by themselves.
  const isLoose = entry.type.startsWith('fuse');
  const before: string[] = [];
  const after: string[] = [];
  for (const name of NAMES) {
    const isFree = isLoose && !want[name];
    if (want[name] === have[name] || isFree) continue;
    before.push(shownFlag(name, have[name]));
    after.push(shownFlag(name, want[name]));
  }
  if (want.atime !== have.atime) {
    before.push(have.atime);
    after.push(want.atime);
  }
  const size = differenceOfSize(wanted, entry);
  if (size !== null) {
    before.push(size.before);
    after.push(size.after);
  }
  return before.length === 0 ? null : { before: before.join(','), after: after.join(',') };
}

const NAMES = ['ro', 'nosuid', 'nodev', 'noexec', 'nosymfollow', 'nodiratime'] as const;

const shownFlag = (name: (typeof NAMES)[number], isSet: boolean): string => {
  if (name === 'ro') return isSet ? 'ro' : 'rw';
  return isSet ? name : name.slice(2);
};

/** Bytes by which a file system in memory may be larger than wanted, because it counts in pages. */
const MAX_PAGE = 64 * 1024;

/** Compares the size of a tmpfs, which is what people change; a share of the memory is not compared. */
function differenceOfSize(wanted: readonly string[], { type, options }: MountEntry): OptionDifference | null {
  if (type !== 'tmpfs') return null;
  const after = wanted.findLast((option) => option.startsWith('size='));
  const before = options.find((option) => option.startsWith('size='));
  const want = after === undefined ? null : bytesOf(after);
  const have = before === undefined ? null : bytesOf(before);
  if (after === undefined || want === null || (have !== null && have >= want && have < want + MAX_PAGE)) return null;
  return { before: before ?? 'no size', after };
}

const UNITS: Readonly<Record<string, number>> = { '': 1, k: 1024, m: 1024 ** 2, g: 1024 ** 3, t: 1024 ** 4 };

function bytesOf(option: string): number | null {
  const [, digits, unit = ''] = /^size=(\d+)([kmgt]?)$/i.exec(option) ?? [];
  return digits === undefined ? null : Number(digits) * (UNITS[unit.toLowerCase()] ?? 1);
}

/**
 * Returns the options of a remount. It names each flag, because the kernel keeps the access times of before where none is
 * given.
 */
export function remountOptions(wanted: readonly string[]): string {
  const flags = flagsOf(wanted);
  // Older programs know no word for the opposite of nosymfollow.
  const named = NAMES.filter((name) => name !== 'nosymfollow' || flags[name]).map((name) =>
    shownFlag(name, flags[name]),
  );
  const rest = wanted.filter((option) => !Object.hasOwn(EFFECTS, option) && option !== 'loop');
  return ['remount', ...rest, ...named, flags.atime].join(',');
}
