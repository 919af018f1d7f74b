/** Observes paths of Windows without following links or changing anything. */
import { closeSync, constants, fstatSync, lstatSync, openSync, readlinkSync, type Stats } from 'node:fs';
import type { Metadata, ObserveRequest, PathFact } from '../../resources/host.js';
import { parentOfWindowsPath, problemOfWindowsPath } from '../../resources/windows/windows-path.js';
import { contentOf, namesIn, observeEach } from './observe.js';
import type { ToNative, WindowsWalk } from './windows-walk.js';

/** Windows has neither numeric owners nor permission bits. */
const NO_METADATA: Metadata = { uid: 0, gid: 0, mode: 0 };

/** Observes in the order of the requests. */
export const observeWindows = (
  walk: WindowsWalk,
  requests: readonly ObserveRequest[],
  toNative: ToNative,
): readonly PathFact[] => observeEach(requests, (request, buffer) => observeOne(walk, request, { toNative, buffer }));

interface Means {
  readonly toNative: ToNative;
  readonly buffer: Buffer;
}

function observeOne(walk: WindowsWalk, request: ObserveRequest, means: Means): PathFact {
  const { path } = request;
  const problem = problemOfWindowsPath(path);
  if (problem !== null) return { type: 'unreadable', code: 'unsafe_path', message: `${path} ${problem}` };
  const parent = walk.directory(parentOfWindowsPath(path));
  if (parent.kind === 'missing') {
    return {
      type: 'absent',
      parent: parent.what,
      ...(parent.what === 'absent' ? missingOn(walk, parentOfWindowsPath(path)) : {}),
    };
  }
  if (parent.kind === 'refused') return { type: 'unreadable', ...parent.refusal };
  const at = means.toNative(path);
  const stats = lstatSync(at, { throwIfNoEntry: false });
  if (stats === undefined) return { type: 'absent', parent: 'directory' };
  if (stats.isSymbolicLink()) return { type: 'symlink', target: readlinkSync(at) };
  if (stats.isDirectory()) {
    return { type: 'directory', entries: request.entries ? namesIn(at) : null, ...NO_METADATA };
  }
  if (!stats.isFile()) return { type: 'other', what: 'unknown' };
  return fileAt(at, stats, request, means);
}

/** Returns the missing parent directories; none on a missing drive. */
function missingOn(walk: WindowsWalk, path: string): { readonly missing?: readonly string[] } {
  const missing: string[] = [];
  for (let at = path; ; at = parentOfWindowsPath(at)) {
    const place = walk.directory(at);
    if (place.kind === 'directory') return { missing };
    if (place.kind === 'refused' || parentOfWindowsPath(at) === at) return {};
    missing.unshift(at);
  }
}

function fileAt(at: string, stats: Stats, { path, content }: ObserveRequest, { buffer }: Means): PathFact {
  const { size } = stats;
  if (content === false) return { type: 'file', size, content: { kind: 'unread' }, ...NO_METADATA };
  const descriptor = openSync(at, constants.O_RDONLY);
  try {
    const opened = fstatSync(descriptor);
    if (!opened.isFile() || opened.ino !== stats.ino || opened.dev !== stats.dev) {
      const message = `${path} was replaced while it was read`;
      return { type: 'unreadable', code: 'unsafe_path', message };
    }
    return {
      type: 'file',
      size: opened.size,
      content: contentOf(descriptor, { size: opened.size, buffer, wanted: content }),
      ...NO_METADATA,
    };
  } finally {
    closeSync(descriptor);
  }
}
