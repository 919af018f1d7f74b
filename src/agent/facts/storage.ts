/** The disks of this machine, and its mounted file systems. */
import { FACT_LIMITS, type PartedAttributes } from '../../kernel/facts.js';
import { unescapeOctal } from '../../resources/mounts/mount-table.js';
import type { MachineFiles } from './machine-files.js';

/** Sizes of a file system in bytes; null if it cannot be asked. */
export type SizesOf = (path: string) => { readonly total: number; readonly free: number } | null;

const MB = 1024 ** 2;
const SECTOR = 512;

/** Returns the disks of the machine by name, without loops, memory and other devices of no hardware. Linux only. */
export function readDisks(files: MachineFiles): NonNullable<PartedAttributes['disks']> {
  const found: [string, NonNullable<PartedAttributes['disks']>[string]][] = [];
  for (const name of files.names('/sys/block')) {
    if (/^(sr|fd)\d/.test(name) || files.target(`/sys/block/${name}`)?.includes('/virtual/block/')) continue;
    const size = Number(files.word(`/sys/block/${name}/size`));
    if (!(size > 0) || found.length === FACT_LIMITS.parts) continue;
    const model = files.word(`/sys/block/${name}/device/model`)?.slice(0, 256);
    const rotational = files.word(`/sys/block/${name}/queue/rotational`) === '1';
    const size_mb = Math.floor((size * SECTOR) / MB);
    found.push([name, { size_mb, ...(model === undefined ? {} : { model }), rotational }]);
  }
  return Object.fromEntries(found);
}

type Mount = NonNullable<PartedAttributes['mounts']>[number];

export interface Mounts {
  readonly mounts: readonly Mount[];
  /** Free megabytes by path. */
  readonly free: Readonly<Record<string, number>>;
}

/** File systems of the network. They are listed and never asked for their size, because a lost server holds up the caller for ever. */
const REMOTE = /^(nfs|nfs4|cifs|smb3|ceph|glusterfs|9p|afs|fuse\..*)$/;
/** File systems that a name of a device does not begin with a slash for. */
const WITHOUT_DEVICE = /^(zfs|btrfs|overlay|virtiofs)$/;
/** Places where programs mount what lives as long as they do. */
const PASSING = /^\/(proc|sys|dev|run|snap|var\/lib\/(docker|containers|kubelet|lxc))(\/|$)/;

/** Returns the mounted file systems with storage of their own, by path. Linux only. */
export function readMounts(files: MachineFiles, sizesOf: SizesOf): Mounts {
  const mounts = new Map<string, Mount>();
  const free: Record<string, number> = Object.create(null);
  for (const [device = '', written = '', type = ''] of files.table('/proc/self/mounts')) {
    const path = unescapeOctal(written);
    const isRemote = REMOTE.test(type);
    if (!(device.startsWith('/') || isRemote || (WITHOUT_DEVICE.test(type) && (type !== 'overlay' || path === '/'))))
      continue;
    if (PASSING.test(path) || type === 'squashfs' || path.length > 256 || /\p{C}/u.test(path)) continue;
    if (!mounts.has(path) && mounts.size === FACT_LIMITS.parts) continue;
    const sizes = isRemote ? null : sizesOf(path);
    const size = sizes === null ? {} : { size_mb: Math.floor(sizes.total / MB) };
    mounts.set(path, { path, device: unescapeOctal(device).slice(0, 256), type: type.slice(0, 64), ...size });
    if (sizes !== null) free[path] = Math.floor(sizes.free / MB);
  }
  return { mounts: [...mounts.values()].sort((a, b) => (a.path < b.path ? -1 : 1)), free };
}
