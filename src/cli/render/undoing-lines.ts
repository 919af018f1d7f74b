/** Renders what an apply with a confirmation could restore, and what it has restored. */
import type { RunResult } from '../../contract/runs.js';
import { WITH_CONTENT } from '../../resources/absence-name.js';
import { type Restored, whyNotRestorable } from '../../resources/restored.js';
import { count } from '../format.js';
import { type Line, styled } from '../outcome.js';
import { resourceName } from './plan-lines.js';

/** Maximum number of named resources; the rest is counted. */
const NAMED = 10;

/**
 * Renders the confirmation of a plan, and which of its changes the agent could not restore.
 * @param asked seconds that the operator gave; null for those of the modules
 */
export function confirmLines({ resources, confirm_secs }: RunResult, asked: number | null): readonly Line[] {
  const known = [asked, confirm_secs ?? null].filter((secs) => secs !== null);
  const changing = resources.filter(({ status }) => status === 'pending');
  if (known.length === 0 || changing.length === 0) return [];
  const lasting = changing.filter(
    ({ kind, action, reason }) =>
      action !== 'release' && (whyNotRestorable(kind) !== null || reason?.startsWith(WITH_CONTENT) === true),
  );
  return [
    [
      styled('accent', '  confirm: '),
      `undone unless it succeeds and the machine comes back within ${Math.min(...known)} s after it`,
    ],
    ...(lasting.length === 0 ? [] : [[styled('warn', '  not restorable: '), namesOf(lasting.map(resourceName))]]),
  ];
}

/** Renders what the agent has restored; nothing for an apply that it has not undone. */
export function restoredLines({ restored }: { readonly restored?: Restored | null }): readonly Line[] {
  if (restored == null) return [];
  const back = restored.resources.filter(({ reason }) => reason === null);
  const left = restored.resources.filter(({ reason }) => reason !== null);
  const named = back.length === 0 ? '' : `: ${namesOf(back.map(resourceName), restored.restored)}`;
  return [
    [styled('accent', '  restored: '), `${count(restored.restored, 'resource')}${named}`],
    ...left
      .slice(0, NAMED)
      .map((one): Line => [styled('warn', '  not restored: '), `${resourceName(one)} (${one.reason})`]),
    ...(restored.not_restored > NAMED
      ? [[styled('warn', '  not restored: '), `${restored.not_restored - NAMED} more`]]
      : []),
  ];
}

function namesOf(names: readonly string[], total = names.length): string {
  const shown = names.slice(0, NAMED);
  return `${shown.join(', ')}${total > shown.length ? ` and ${total - shown.length} more` : ''}`;
}
