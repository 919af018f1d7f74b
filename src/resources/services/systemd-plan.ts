/** Plans systemd units: unit file, enablement, running state, due triggers and removal, with the systemctl commands for them. */

import type { CommandRefusal } from '../command.js';
import type { PathFact, Step } from '../host.js';
import type { Decision, FieldChange, PlanContext } from '../kind.js';
import type { ServiceBody } from '../service-systemd.js';
import { compareServiceFile, NO_DIFFERENCE, refusalOfPlace, type ServiceFileDifference } from './service-file.js';
import { isMaskedInAnyWay, planMask, planMaskRemoval, planUnmask } from './systemd-mask.js';
import {
  forgetFailure,
  linkAgain,
  ownStep,
  RELOAD_UNIT_FILES,
  SETTLE,
  seeActive,
  unitStep,
  type Verb,
} from './systemd-steps.js';
import { failureOf, isDown, isUp, isWaiting, stateOf, type Unit } from './systemd-unit.js';
import { isOurs, unitFileText, unitNameOf, unitPath, unitPlaces } from './systemd-unit-file.js';

export function planUnit(want: ServiceBody, have: SeenUnit, context: PlanContext): Decision {
  const { unit } = have;
  if (want.masked === true) return planMask(want, have);
  if (want.masked === false && isMaskedInAnyWay(unit)) return planUnmask(want, have);
  if (have.file === null && unit.load === 'not-found') return planMissing(want, unit, context);
  const refusal = refusalOf(want, have);
  if (refusal) return { action: 'fail', ...refusal };
  const file = unitFileDifference(want, have, context);
  const isBroken = ['bad-setting', 'error'].includes(unit.load);
  if (want.exec_start != null && isBroken && !file.isReplaced && !unit.isStale) {
    const message = `systemd does not take the unit file of ${unit.id}: ${unit.loadError}`;
    return { action: 'fail', code: 'service_failed', message };
  }
  return decide(want, have, file, context);
}

/** Plans a missing unit: an earlier resource may bring it, so every managed field is still to be done. */
function planMissing({ name, enabled, running }: ServiceBody, unit: Unit, context: PlanContext): Decision {
  const isDeclared = context.purpose === 'plan' && unitPlaces(name).some((path) => context.declares('path', path));
  if (!context.mayAppear && !isDeclared) return { action: 'fail', ...missing(unit) };
  const changes: FieldChange[] = [];
  if (enabled != null) changes.push({ field: 'enabled', before: null, after: enabled ? 'enabled' : 'disabled' });
  if (running != null) changes.push({ field: 'running', before: null, after: running ? 'running' : 'stopped' });
  const reason = `there is no unit ${unit.id} yet; something that is changed before has to bring it`;
  return { action: 'update', changes, steps: [], reason };
}

function decide(
  want: ServiceBody,
  { unit, isOwn, linkedTo }: SeenUnit,
  file: UnitFileDifference,
  context: PlanContext,
): Decision {
  // Commands use the unit's own name, even if the body has an alias.
  const name = want.exec_start == null ? unit.id : unitNameOf(want.name);
  const enabling = enablingOf(want, unit, file);
  const running = runningOf(want, unit, file, context);
  const changes = [...file.changes, ...enabling.changes, ...running.changes];
  const verbs = [...enabling.verbs, ...running.verbs];
  // Unread files are loaded before the unit is changed; without a file of orch, that alone is no change. A
  // trigger may come from a drop-in, which systemd does not notice in a new directory.
  const isUnread = unit.isStale || context.due.size > 0;
  const reloads = file.isReloaded || (isUnread && verbs.length > 0) ? [RELOAD_UNIT_FILES] : [];
  const steps: Step[] = [
    ...file.steps,
    ...reloads,
    ...verbs.flatMap((verb): Step[] => [
      isOwn ? ownStep(verb, name) : unitStep(verb, name),
      ...(verb === 'disable' && linkedTo !== undefined ? [linkAgain(linkedTo)] : []),
    ]),
  ];
  const endsAgent = steps.some((step) => step.do === 'run' && step.isDeferred === true);
  if (running.endsActive && !endsAgent)
    steps.push(...(hasToSettle(want, unit, running) ? [SETTLE] : []), seeActive(name));
  if (steps.length === 0) return { action: 'none' };
  const failure = endsAgent ? AT_THE_END : running.changes.length > 0 ? failureOf(unit) : null;
  const answer = running.verbs.includes('try-restart') ? 'restart' : 'reload';
  const change = file.isNew ? 'create' : 'update';
  return {
    action: changes.length > 0 ? change : answer,
    changes,
    ...(file.text ? { text: file.text } : {}),
    steps,
    ...(failure === null ? {} : { reason: failure }),
    ...(running.isOwed ? { owes: 'restart_on' as const } : {}),
  };
}

