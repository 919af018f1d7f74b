/** Plans services of launchd: property list, enablement, running state, and the launchctl commands for them. */

import type { CommandRefusal } from '../command.js';
import type { PathFact, RunStep, Step } from '../host.js';
import type { Decision, FieldChange, PlanContext } from '../kind.js';
import type { LaunchdBody } from '../service-launchd.js';
import { isDisabledByItself, isOurPlist, plistPath, plistText, systemPlistPath } from './launchd-plist.js';
import { compareServiceFile, NO_DIFFERENCE, refusalOfPlace, type ServiceFileDifference } from './service-file.js';

/** A service in launchd, and the file at the path where orch writes its property list. */
export interface Daemon {
  readonly file: PathFact;
  /** True when the system contains a property list of that name. */
  readonly isOfSystem: boolean;
  readonly isLoaded: boolean;
  readonly pid: number | null;
  /** Explicit enablement in launchd; null without one. */
  readonly isDisabled: boolean | null;
}

export function planLaunchd(want: LaunchdBody, have: Daemon, context: PlanContext): Decision {
  if (want.program_arguments == null && isNew(have)) return planMissing(want, context);
  const refusal = refusalOf(want, have);
  if (refusal) return { action: 'fail', ...refusal };
  const file = plistDifference(want, have, context);
  const enabling = enablingOf(want, have);
  const running = runningOf(want, have, file.isReplaced, context);
  const changes = [...file.changes, ...enabling.changes, ...running.changes];
  const steps = [...file.steps, ...enabling.steps, ...running.steps];
  if (steps.length === 0) return { action: 'none' };
  const action = changes.length === 0 ? 'restart' : isNew(have) ? 'create' : 'update';
  const owes = running.isOwed ? { owes: 'restart_on' as const } : {};
  return { action, changes, ...(file.text ? { text: file.text } : {}), steps, ...owes };
}

export function planLaunchdRemoval({ name }: LaunchdBody, { file, isLoaded, isDisabled }: Daemon): Decision {
  if (file.type === 'unreadable') return { action: 'fail', code: file.code, message: file.message };
  const isWritten = file.type === 'file' && file.content.kind === 'text' && isOurPlist(file.content.text);
  const steps: Step[] = isLoaded ? [bootout(name), waitUntilGone(name)] : [];
  if (isWritten) {
    // Without a property list nothing is loaded. A remaining disablement would block a later service of that label.
    if (isDisabled === true) steps.push(enable(name));
    steps.push({ do: 'remove-file', path: plistPath(name) });
  } else if (isDisabled !== true && (isLoaded || file.type !== 'absent')) {
    steps.push(disable(name));
  }
  return steps.length === 0 ? { action: 'none' } : { action: 'remove', changes: [], steps };
}

/** True when no service of that label exists. */
export const isNew = ({ file, isLoaded, isOfSystem }: Daemon): boolean =>
  file.type === 'absent' && !isLoaded && !isOfSystem;

/** Plans a missing service: an earlier resource may bring it, so every managed field is still to be done. */
function planMissing({ name, enabled, running }: LaunchdBody, context: PlanContext): Decision {
  const isDeclared = context.purpose === 'plan' && context.declares('path', plistPath(name));
  if (!context.mayAppear && !isDeclared) {
    const message = `there is no ${plistPath(name)}; give program_arguments, or declare what brings it before`;
    return { action: 'fail', code: 'unit_missing', message };
  }
  const changes: FieldChange[] = [];
  if (enabled != null) changes.push({ field: 'enabled', before: null, after: enabled ? 'enabled' : 'disabled' });
  if (running != null) changes.push({ field: 'running', before: null, after: running ? 'running' : 'stopped' });
  const reason = `there is no service ${name} yet; something that is changed before has to bring it`;
  return { action: 'update', changes, steps: [], reason };
}

function refusalOf(want: LaunchdBody, have: Daemon): CommandRefusal | null {
  const refusal = want.program_arguments == null ? null : refusalOfPlace(plistPath(want.name), have.file);
  if (refusal) return refusal;
  if (want.running === true && want.enabled == null && !have.isLoaded && !isEnabled(want, have)) {
    const message = `${want.name} is disabled, and launchd loads no service that is; set enabled: true`;
    return { code: 'unit_unsuitable', message };
  }
  return null;
}

