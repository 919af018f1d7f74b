/** How file systems are mounted, as far as it keeps a path from being changed (Linux). */
import { readFileSync, realpathSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import type { FileStep, StepOutcome } from '../../resources/host.js';
import { unescapeOctal } from '../../resources/mounts/mount-table.js';
import { refusalOfStep } from './path-refusal.js';

interface Mount {
  readonly isReadOnly: boolean;
}

/** Steps that keep the entry of their path in the directory above. */
const KEEP_ENTRY: ReadonlySet<FileStep['do']> = new Set([
  'set-metadata',
  'make-directory',
  'unpack',
  'remove-unpacked',
]);

export class Mounts {
  private readonly mounts: ReadonlyMap<string, Mount>;

  /** @param text text of `/proc/self/mountinfo` */
  constructor(text: string) {
    this.mounts = new Map(text.split('\n').flatMap(mountOf));
  }

  /** Returns the mounts of now; none where the system does not list them. */
  static read(): Mounts {
    try {
      return new Mounts(readFileSync('/proc/self/mountinfo', 'utf8'));
    } catch {
      return new Mounts('');
    }
  }

  /** Returns why the step cannot be done, in the words in which it would fail; null for no reason that mounts give. */
  obstacleTo(step: FileStep): StepOutcome {
    const place = realPlace(step.path);
    const isMounted = this.mounts.has(place);
    // A directory's owner and mode are those of what is mounted on it; everything else needs the entry in the directory above.
    if (isMounted && !KEEP_ENTRY.has(step.do)) return refusalOfStep(failure('EBUSY'), step);
    if (step.do === 'remove-tree') {
      const mounted = this.within(place);
      if (mounted !== null) {
        return { code: 'removal_refused', message: mountInside(mounted, step.path) };
      }
    }
    return this.at(place)?.isReadOnly === true ? refusalOfStep(failure('EROFS'), step) : null;
  }

  /** Returns where something is mounted on a directory or inside it; null for none. @param place real path */
  within(place: string): string | null {
    for (const mounted of this.mounts.keys()) {
      if (mounted === place || mounted.startsWith(place === '/' ? '/' : `${place}/`)) return mounted;
    }
    return null;
  }

  /** Returns the mount that holds a path. */
  private at(path: string): Mount | undefined {
    for (let place = path; ; place = dirname(place)) {
      const mount = this.mounts.get(place);
      if (mount !== undefined || place === '/') return mount;
    }
  }
}

export const mountInside = (mounted: string, path: string): string =>
  `something is mounted at ${mounted}; unmount it, so that ${path} can be removed`;

const failure = (code: string): Error => Object.assign(new Error(code), { code });

/** Returns the path without links in its directories; those that do not exist yet stay as they are. */
function realPlace(path: string): string {
  if (path === '/') return path;
  const directory = dirname(path);
  try {
    return join(realpathSync(directory), basename(path));
  } catch {
    return join(realPlace(directory), basename(path));
  }
}

/** Parses a line of `/proc/self/mountinfo`; the last of several mounts at a place is the one that counts. */
function mountOf(line: string): readonly (readonly [string, Mount])[] {
  const fields = line.split(' ');
  const [place, options] = [fields[4], fields[5]];
  if (place === undefined || options === undefined) return [];
  const superOptions = fields.at(-1) ?? '';
  const isReadOnly = [options, superOptions].some((list) => list.split(',').includes('ro'));
  return [[unescapeOctal(place), { isReadOnly }]];
}
