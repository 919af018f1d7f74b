/** Saves settings of the system: the files that hold them, and the value that the running kernel has. */
import { readFileSync, writeFileSync } from 'node:fs';
import { messageOf } from '../../kernel/fault.js';
import { KERNEL_HOSTNAME } from '../../resources/hostname-linux.js';
import { sysctlFile, sysctlPath } from '../../resources/sysctl-linux.js';
import { TIMEZONE_FILES } from '../../resources/timezone-linux.js';
import type { Keeper } from './keeper.js';
import type { SavedPath } from './saved-path.js';

/** Where a resource of a kind keeps its setting. */
interface SystemParts {
  readonly files: readonly string[];
  /** Path of the value below /proc/sys; null for none. */
  readonly kernel: string | null;
}

interface SavedSystem {
  readonly files: readonly SavedPath[];
  readonly kernel: { readonly path: string; readonly value: string } | null;
}

/** The parts of a body, by kind. */
export const SYSTEM_PARTS = {
  'host-entry-unix': () => ({ files: ['/etc/hosts'], kernel: null }),
  'hostname-linux': () => ({ files: ['/etc/hostname'], kernel: KERNEL_HOSTNAME }),
  'sysctl-linux': (body) => {
    const key = 'key' in body ? String(body.key) : '';
    return { files: [sysctlFile(key)], kernel: sysctlPath(key) };
  },
  'timezone-linux': () => ({ files: TIMEZONE_FILES, kernel: null }),
} as const satisfies Readonly<Record<string, (body: object) => SystemParts>>;

type SystemKind = keyof typeof SYSTEM_PARTS;

export const isSystemKind = (kind: string): kind is SystemKind => Object.hasOwn(SYSTEM_PARTS, kind);

export const systemKeeper = (kind: SystemKind): Keeper<SavedSystem> => ({
  save: (bodies, { paths }) =>
    Promise.all(
      bodies.map(async (body) => {
        const { files, kernel } = SYSTEM_PARTS[kind](body);
        const saved = await paths.save(files);
        const why = saved.find((one) => typeof one === 'string');
        if (why !== undefined) return why;
        const value = kernel === null ? null : valueAt(kernel);
        return {
          files: saved.filter((one) => typeof one !== 'string'),
          kernel: kernel === null || value === null ? null : { path: kernel, value },
        };
      }),
    ),

  async restore({ files, kernel }, phase, { paths }) {
    if (phase !== 'state') return null;
    const reasons: string[] = [];
    for (const file of files) {
      const reason = await paths.restore(file);
      if (reason !== null) reasons.push(reason);
    }
    if (kernel !== null && valueAt(kernel.path) !== kernel.value) {
      try {
        writeFileSync(kernel.path, kernel.value);
      } catch (error) {
        reasons.push(`the kernel keeps the value of ${kernel.path}: ${messageOf(error)}`);
      }
    }
    return reasons.length === 0 ? null : reasons.join('; ');
  },
});

/** Returns a value of the kernel; null for one that is missing or cannot be read. */
function valueAt(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return null;
  }
}
