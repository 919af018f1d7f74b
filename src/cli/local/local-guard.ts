/** The removal guard of an orchestrator, for this machine. */
import { guardReason, removalGuardFault } from '../../resources/removal-guard.js';
import type { LocalDesired } from './local-desired.js';
import type { LocalSession } from './local-session.js';

/** What `removal_guard` of an orchestrator is unless it is set. */
const LIMIT = 10;

/** Throws `removal_guard`. Without assignments, every module counts as only named. */
export function guardRemovals({ state, agent }: LocalSession, desired: LocalDesired, allowed: number | null): void {
  const named = new Set(desired.modules);
  const reason = guardReason({
    removals: desired.removed.map(({ module, origin }) => ({
      created: origin === 'created',
      adHoc: !named.has(module),
    })),
    managed: state.applied.length,
    limit: LIMIT,
    allowed,
  });
  if (reason === null) return;
  const created = desired.removed.filter(({ origin }) => origin === 'created');
  throw removalGuardFault({
    reason,
    agent: agent.name ?? '',
    limit: LIMIT,
    removals: created.map(({ module, kind, identity }) => ({
      module,
      kind,
      identity,
      cause: named.has(module) ? `module ${module} does not declare it now` : `module ${module} is not named`,
    })),
  });
}
