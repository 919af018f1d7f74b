/** The removal guard of an orchestrator, for this machine. */
import { guardReason, removalGuardFault, removesSomething } from '../../resources/removal-guard.js';
import { resourceKey } from './believed-state.js';
import type { LocalDesired } from './local-desired.js';
import type { LocalSession } from './local-session.js';

/** What `removal_guard` of an orchestrator is unless it is set. */
const LIMIT = 10;

/** Throws `removal_guard`. Without assignments, every module counts as only named. */
export function guardRemovals({ state, agent }: LocalSession, desired: LocalDesired, allowed: number | null): void {
  const named = new Set(desired.modules);
  const failed = new Set(desired.failures.map(resourceKey));
  const removed = desired.removed.filter((one) => !failed.has(resourceKey(one)));
  const reason = guardReason({
    removals: removed.map((one) => ({ removes: removesSomething(one), adHoc: !named.has(one.module) })),
    managed: state.applied.length,
    limit: LIMIT,
    allowed,
  });
  if (reason === null) return;
  throw removalGuardFault({
    reason,
    agent: agent.name ?? '',
    limit: LIMIT,
    removals: removed.filter(removesSomething).map(({ module, kind, identity }) => ({
      module,
      kind,
      identity,
      cause: named.has(module) ? `module ${module} does not declare it now` : `module ${module} is not named`,
      isLeftOut: !named.has(module),
    })),
    isLocal: true,
  });
}
