/** How the state of each kind is saved and restored. A kind without an entry cannot be restored. */
import { kindOfAbsence } from '../../resources/absence-name.js';
import { cronPath } from '../../resources/cron-unix.js';
import { FSTAB } from '../../resources/mounts/fstab.js';
import { isRestorable, type RestorableKind, whyNotRestorable } from '../../resources/restored.js';
import { timerUnits } from '../../resources/services/systemd-timer-plan.js';
import { unitPath } from '../../resources/services/systemd-unit-file.js';
import { groupKeeper, keyFileKeeper, keyFileOf, userKeeper } from './account-keeper.js';
import { archiveKeeper } from './archive-keeper.js';
import { checkoutKeeper } from './checkout-keeper.js';
import type { Keeper } from './keeper.js';
import { mountKeeper } from './mount-keeper.js';
import { openrcKeeper } from './openrc-keeper.js';
import type { SavedPath } from './saved-path.js';
import { alternativesKeeper, isSystemKind, kernelModuleKeeper, SYSTEM_PARTS, systemKeeper } from './system-keeper.js';
import { timerKeeper, unitKeeper } from './unit-keeper.js';

const pathIn = (body: object): string => ('path' in body ? String(body.path) : '');

/** The file of an entry of cron. */
const cronKeeper: Keeper<SavedPath> = {
  save: (bodies, { paths }) => paths.save(bodies.map(cronPathIn)),
  restore: async (saved, phase, { paths }) => (phase === 'state' ? paths.restore(saved) : null),
};

const cronPathIn = (body: object): string => ('name' in body ? cronPath(String(body.name)) : '');

/** Files, directories and links that resources name, and files of which they change a part. */
const pathKeeper: Keeper<SavedPath> = {
  save: (bodies, { paths }) => paths.save(bodies.map(pathIn)),
  restore: async (saved, phase, { paths }) => (phase === 'state' ? paths.restore(saved) : null),
};

/** A directory whose content goes with it cannot be brought back. */
const absentDirectoryKeeper: Keeper = {
  ...(pathKeeper as Keeper),
  save: async (bodies, tools) => {
    const saved = await pathKeeper.save(bodies, tools);
    return bodies.map((body, at) => {
      if ('recursive' in body && body.recursive === true) return 'what was in the directory stays gone';
      return saved[at] ?? 'it was not saved';
    });
  },
};

const KEEPERS: Readonly<Record<RestorableKind, Keeper>> = {
  'file-unix': pathKeeper as Keeper,
  'directory-unix': pathKeeper as Keeper,
  'symlink-unix': pathKeeper as Keeper,
  'line-unix': pathKeeper as Keeper,
  'block-unix': pathKeeper as Keeper,
  'setting-unix': pathKeeper as Keeper,
  'host-entry-unix': systemKeeper('host-entry-unix') as Keeper,
  'sysctl-linux': systemKeeper('sysctl-linux') as Keeper,
  'hostname-linux': systemKeeper('hostname-linux') as Keeper,
  'timezone-linux': systemKeeper('timezone-linux') as Keeper,
  'locale-linux': systemKeeper('locale-linux') as Keeper,
  'kernel-module-linux': kernelModuleKeeper as Keeper,
  'alternatives-linux': alternativesKeeper as Keeper,
  'mount-linux': mountKeeper as Keeper,
  'service-systemd': unitKeeper as Keeper,
  'service-openrc': openrcKeeper as Keeper,
  'timer-systemd': timerKeeper as Keeper,
  'user-unix': userKeeper as Keeper,
  'group-unix': groupKeeper as Keeper,
  'authorized-key-unix': keyFileKeeper as Keeper,
  'cron-unix': cronKeeper as Keeper,
  'git-unix': checkoutKeeper as Keeper,
  'archive-unix': archiveKeeper as Keeper,
  'repository-apt': systemKeeper('repository-apt') as Keeper,
  'repository-dnf': systemKeeper('repository-dnf') as Keeper,
};

/** Returns the keeper of a kind, or why it has none. */
export function keeperOf(kind: string): Keeper | string {
  const saved = kindOfAbsence(kind);
  if (kind !== saved && saved === 'directory-unix') return absentDirectoryKeeper;
  if (isRestorable(saved)) return KEEPERS[saved];
  return whyNotRestorable(kind) ?? 'orch cannot restore resources of this kind';
}

/** Returns the paths whose contents a kind saves. */
export function pathsOf(named: string, body: object): readonly string[] {
  const kind = kindOfAbsence(named);
  if (isRestorable(kind) && KEEPERS[kind] === pathKeeper) return [pathIn(body)];
  if (isSystemKind(kind)) return SYSTEM_PARTS[kind](body).files;
  if (kind === 'mount-linux') return [FSTAB];
  if (kind === 'timer-systemd' && 'name' in body) return timerUnits(String(body.name)).map(unitPath);
  if (kind === 'cron-unix') return [cronPathIn(body)];
  if (kind === 'authorized-key-unix' || kind === 'user-unix') return keyFileOf(body) ?? [];
  return kind === 'service-systemd' && 'name' in body ? [unitPath(String(body.name))] : [];
}