function plistDifference(want: LaunchdBody, { file }: Daemon, context: PlanContext): ServiceFileDifference {
  if (want.program_arguments == null) return NO_DIFFERENCE;
  const service = { field: 'property_list', path: plistPath(want.name), text: plistText(want), group: 'wheel' };
  return compareServiceFile(service, file, context);
}

interface Part {
  readonly changes: readonly FieldChange[];
  readonly steps: readonly Step[];
}

const NOTHING: Part = { changes: [], steps: [] };

/** Returns the enablement; the explicit one overrides the property list. */
function isEnabled(want: LaunchdBody, { file, isDisabled }: Daemon): boolean {
  if (isDisabled !== null) return !isDisabled;
  if (want.program_arguments != null) return true;
  return !(file.type === 'file' && file.content.kind === 'text' && isDisabledByItself(file.content.text));
}

function enablingOf(want: LaunchdBody, have: Daemon): Part {
  const is = isEnabled(want, have);
  if (want.enabled == null || want.enabled === is) return NOTHING;
  const [before, after] = is ? ['enabled', 'disabled'] : ['disabled', 'enabled'];
  return { changes: [{ field: 'enabled', before, after }], steps: [is ? disable(want.name) : enable(want.name)] };
}

interface Running extends Part {
  /** True when a changed property list causes a restart. */
  readonly isOwed: boolean;
}

function runningOf(want: LaunchdBody, have: Daemon, isReplaced: boolean, { due }: PlanContext): Running {
  const { name } = want;
  const still = { ...NOTHING, isOwed: false };
  const isUp = have.pid !== null;
  const before = isNew(have) ? null : isUp ? 'running' : have.isLoaded ? 'loaded, not running' : 'stopped';
  const change = (after: string): readonly FieldChange[] =>
    before === after ? [] : [{ field: 'running', before, after }];
  const out = [bootout(name), waitUntilGone(name)];
  if (want.running === false) {
    return isUp || (have.isLoaded && isReplaced) ? { ...still, changes: change('stopped'), steps: out } : still;
  }
  const isDue = due.has('restart_on') && isUp;
  // One command, because a run that stops between two would leave the service unloaded.
  if (want.running !== true) return isDue ? { ...still, steps: [restart(name)] } : still;
  const isOfSystem = want.program_arguments == null && have.file.type === 'absent';
  const load = [bootstrap(isOfSystem ? systemPlistPath(name) : plistPath(name)), kickstart(name)];
  if (!have.isLoaded) return { ...still, changes: change('running'), steps: load };
  // A loaded service keeps the property list of its load. Only an enabled service can be loaded again.
  if ((isReplaced || isDue) && !isOfSystem && (isEnabled(want, have) || want.enabled === true)) {
    return { changes: change('running'), steps: [...out, ...load], isOwed: isReplaced };
  }
  if (!isUp) return { ...still, changes: change('running'), steps: [kickstart(name)] };
  return isReplaced || isDue ? { ...still, steps: [restart(name)] } : still;
}

const run = (...args: readonly string[]): RunStep => ({ do: 'run', command: { argv: ['launchctl', ...args] } });

/** Enables a service; launchd stores this apart from the property list. */
const enable = (name: string): RunStep => run('enable', `system/${name}`);
const disable = (name: string): RunStep => run('disable', `system/${name}`);
const bootstrap = (path: string): RunStep => run('bootstrap', 'system', path);

/** Unloads a service; accepts ESRCH (not loaded) and EINPROGRESS (being unloaded). */
const bootout = (name: string): RunStep => ({ ...run('bootout', `system/${name}`), ok: [0, 3, 36] });

/** Starts a service; accepts EALREADY, because the load may have started it. */
const kickstart = (name: string): RunStep => ({ ...run('kickstart', `system/${name}`), ok: [0, 37] });

/** Ends the process of a service and starts it again. */
const restart = (name: string): RunStep => run('kickstart', '-k', `system/${name}`);

/** Waits for the end of an unload: `bootout` returns earlier, and until then a `bootstrap` of the label fails. */
export const waitUntilGone = (name: string): RunStep => ({
  do: 'run',
  command: { argv: ['/bin/sh', '-s', '--', `system/${name}`], input: WAIT },
});

const WAIT = `tries=0
while launchctl print "$1" >/dev/null 2>&1; do
  tries=$((tries + 1))
  if [ "$tries" -gt 60 ]; then
    echo "launchd has not let go of $1 after 60 seconds" >&2
    exit 1
  fi
  sleep 1
done
`;
