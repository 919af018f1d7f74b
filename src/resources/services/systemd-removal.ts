/** What it takes to remove a unit that orch brought: stopped, disabled, and its file deleted if orch wrote it. */
import type { Step } from '../host.js';
import type { Decision } from '../kind.js';
import type { SeenUnit } from './systemd-refusal.js';
import type { ServiceBody } from './systemd-service-body.js';
import { forgetFailure, RELOAD_UNIT_FILES, unitStep } from './systemd-steps.js';
import { isDown, type Unit } from './systemd-unit.js';
import { isOurs, unitPath } from './systemd-unit-file.js';

export function planUnitRemoval(last: ServiceBody, { unit, file }: SeenUnit): Decision {
  if (file?.type === 'unreadable') return { action: 'fail', code: file.code, message: file.message };
  const isWritten = file?.type === 'file' && file.content.kind === 'text' && isOurs(file.content.text);
  const steps: Step[] = [];
  if (!isDown(unit)) steps.push(unitStep('stop', unit.id));
  if (isWritten || isEnabled(unit)) steps.push(unitStep('disable', unit.id));
  if (steps.length > 0) steps.push(forgetFailure(unit.id));
  if (isWritten) steps.push({ do: 'remove-file', path: unitPath(last.name) }, RELOAD_UNIT_FILES);
  return steps.length === 0 ? { action: 'none' } : { action: 'remove', changes: [], steps };
}

const isEnabled = ({ enablement }: Unit): boolean => ['enabled', 'enabled-runtime'].includes(enablement);
