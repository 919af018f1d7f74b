/** Plans timers of systemd: both unit files, whether the timer starts at boot, and whether it runs. */
import type { CommandRefusal } from '../command.js';
import type { PathFact, Step } from '../host.js';
import type { Decision, FieldChange, PlanContext } from '../kind.js';
import { compareServiceFile, refusalOfPlace, type ServiceFileDifference } from './service-file.js';
import { forgetFailure, RELOAD_UNIT_FILES, seeActive, unitStep } from './systemd-steps.js';
import type { TimerBody } from './systemd-timer-body.js';
import { timerServiceText, timerText } from './systemd-timer-files.js';
import { failureOf, isDown, isUp, stateOf, type Unit } from './systemd-unit.js';
import { isOurs, unitPath } from './systemd-unit-file.js';

/** A unit in systemd, and the file at the path where orch writes its unit file. */
interface Part {
  readonly unit: Unit;
  readonly file: PathFact;
}

export interface SeenTimer {
  readonly timer: Part;
  readonly service: Part;
  /** True when the service is the one that the agent runs in. */
  readonly isOwn: boolean;
  /** Unit file of a package with the name of one of the two; null for none. */
  readonly packaged: string | null;
  /** What systemd says about the calendar; null when it takes it. */
  readonly calendar: string | null;
}

/** Returns the names of both units. */
export const timerUnits = (name: string): readonly [string, string] => [`${name}.timer`, `${name}.service`];

export function planTimer(want: TimerBody, have: SeenTimer, context: PlanContext): Decision {
  const [timerName, serviceName] = timerUnits(want.name);
  const refusal = refusalOf(want, have, context);
  if (refusal !== null) return { action: 'fail', ...refusal };
  const { timer, service } = have;
  const parts = [
    { part: timer, difference: compare('timer', timerName, timerText(want), timer.file, context) },
    { part: service, difference: compare('service', serviceName, timerServiceText(want), service.file, context) },
  ];
  const [ofTimer, ofService] = parts.map(({ difference }) => difference) as [
    ServiceFileDifference,
    ServiceFileDifference,
  ];
  const isReplaced = ofTimer.isReplaced || ofService.isReplaced;
  // Not read since it was written: after an interrupted run, or because a drop-in was edited.
  const isUnread = parts.some(({ part: { unit } }) => unit.isStale || !unit.path.startsWith('/etc/'));
  const isNew = timer.file.type === 'absent' && timer.unit.load === 'not-found';
  const isEnabled = timer.unit.enablement === 'enabled';
  const isRestarted = isUp(timer.unit) && (ofTimer.isReplaced || context.due.has('restart_on'));
  const verbs = [
    ...(isEnabled ? [] : (['enable'] as const)),
    ...(isUp(timer.unit) ? (isRestarted ? (['restart'] as const) : []) : (['start'] as const)),
  ];
  const changes: FieldChange[] = [
    ...ofTimer.changes,
    ...ofService.changes,
    ...(isUnread && !isReplaced ? [{ field: 'daemon_reload', before: 'needed', after: 'done' }] : []),
    ...(isEnabled
      ? []
      : [{ field: 'enabled', before: isNew ? null : timer.unit.enablement || 'disabled', after: 'enabled' }]),
    ...(isUp(timer.unit) ? [] : [{ field: 'running', before: isNew ? null : stateOf(timer.unit), after: 'running' }]),
  ];
  const steps: Step[] = [
    ...ofService.steps,
    ...ofTimer.steps,
    ...(isReplaced || isUnread ? [RELOAD_UNIT_FILES] : []),
    ...verbs.map((verb) => unitStep(verb, timerName)),
    ...(verbs.some((verb) => verb !== 'enable') ? [seeActive(timerName)] : []),
  ];
  if (steps.length === 0) return { action: 'none' };
  const failure = failureOf(timer.unit);
  const text = textOf(parts.map(({ part, difference }) => ({ ...difference, file: part.file })));
  return {
    action: isNew ? 'create' : changes.length > 0 ? 'update' : 'restart',
    changes,
    ...(text === null ? {} : { text }),
    steps,
    ...(failure === null ? {} : { reason: failure }),
    ...(isRestarted && ofTimer.isReplaced ? { owes: 'restart_on' as const } : {}),
  };
}

