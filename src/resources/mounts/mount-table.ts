/** The mounts of a process as `/proc/self/mountinfo` lists them. */

export const MOUNT_TABLE = '/proc/self/mountinfo';

export interface MountEntry {
  /** Number of the file system's device, such as `8:1`. */
  readonly device: string;
  /** Directory of the file system that is mounted: `/`, or another one for a bind mount. */
  readonly root: string;
  readonly path: string;
  /** Options of this mount, such as `rw` and `relatime`. */
  readonly flags: readonly string[];
  readonly type: string;
  readonly source: string;
  /** Options of the file system, which all its mounts share. */
  readonly options: readonly string[];
}

export const parseMountTable = (text: string): readonly MountEntry[] => text.split('\n').flatMap(entryOf);

/** The fields up to the separator may have more optional ones in between. */
function entryOf(line: string): readonly MountEntry[] {
  const fields = line.split(' ');
  const separator = fields.indexOf('-', 6);
  const [, , device, root, path, flags] = fields;
  const [type, source, options] = fields.slice(separator + 1);
  if (separator < 0 || device === undefined || root === undefined || path === undefined || flags === undefined) {
    return [];
  }
  return [
    {
      device,
      root: unescapeOctal(root),
      path: unescapeOctal(path),
      flags: flags.split(','),
      type: type ?? '',
      source: unescapeOctal(source ?? ''),
      options: (options ?? '').split(','),
    },
  ];
}

/** Returns the mount that a path lies in; the last of several at one place counts. */
export function mountHolding(table: readonly MountEntry[], path: string): MountEntry | undefined {
  let found: MountEntry | undefined;
  for (const entry of table) {
    const isHolder = entry.path === '/' || entry.path === path || path.startsWith(`${entry.path}/`);
    if (isHolder && entry.path.length >= (found?.path.length ?? 0)) found = entry;
  }
  return found;
}

/** Returns a field of /etc/fstab or of the kernel's mount tables, which have blanks and backslashes as octal numbers. */
export const unescapeOctal = (text: string): string =>
  text.replaceAll(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)));
