/** File systems in which only the kernel makes files, such as those on /proc and /sys. */
import { statfsSync } from 'node:fs';
import type { HeldEntry } from './safe-walk.js';

/** Numbers of `statfs`: proc, sysfs, cgroup, cgroup2, debugfs, tracefs, securityfs, configfs, pstore, selinuxfs. */
const TYPES: ReadonlySet<number> = new Set([
  0x9fa0, 0x62656572, 0x27e0eb, 0x63677270, 0x64626720, 0x74726163, 0x73636673, 0x62656570, 0x6165676c, 0xf97cff8c,
]);

export function isVirtual({ at }: HeldEntry): boolean {
  if (process.platform !== 'linux') return false;
  try {
    return TYPES.has(statfsSync(`${at}/.`).type);
  } catch {
    return false;
  }
}
