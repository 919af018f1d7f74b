/** Plans masks of systemd units: a masked unit cannot be started, by hand or by other units. */
import type { BodyProblem, Decision, FieldChange } from '../kind.js';
import type { ServiceBody } from '../service-systemd.js';
import type { SeenUnit } from './systemd-plan.js';
import { unitStep } from './systemd-steps.js';
import { isDown, isUp, stateOf, type Unit } from './systemd-unit.js';
import { unitPath } from './systemd-unit-file.js';

/** Fields that say nothing about a unit that cannot be started. */
const EXCLUDED = ['enabled', 'exec_start', 'reload_on', 'restart_on'] as const;

/** Returns the fields that a masked unit cannot have. */
export function checkMask(body: ServiceBody): readonly BodyProblem[] {
  if (body.masked !== true) return [];
  const excluded = EXCLUDED.filter((field) => body[field] != null).map((field) => ({
    path: `/${field}`,
    message: `a masked unit cannot be started, so ${field} has no meaning for it`,
  }));
  if (body.running !== true) return excluded;
  return [
    ...excluded,
    { path: '/running', message: 'a masked unit cannot be started; write running: false, or leave it out' },
  ];
}

/** True for a mask that stays over the next boot. */
const isMasked = ({ enablement }: Unit): boolean => enablement === 'masked';

export const isMaskedInAnyWay = (unit: Unit): boolean => unit.load === 'masked' || unit.enablement.startsWith('masked');

/** Plans a unit that is to be masked, and stopped if the body says so. It need not exist. */
export function planMask(want: ServiceBody, { unit, isOwn, place }: SeenUnit): Decision {
  if (isOwn) {
    const message = `the agent runs in ${unit.id}, and a masked unit cannot be started again; leave masked out`;
    return { action: 'fail', code: 'unit_unsuitable', message };
  }
  const path = unitPath(want.name);
  if (!isMasked(unit) && place !== undefined && place.type !== 'absent') {
    const message = `${unit.id} has its file at ${path}, where its mask would be; remove that first, such as with absent: {file-unix: {path: ${path}}}`;
    return { action: 'fail', code: 'unit_unsuitable', message };
  }
  const stops = want.running === false && !isDown(unit);
  const changes: FieldChange[] = [
    ...(stops ? [{ field: 'running', before: stateOf(unit), after: 'stopped' }] : []),
    ...(isMasked(unit) ? [] : [{ field: 'masked', before: unit.enablement || null, after: 'masked' }]),
  ];
  if (changes.length === 0) return { action: 'none' };
  const steps = [...(stops ? [unitStep('stop', unit.id)] : []), ...(isMasked(unit) ? [] : [unitStep('mask', unit.id)])];
  return { action: unit.load === 'not-found' ? 'create' : 'update', changes, steps };
}

/** Plans a unit that is masked and is not to be. What it is without its mask is seen only then. */
export function planUnmask({ enabled, running }: ServiceBody, { unit }: SeenUnit): Decision {
  const isRuntime = unit.enablement === 'masked-runtime';
  const changes: FieldChange[] = [{ field: 'masked', before: unit.enablement || 'masked', after: 'unmasked' }];
  const steps = [unitStep('unmask', unit.id, ...(isRuntime ? ['--runtime'] : []))];
  if (enabled != null) {
    changes.push({ field: 'enabled', before: null, after: enabled ? 'enabled' : 'disabled' });
    steps.push(unitStep(enabled ? 'enable' : 'disable', unit.id));
  }
  if (running === true && !isUp(unit)) {
    changes.push({ field: 'running', before: stateOf(unit), after: 'running' });
    steps.push(unitStep('start', unit.id));
  }
  if (running === false && !isDown(unit)) {
    changes.push({ field: 'running', before: stateOf(unit), after: 'stopped' });
    steps.push(unitStep('stop', unit.id));
  }
  return { action: 'update', changes, steps };
}

/** Plans the removal of a mask; nothing else was there. */
export const planMaskRemoval = ({ unit }: SeenUnit): Decision =>
  isMasked(unit) ? { action: 'remove', changes: [], steps: [unitStep('unmask', unit.id)] } : { action: 'none' };
