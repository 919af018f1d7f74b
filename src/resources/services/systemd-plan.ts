/** What has to be done about a unit: its file, whether it starts at boot, whether it runs, and what triggers ask for. */
import type { Step } from '../host.js';
import type { Decision, FieldChange, PlanContext } from '../kind.js';
import { missing, refusalOf, type SeenUnit } from './systemd-refusal.js';
import type { ServiceBody } from './systemd-service-body.js';
import { RELOAD_UNIT_FILES, SETTLE, seeActive, unitStep } from './systemd-steps.js';
import { isDown, isUp, isWaiting, stateOf, troubleOf, type Unit } from './systemd-unit.js';
import { type UnitFileDifference, unitFileDifference } from './systemd-unit-difference.js';
import { unitPlaces } from './systemd-unit-file.js';
import { unitNameOf } from './systemd-unit-name.js';

export function planUnit(want: ServiceBody, have: SeenUnit, context: PlanContext): Decision {
  const { unit } = have;
  if (have.file === null && unit.load === 'not-found') return planMissing(want, unit, context);
  const refusal = refusalOf(want, have);
  if (refusal) return { action: 'fail', ...refusal };
  const file = unitFileDifference(want, have, context);
  const isBroken = ['bad-setting', 'error'].includes(unit.load);
  if (want.exec_start != null && isBroken && !file.isReplaced && !unit.isStale) {
    const message = `systemd does not take the unit file of ${unit.id}: ${unit.loadError}`;
    return { action: 'fail', code: 'service_failed', message };
  }
  return decide(want, unit, file, context);
}

/** In a plan, something that comes before may bring the unit; then all that is managed is still to be done. */
function planMissing({ name, enabled, running }: ServiceBody, unit: Unit, context: PlanContext): Decision {
  const isDeclared = context.purpose === 'plan' && unitPlaces(name).some((path) => context.declares('path', path));
  if (!context.mayAppear && !isDeclared) return { action: 'fail', ...missing(unit) };
  const changes: FieldChange[] = [];
  if (enabled != null) changes.push({ field: 'enabled', before: null, after: enabled ? 'enabled' : 'disabled' });
  if (running != null) changes.push({ field: 'running', before: null, after: running ? 'running' : 'stopped' });
  const reason = `there is no unit ${unit.id} yet; something that is changed before has to bring it`;
  return { action: 'update', changes, steps: [], reason };
}

function decide(want: ServiceBody, unit: Unit, file: UnitFileDifference, context: PlanContext): Decision {
  // Whatever name it was asked for by, commands take the name that it has.
  const name = want.exec_start == null ? unit.id : unitNameOf(want.name);
  const enabling = enablingOf(want, unit, file);
  const running = runningOf(want, unit, file, context);
  const changes = [...file.changes, ...enabling.changes, ...running.changes];
  const verbs = [...enabling.verbs, ...running.verbs];
  // What systemd has not read yet is read before the unit is touched; without a file of orch's, that alone is no change. A
  // trigger may have come from a drop-in, and systemd does not notice those in a directory that is new to it.
  const isUnread = unit.isStale || context.due.size > 0;
  const reloads = file.isReloaded || (isUnread && verbs.length > 0) ? [RELOAD_UNIT_FILES] : [];
  const steps: Step[] = [...file.steps, ...reloads, ...verbs.map((verb) => unitStep(verb, name))];
  if (running.endsUp) steps.push(...(hasToSettle(want, unit, running) ? [SETTLE] : []), seeActive(name));
  if (steps.length === 0) return { action: 'none' };
  const trouble = running.changes.length > 0 ? troubleOf(unit) : null;
  const answer = running.verbs.includes('try-restart') ? 'restart' : 'reload';
  const change = file.isNew ? 'create' : 'update';
  return {
    action: changes.length > 0 ? change : answer,
    changes,
    ...(file.text ? { text: file.text } : {}),
    steps,
    ...(trouble === null ? {} : { reason: trouble }),
    ...(running.isOwed ? { owes: 'restart_on' as const } : {}),
  };
}

/** True for what systemd calls started before it has said that it is ready. */
function hasToSettle(want: ServiceBody, unit: Unit, { verbs }: Part): boolean {
  const type = want.exec_start == null ? unit.type : (want.type ?? 'simple');
  return ['simple', 'exec', 'idle'].includes(type) && !verbs.includes('try-reload-or-restart');
}

type Verb = Parameters<typeof unitStep>[0];

interface Part {
  readonly changes: readonly FieldChange[];
  readonly verbs: readonly Verb[];
}

const NOTHING: Part = { changes: [], verbs: [] };

/** Enabled means that it starts at every boot, so what is enabled until the next one is not. */
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
  /** True when it has to be active after these steps. */
  readonly endsUp: boolean;
  /** True when a restart is the consequence of a changed unit file. */
  readonly isOwed: boolean;
}

function runningOf(want: ServiceBody, unit: Unit, file: UnitFileDifference, { due }: PlanContext): Running {
  const still = { ...NOTHING, endsUp: false, isOwed: false };
  const change = (after: string) => [{ field: 'running', before: file.isNew ? null : stateOf(unit), after }];
  if (want.running === true && !isUp(unit)) {
    return { ...still, changes: change('running'), verbs: [isWaiting(unit) ? 'restart' : 'start'], endsUp: true };
  }
  if (want.running === false && !isDown(unit)) return { ...still, changes: change('stopped'), verbs: ['stop'] };
  // What is down needs no restart, and what has just been started neither.
  if (isDown(unit)) return still;
  const isOwed = file.isReplaced && want.running === true;
  if (isOwed || due.has('restart_on') || (due.has('reload_on') && !unit.canReload)) {
    return { ...still, verbs: ['try-restart'], endsUp: isUp(unit), isOwed };
  }
  return due.has('reload_on') ? { ...still, verbs: ['try-reload-or-restart'], endsUp: isUp(unit) } : still;
}