/** True for types that systemd reports as started before they are ready. */
function hasToSettle(want: ServiceBody, unit: Unit, { verbs }: Part): boolean {
  const type = want.exec_start == null ? unit.type : (want.type ?? 'simple');
  return ['simple', 'exec', 'idle'].includes(type) && !verbs.includes('try-reload-or-restart');
}

interface Part {
  readonly changes: readonly FieldChange[];
  readonly verbs: readonly Verb[];
}

const NOTHING: Part = { changes: [], verbs: [] };

/** Plans the enablement: a unit must start at every boot, so `enabled-runtime` does not count. */
function enablingOf({ enabled }: ServiceBody, { enablement }: Unit, { isNew }: UnitFileDifference): Part {
  const isEnabled = enablement === 'enabled';
  if (enabled == null || enabled === isEnabled) return NOTHING;
  const before = isNew ? null : enablement || 'disabled';
  return {
    changes: [{ field: 'enabled', before, after: enabled ? 'enabled' : 'disabled' }],
    verbs: [enabled ? 'enable' : 'disable'],
  };
}

interface Running extends Part {
  /** True when the unit must be active after these steps. */
  readonly endsActive: boolean;
  /** True when a changed unit file causes a restart. */
  readonly isOwed: boolean;
}

function runningOf(want: ServiceBody, unit: Unit, file: UnitFileDifference, { due }: PlanContext): Running {
  const still = { ...NOTHING, endsActive: false, isOwed: false };
  const change = (after: string) => [{ field: 'running', before: file.isNew ? null : stateOf(unit), after }];
  if (want.running === true && !isUp(unit)) {
    return { ...still, changes: change('running'), verbs: [isWaiting(unit) ? 'restart' : 'start'], endsActive: true };
  }
  if (want.running === false && !isDown(unit)) return { ...still, changes: change('stopped'), verbs: ['stop'] };
  // A stopped unit needs no restart, and neither does one that was just started.
  if (isDown(unit)) return still;
  const isOwed = file.isReplaced && want.running === true;
  if (isOwed || due.has('restart_on') || (due.has('reload_on') && !unit.canReload)) {
    return { ...still, verbs: ['try-restart'], endsActive: isUp(unit), isOwed };
  }
  return due.has('reload_on') ? { ...still, verbs: ['try-reload-or-restart'], endsActive: isUp(unit) } : still;
}

/** A unit, and the file at the path where orch writes its unit file; null if it writes none. */
export interface SeenUnit {
  readonly unit: Unit;
  readonly file: PathFact | null;
  /** True when orch is to write the file. */
  readonly isWritten: boolean;
  /** True for the unit that the agent runs in. */
  readonly isOwn: boolean;
  /** Units through which alone it can be enabled. */
  readonly also?: readonly string[];
  /** Unit file elsewhere that the administrator has linked; `systemctl disable` would delete the link as well. */
  readonly linkedTo?: string;
  /** True when a package has a unit of this name, which the file that orch writes precedes. */
  readonly isOverPackage?: boolean;
  /** State of the path that a mask of the unit takes; not read unless the unit is to be masked. */
  readonly place?: PathFact;
}

/**
 * True if there is something that a removal must leave alone: a file where orch writes one, an instance with a state of its own, or
 * the unit. Any instance of a template that is there can be loaded, so that alone says nothing.
 */
export function unitExists({ unit, file, isWritten }: SeenUnit): boolean {
  if (isWritten) return file?.type !== 'absent';
  if (unit.load === 'not-found') return false;
  const isInstance = /@.+\./.test(unit.id) && !unit.path.endsWith(`/${unit.id}`);
  return !isInstance || unit.active !== 'inactive' || isEnabled(unit);
}

/** Returns why a unit cannot reach the desired state, before anything is tried, or null. */
function refusalOf(want: ServiceBody, have: SeenUnit): CommandRefusal | null {
  const { unit, file, isOwn } = have;
  if (isOwn && want.running === false) return ownRefusal(unit, 'cannot stop it', 'leave running out');
  return (
    (file === null ? null : refusalOfPlace(unitPath(want.name), file)) ??
    refusalOfMask(want, have) ??
    unsuitable(want, have)
  );
}

/** Refuses what would end the agent for good. */
const ownRefusal = ({ id }: Unit, what: string, remedy: string): CommandRefusal => ({
  code: 'unit_unsuitable',
  message: `the agent runs in ${id} and ${what}; ${remedy}`,
});

const missing = ({ id }: Unit): CommandRefusal => ({
  code: 'unit_missing',
  message: `there is no unit ${id} on this machine; give exec_start, or declare the package or the file that brings it before`,
});

