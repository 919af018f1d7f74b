/** What keeps a unit from its desired state, before anything is tried. */
import type { PathFact } from '../host.js';
import type { CommandRefusal } from '../kind.js';
import { refusalOfPlace } from './service-file.js';
import type { ServiceBody } from './systemd-service-body.js';
import { isUp, type Unit } from './systemd-unit.js';
import { unitPath } from './systemd-unit-file.js';

/** A unit and the file at the place where orch writes unit files; null when it writes none. */
export interface SeenUnit {
  readonly unit: Unit;
  readonly file: PathFact | null;
}

/** Null when nothing is in the way. */
export function refusalOf(want: ServiceBody, { unit, file }: SeenUnit): CommandRefusal | null {
  return (
    (file === null ? null : refusalOfPlace(unitPath(want.name), file)) ??
    refusalOfMask(want, { unit, file }) ??
    unsuitable(want, unit)
  );
}

export const missing = ({ id }: Unit): CommandRefusal => ({
  code: 'unit_missing',
  message: `there is no unit ${id} on this machine; give exec_start, or declare the package or the file that brings it before`,
});

/** A mask keeps a unit from being started; one that is to be off is as it should be. */
function refusalOfMask(want: ServiceBody, { unit, file }: SeenUnit): CommandRefusal | null {
  if (!isMasked(unit, file)) return null;
  const isInTheWay = file !== null || want.enabled === true || (want.running === true && !isUp(unit));
  if (!isInTheWay) return null;
  const option = unit.enablement === 'masked-runtime' ? '--runtime ' : '';
  return { code: 'unit_masked', message: `${unit.id} is masked; unmask it with: systemctl unmask ${option}${unit.id}` };
}

/** A file that is written goes before masks elsewhere, and an empty one that counts as a mask is written anew. */
function isMasked(unit: Unit, file: PathFact | null): boolean {
  if (file?.type === 'symlink') return file.target === '/dev/null';
  return file?.type !== 'file' && unit.load === 'masked';
}

/** States of unit files that no command of systemd changes. */
const FIXED: Readonly<Record<string, string>> = {
  static: 'has no [Install] section, so it cannot be enabled; what needs it starts it',
  alias: 'is another name of a unit; enable that one',
  transient: 'was made by a program while the machine runs and has no unit file, so it cannot be enabled',
};

function unsuitable(want: ServiceBody, unit: Unit): CommandRefusal | null {
  const refused = (why: string): CommandRefusal => ({ code: 'unit_unsuitable', message: `${unit.id} ${why}` });
  if (want.exec_start != null) return null;
  if (want.enabled != null && unit.enablement === 'generated') {
    return refused(
      'is made anew at each boot, as from an init script or a mount; leave enabled out, and use a script for it',
    );
  }
  const fixed = want.enabled === true ? FIXED[unit.enablement] : undefined;
  if (fixed !== undefined) return refused(fixed);
  const isOver = unit.type === 'oneshot' && !unit.remainsAfterExit && !isUp(unit);
  if (want.running === true && isOver) {
    return refused('ends when its work is done (Type=oneshot), so it cannot be kept running; leave running out');
  }
  return null;
}