/** Compares one of the files; changes of its owner and mode are named after it. */
function compare(
  field: 'timer' | 'service',
  unit: string,
  text: string,
  file: PathFact,
  context: PlanContext,
): ServiceFileDifference {
  const difference = compareServiceFile({ field, path: unitPath(unit), text, group: 'root' }, file, context);
  const changes = difference.changes.map((change) =>
    change.field === field ? change : { ...change, field: `${field}_${change.field}` },
  );
  return { ...difference, changes };
}

/** Returns the texts of the replaced files, one below the other; null when none is. */
function textOf(
  files: readonly (ServiceFileDifference & { readonly file: PathFact })[],
): { readonly before: string | null; readonly after: string } | null {
  const texts = files.flatMap(({ text }) => text ?? []);
  if (texts.length === 0) return null;
  const before = texts.flatMap((text) => text.before ?? []);
  return {
    before: before.length === 0 ? null : before.join('\n'),
    after: texts.map((text) => text.after).join('\n'),
  };
}

/** Returns why a timer cannot reach the desired state, before anything is tried, or null. */
function refusalOf(want: TimerBody, have: SeenTimer, context: PlanContext): CommandRefusal | null {
  const { name, user } = want;
  if (have.isOwn) {
    const message = `the agent runs in ${name}.service; give the timer another name`;
    return { code: 'unit_unsuitable', message };
  }
  if (have.packaged !== null) {
    const message = `${have.packaged} is the unit of a package; give the timer another name`;
    return { code: 'unit_unsuitable', message };
  }
  for (const [at, { file, unit }] of [have.timer, have.service].entries()) {
    const path = unitPath(timerUnits(name)[at] ?? name);
    const refusal = refusalOfPlace(path, file);
    if (refusal !== null) return refusal;
    const isMasked = file.type === 'symlink' ? file.target === '/dev/null' : unit.load === 'masked';
    if (isMasked) {
      return { code: 'unit_masked', message: `${unit.id} is masked; unmask it with: systemctl unmask ${unit.id}` };
    }
    if (
      unit.load === 'bad-setting' &&
      !unit.isStale &&
      isAsWanted(file, at === 0 ? timerText(want) : timerServiceText(want))
    ) {
      const message = `systemd does not take the unit file of ${unit.id}: ${unit.loadError}`;
      return { code: 'service_failed', message };
    }
  }
  if (have.calendar !== null) {
    const message = `systemd does not take on_calendar "${want.on_calendar}" (${have.calendar}); "systemd-analyze calendar" shows what it makes of one`;
    return { code: 'value_unknown', message };
  }
  const { purpose, mayAppear, accounts, declares } = context;
  if (user == null || purpose === 'drift' || mayAppear) return null;
  if (accounts.uid(user) !== undefined || declares('user', user)) return null;
  return { code: 'unknown_owner', message: `there is no user "${user}" on this machine` };
}

const isAsWanted = (file: PathFact, text: string): boolean =>
  file.type === 'file' && file.content.kind === 'text' && file.content.text === text;

/** Plans a removal: stops both units, disables the timer, and deletes the files that orch wrote. */
export function planTimerRemoval({ name }: Pick<TimerBody, 'name'>, have: SeenTimer): Decision {
  const [timerName, serviceName] = timerUnits(name);
  const { timer, service } = have;
  if (have.isOwn || have.packaged !== null) return { action: 'none' };
  for (const { file } of [timer, service]) {
    if (file.type === 'unreadable') return { action: 'fail', code: file.code, message: file.message };
  }
  const written = (
    [
      [timerName, timer],
      [serviceName, service],
    ] as const
  ).filter(([, { file }]) => file.type === 'file' && file.content.kind === 'text' && isOurs(file.content.text));
  const isEnabled = ['enabled', 'enabled-runtime'].includes(timer.unit.enablement);
  const steps: Step[] = [
    ...(isDown(timer.unit) ? [] : [unitStep('stop', timerName)]),
    ...(isEnabled ? [unitStep('disable', timerName)] : []),
    ...(isDown(service.unit) ? [] : [unitStep('stop', serviceName)]),
    ...[timer, service].flatMap(({ unit }) => (unit.load === 'not-found' ? [] : [forgetFailure(unit.id)])),
    ...written.map(([unit]): Step => ({ do: 'remove-file', path: unitPath(unit) })),
    ...(written.length === 0 ? [] : [RELOAD_UNIT_FILES]),
  ];
  const isThere = written.length > 0 || isEnabled || !isDown(timer.unit) || !isDown(service.unit);
  return isThere ? { action: 'remove', changes: [], steps } : { action: 'none' };
}
