/** Saves settings of the system: the files that hold them, and the value that the running kernel has. */
import { existsSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs';
import { messageOf } from '../../kernel/fault.js';
import { ALTERNATIVE_RECORDS } from '../../resources/alternatives-linux.js';
import { KERNEL_HOSTNAME } from '../../resources/hostname-linux.js';
import { moduleFiles } from '../../resources/kernel-module-linux.js';
import { LOCALE_FILES } from '../../resources/locale-linux.js';
import { aptRepositoryFiles } from '../../resources/repository-apt.js';
import { dnfRepositoryFiles } from '../../resources/repository-dnf.js';
import { sysctlFile, sysctlPath } from '../../resources/sysctl-linux.js';
import { TIMEZONE_FILES } from '../../resources/timezone-linux.js';
import { run } from './account-keeper.js';
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

const nameIn = (body: object): string => ('name' in body ? String(body.name) : '');

/** The parts of a body, by kind. */
export const SYSTEM_PARTS = {
  'host-entry-unix': () => ({ files: ['/etc/hosts'], kernel: null }),
  'hostname-linux': () => ({ files: ['/etc/hostname'], kernel: KERNEL_HOSTNAME }),
  'sysctl-linux': (body) => {
    const key = 'key' in body ? String(body.key) : '';
    return { files: [sysctlFile(key)], kernel: sysctlPath(key) };
  },
  'timezone-linux': () => ({ files: TIMEZONE_FILES, kernel: null }),
  'locale-linux': () => ({ files: LOCALE_FILES, kernel: null }),
  'kernel-module-linux': (body) => {
    const { atBoot, options } = moduleFiles(nameIn(body));
    return { files: [atBoot, options], kernel: null };
  },
  'repository-apt': (body) => ({ files: aptRepositoryFiles(nameIn(body)), kernel: null }),
  'repository-dnf': (body) => ({ files: dnfRepositoryFiles(nameIn(body)), kernel: null }),
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

interface SavedModule extends SavedSystem {
  readonly name: string;
  readonly isLoaded: boolean;
}

const moduleFilesKeeper = systemKeeper('kernel-module-linux');
const isLoaded = (name: string): boolean => existsSync(moduleFiles(name).loaded);

/** A module that was not loaded before is unloaded, unless something uses it by then. */
export const kernelModuleKeeper: Keeper<SavedModule> = {
  async save(bodies, tools) {
    const saved = await moduleFilesKeeper.save(bodies, tools);
    return bodies.map((body, at) => {
      const files = saved[at] ?? 'it was not saved';
      const name = nameIn(body);
      return typeof files === 'string' ? files : { ...files, name, isLoaded: isLoaded(name) };
    });
  },

  async restore(saved, phase, tools, action) {
    const reason = await moduleFilesKeeper.restore(saved, phase, tools, action);
    if (phase !== 'state' || saved.isLoaded || !isLoaded(saved.name)) return reason;
    const unloaded = await run(tools.host, ['modprobe', '-r', '--', saved.name]);
    return [reason, unloaded].filter((one) => one !== null).join('; ') || null;
  },
};

interface SavedAlternative {
  readonly name: string;
  /** Path of the alternative; null for none. */
  readonly path: string | null;
  readonly isManual: boolean;
}

const linkOf = (name: string): string => `/etc/alternatives/${name}`;

const alternativeNow = (name: string): SavedAlternative => {
  const record = ALTERNATIVE_RECORDS.map((directory) => valueAt(`${directory}/${name}`)).find((text) => text !== null);
  return { name, path: linkAt(linkOf(name)), isManual: record?.startsWith('manual\n') === true };
};

export const alternativesKeeper: Keeper<SavedAlternative> = {
  save: async (bodies) => bodies.map((body) => alternativeNow(nameIn(body))),

  async restore(saved, phase, { host }) {
    const { name, path, isManual } = saved;
    if (phase !== 'state') return null;
    const now = alternativeNow(name);
    if (path === null || (now.path === path && now.isManual === isManual)) return null;
    // Among equal priorities, an automatic choice stays with the present one.
    const chosen = await run(host, ['update-alternatives', '--set', name, path]);
    if (chosen !== null || isManual) return chosen;
    const released = await run(host, ['update-alternatives', '--auto', name]);
    return released ?? (linkAt(linkOf(name)) === path ? null : 'another alternative has the highest priority now');
  },
};

/** Returns the target of a link; null for everything else. */
function linkAt(path: string): string | null {
  try {
    return readlinkSync(path);
  } catch {
    return null;
  }
}
