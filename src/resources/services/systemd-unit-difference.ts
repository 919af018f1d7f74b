/** How the unit file that orch writes differs from what is in its place, and from what systemd has read. */
import type { PlanContext } from '../kind.js';
import { compareServiceFile, NO_DIFFERENCE, type ServiceFileDifference } from './service-file.js';
import type { SeenUnit } from './systemd-refusal.js';
import type { ServiceBody } from './systemd-service-body.js';
import { unitFileText, unitPath } from './systemd-unit-file.js';

export interface UnitFileDifference extends ServiceFileDifference {
  /** True when there is no such unit yet. */
  readonly isNew: boolean;
  /** True when systemd has to read it. */
  readonly isReloaded: boolean;
}

/** Of a place where a file can be written. */
export function unitFileDifference(
  want: ServiceBody,
  { unit, file }: SeenUnit,
  context: PlanContext,
): UnitFileDifference {
  if (want.exec_start == null || file === null) return { ...NO_DIFFERENCE, isNew: false, isReloaded: false };
  const path = unitPath(want.name);
  const service = { field: 'unit_file', path, text: unitFileText(want), group: 'root' };
  const difference = compareServiceFile(service, file, context);
  if (difference.isReplaced) {
    return { ...difference, isNew: unit.load === 'not-found' && file.type === 'absent', isReloaded: true };
  }
  // Written, and not read by systemd since: by a run that was cut, or because a drop-in was changed by hand.
  const isReloaded = unit.isStale || unit.path !== path;
  const unread = isReloaded ? [{ field: 'daemon_reload', before: 'needed', after: 'done' }] : [];
  return { ...difference, changes: [...difference.changes, ...unread], isNew: false, isReloaded };
}