/** Refuses a masked unit that should be enabled, started or written. */
function refusalOfMask(want: ServiceBody, { unit, file }: Pick<SeenUnit, 'unit' | 'file'>): CommandRefusal | null {
  if (!isMasked(unit, file)) return null;
  const isInTheWay = file !== null || want.enabled === true || (want.running === true && !isUp(unit));
  if (!isInTheWay) return null;
  const option = unit.enablement === 'masked-runtime' ? '--runtime ' : '';
  return { code: 'unit_masked', message: `${unit.id} is masked; unmask it with: systemctl unmask ${option}${unit.id}` };
}

/** True for a mask that orch does not override: its own file precedes masks elsewhere, and an empty file is rewritten. */
function isMasked(unit: Unit, file: PathFact | null): boolean {
  if (file?.type === 'symlink') return file.target === '/dev/null';
  return file?.type !== 'file' && unit.load === 'masked';
}

/** Enablement states that systemctl cannot change. */
const FIXED: Readonly<Record<string, string>> = {
  static: 'has no [Install] section, so it cannot be enabled; what needs it starts it',
  alias: 'is another name of a unit; enable that one',
  transient: 'was made by a program while the machine runs and has no unit file, so it cannot be enabled',
};

function unsuitable(want: ServiceBody, { unit, also = [] }: SeenUnit): CommandRefusal | null {
  const refused = (why: string): CommandRefusal => ({ code: 'unit_unsuitable', message: `${unit.id} ${why}` });
  if (want.exec_start != null) return null;
  if (want.enabled != null && also.length > 0) {
    return refused(
      `is only enabled through ${also.join(' and ')} (Also= in its [Install]); set enabled for that unit instead`,
    );
  }
  if (want.enabled != null && unit.enablement === 'generated') {
    return refused(
      'is generated at each boot, as from an init script or a mount; leave enabled out, and use a script for it',
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

/** The difference of the unit file from the present one, and from the one that systemd has read. */
interface UnitFileDifference extends ServiceFileDifference {
  /** True when the unit does not exist yet. */
  readonly isNew: boolean;
  /** True when systemd has to reload unit files. */
  readonly isReloaded: boolean;
}

/** Compares the unit file at a writable path. */
function unitFileDifference(want: ServiceBody, { unit, file }: SeenUnit, context: PlanContext): UnitFileDifference {
  if (want.exec_start == null || file === null) return { ...NO_DIFFERENCE, isNew: false, isReloaded: false };
  const path = unitPath(want.name);
  const service = { field: 'unit_file', path, text: unitFileText(want), group: 'root' };
  const difference = compareServiceFile(service, file, context);
  if (difference.isReplaced) {
    return { ...difference, isNew: unit.load === 'not-found' && file.type === 'absent', isReloaded: true };
  }
  // Not read since it was written: after an interrupted run, or because a drop-in was edited.
  const isReloaded = unit.isStale || unit.path !== path;
  const unread = isReloaded ? [{ field: 'daemon_reload', before: 'needed', after: 'done' }] : [];
  return { ...difference, changes: [...difference.changes, ...unread], isNew: false, isReloaded };
}

/**
 * Plans a removal: stops and disables the unit, and deletes its file if orch wrote it. A unit of a package that the file precedes
 * takes effect again instead.
 */
export function planUnitRemoval(last: ServiceBody, have: SeenUnit): Decision {
  const { unit, file, isOwn, isOverPackage } = have;
  if (last.masked === true) return planMaskRemoval(have);
  if (isOwn) return { action: 'fail', ...ownRefusal(unit, 'does not remove it', 'run there: orch agent uninstall') };
  if (file?.type === 'unreadable') return { action: 'fail', code: file.code, message: file.message };
  const isWritten = file?.type === 'file' && file.content.kind === 'text' && isOurs(file.content.text);
  const steps: Step[] = [];
  if (isOverPackage === true && !isWritten) return { action: 'none' };
  if (isOverPackage === true) {
    steps.push({ do: 'remove-file', path: unitPath(last.name) }, RELOAD_UNIT_FILES);
    // The links may lead to the file that is gone, and belong to another [Install] section.
    if (isEnabled(unit)) steps.push({ ...unitStep('reenable', unit.id), ok: [0, 1] });
    if (!isDown(unit)) steps.push(unitStep('try-restart', unit.id));
    return { action: 'remove', changes: [], steps, reason: 'the unit of the package takes effect again' };
  }
  if (!isDown(unit)) steps.push(unitStep('stop', unit.id));
  if (isWritten || isEnabled(unit)) steps.push(unitStep('disable', unit.id));
  if (steps.length > 0) steps.push(forgetFailure(unit.id));
  if (isWritten) steps.push({ do: 'remove-file', path: unitPath(last.name) }, RELOAD_UNIT_FILES);
  return steps.length === 0 ? { action: 'none' } : { action: 'remove', changes: [], steps };
}

const isEnabled = ({ enablement }: Unit): boolean => ['enabled', 'enabled-runtime'].includes(enablement);

const AT_THE_END = 'the agent restarts once the results of the apply are stored';
