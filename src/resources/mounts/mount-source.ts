/** The source of a mount: a device, a tag such as `UUID=…`, a directory, an image, an export of a server, or a mere name. */
import { type CommandRefusal, exitedWith } from '../command.js';
import type { Host, PathFact } from '../host.js';
import { parentOf } from '../unix/unix-path.js';
import { type MountEntry, mountHolding } from './mount-table.js';

/** File systems without a source: its name is free. */
const WITHOUT_SOURCE =
  /^(?:tmpfs|ramfs|devtmpfs|proc|sysfs|devpts|mqueue|hugetlbfs|overlay|cgroup2?|debugfs|tracefs|securityfs|binfmt_misc)$/;

const TAG = /^(?:UUID|LABEL|PARTUUID|PARTLABEL|ID)=./;

export const isTag = (source: string): boolean => TAG.test(source);

/** True for a source that a mount finds by its path. */
export const isPath = (source: string): boolean => source.startsWith('/') && !source.startsWith('//');

/** True for a source on another machine. */
const isRemote = (source: string): boolean => source.startsWith('//') || source.includes(':');

interface WantedSource {
  readonly source: string;
  readonly type: string;
  readonly isBind: boolean;
}

/** Where a source leads to. */
export interface FoundSource {
  /** Device without links, directory or image; the text of the source where it is no path. */
  readonly at: string;
  /** Why it cannot be mounted; null for nothing that is known. `mayCome`: an earlier change may bring it. */
  readonly problem: (CommandRefusal & { readonly mayCome: boolean }) | null;
}

/** Looks for a source; asks the machine for the device of a tag. */
export async function findSource(host: Host, { source, isBind }: WantedSource): Promise<FoundSource> {
  if (isTag(source)) {
    const result = await host.run({ argv: ['findfs', source] });
    const device = result.stdout.trim();
    if (exitedWith(result, 0) && device.startsWith('/')) return { at: withoutLinks(host, device), problem: null };
    return missing(source, `no file system of this machine has ${source}; "lsblk -f" lists them`);
  }
  if (!isPath(source)) return { at: source, problem: null };
  const at = isBind ? source : withoutLinks(host, source);
  const [fact] = host.observe([{ path: at, content: false, entries: false }]);
  return { at, problem: problemOf(source, fact, isBind) };
}

const missing = (at: string, message: string): FoundSource => ({
  at,
  problem: { code: 'file_missing', message, mayCome: true },
});

function problemOf(source: string, fact: PathFact | undefined, isBind: boolean): FoundSource['problem'] {
  const no = (message: string): FoundSource['problem'] => ({ code: 'wrong_type', message, mayCome: false });
  switch (fact?.type) {
    case undefined:
      return no(`${source} was not read`);
    case 'absent':
      return { code: 'file_missing', message: `${source} does not exist, so it cannot be mounted`, mayCome: true };
    case 'unreadable':
      return { code: fact.code, message: fact.message, mayCome: false };
    case 'symlink':
      return no(`${source} is a symlink to ${fact.target}; declare the path that it leads to`);
    case 'directory':
      return isBind ? null : no(`${source} is a directory; "options: [bind]" with "type: none" mounts one`);
    case 'file':
      return isBind ? no(`${source} is a file, and only directories are mounted with bind`) : null;
    case 'other':
      return fact.what === 'block device' && !isBind ? null : no(`${source} is a ${fact.what}`);
  }
}

const MAX_LINKS = 8;

/** Follows the links of a device, such as those in /dev/disk/by-uuid and /dev/mapper. */
function withoutLinks(host: Host, path: string): string {
  let at = path;
  for (let link = 0; link < MAX_LINKS; link += 1) {
    const [fact] = host.observe([{ path: at, content: false, entries: false }]);
    if (fact?.type !== 'symlink') return at;
    at = joined(parentOf(at), fact.target);
  }
  return at;
}

/** Returns the path that a target of a link in a directory names. */
function joined(directory: string, target: string): string {
  const parts = target.startsWith('/') ? [] : directory.split('/').filter((part) => part !== '');
  for (const part of target.split('/')) {
    if (part === '..') parts.pop();
    else if (part !== '' && part !== '.') parts.push(part);
  }
  return `/${parts.join('/')}`;
}

/** True when a mount has the wanted source, as far as that can be told. */
export function isMountedFrom(
  host: Host,
  want: WantedSource,
  { at }: FoundSource,
  entry: MountEntry,
  table: readonly MountEntry[],
): boolean {
  const { source, type, isBind } = want;
  if (isBind) {
    const holder = mountHolding(table, source);
    if (holder === undefined) return false;
    const inside = source.slice(holder.path === '/' ? 0 : holder.path.length);
    const root = `${holder.root === '/' ? '' : holder.root}${inside}`;
    return entry.device === holder.device && entry.root === (root === '' ? '/' : root);
  }
  if (WITHOUT_SOURCE.test(type)) return true;
  if (isRemote(source) && !isPath(source)) return plain(entry.source) === plain(source);
  if (entry.source === source || entry.source === at) return true;
  if (!isPath(entry.source)) return false;
  const device = withoutLinks(host, entry.source);
  return device === at || (/^\/dev\/loop\d+$/.test(device) && imageOf(host, device) === at);
}

const plain = (source: string): string => (source.length > 1 && source.endsWith('/') ? source.slice(0, -1) : source);

/** Returns the file behind a loop device. */
function imageOf(host: Host, device: string): string | null {
  const path = `/sys/block/${device.slice('/dev/'.length)}/loop/backing_file`;
  const [fact] = host.observe([{ path, content: true, entries: false }]);
  return fact?.type === 'file' && fact.content.kind === 'text' ? fact.content.text.trim() : null;
}

/** True when a mount has the wanted type, which drivers name in their own way. */
export function isOfType(type: string, entry: MountEntry): boolean {
  if (type === 'auto' || type === 'none' || type === entry.type) return true;
  if (type === 'nfs') return entry.type === 'nfs4';
  return /^(?:fuse|ntfs|sshfs|exfat)/.test(type) && entry.type.startsWith('fuse');
}
