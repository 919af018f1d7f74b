/** Refuses an apply that would remove more than its operator probably means. */
import { NOTHING } from '../../../src/contract/run-targets.js';
import { purgedBy, purgedByAll, purgeGuardFault } from '../../../src/resources/purge.js';
import { guardReason, removalGuardFault, removesSomething } from '../../../src/resources/removal-guard.js';
import { keyText, resourceKey } from '../../../src/resources/resource-key.js';
import type { ResourceResult } from '../../../src/resources/result.js';
import type { Core } from '../../core/core.js';
import type { CurrentAssignments } from '../assignments/assignment-store.js';
import { removalCauses } from '../assignments/removal-causes.js';
import { findModuleHeads } from '../modules/module-store.js';
import { type AgentWithInputs, agentLabel } from '../runs/agent-gate.js';
import { type AppliedResourceRow, removalOf } from '../state/applied-resource-store.js';
import type { DesiredSet } from './desired-set.js';
import { emptiedByValues } from './emptied-loops.js';

interface RemovalGuardOptions extends Pick<Core, 'db'> {
  readonly assignments: CurrentAssignments;
  /** Returns the current number of removals that one apply may make without consent. */
  readonly limit: () => number;
}

export class RemovalGuard {
  private readonly options: RemovalGuardOptions;

  constructor(options: RemovalGuardOptions) {
    this.options = options;
  }

  /** Returns how many entries the purges of an apply may delete. @param allowed as for `check` */
  mayPurge(allowed: number | null): number {
    return Math.max(this.options.limit(), allowed ?? 0);
  }

  /** Throws `removal_guard` when the planned results delete more by purges than an apply without consent may. */
  checkPurges(results: readonly ResourceResult[]): void {
    const limit = this.mayPurge(null);
    const count = purgedByAll(results);
    if (count <= limit) return;
    throw purgeGuardFault(
      count,
      limit,
      results.flatMap((result) => (purgedBy(result) > 0 ? [result.identity] : [])),
    );
  }

  /**
   * Throws `removal_guard`.
   * @param allowed number of removals that the caller allows; null for the limit
   * @param isAttended false for an apply that no person has asked for
   */
  async check(agent: AgentWithInputs, desired: DesiredSet, allowed: number | null, isAttended = true): Promise<void> {
    const { db, assignments } = this.options;
    const limit = this.options.limit();
    const { managed, modules, restores, removedByFacts } = desired;
    const named = new Set(desired.names);
    const failed = new Set(desired.content.failures.map((result) => resourceKey(result)));
    const removed = desired.removed.filter((row) => !failed.has(keyText(row)));
    const isRemoved = (row: AppliedResourceRow) => removesSomething(removalOf(row));
    const emptied = restores === null ? emptiedByValues(modules, removed, desired.resources) : new Set();
    const reason = guardReason({
      removals: removed.map((row) => ({
        removes: isRemoved(row),
        adHoc: row.ad_hoc === 1 && !named.has(row.module),
        emptied: emptied.has(row),
        byFacts: !isAttended && removedByFacts.has(row),
      })),
      managed: managed.length,
      limit,
      allowed,
    });
    if (reason === null) return;
    const rows = removed.filter(isRemoved);
    const known = new Set(
      (await findModuleHeads(db, [...new Set(rows.map(({ module }) => module))])).map(({ name }) => name),
    );
    const causes =
      restores === null
        ? await removalCauses(db, { agent, removals: rows, modules, valueInputs: desired.valueInputs, assignments })
        : rows.map(() => (restores === NOTHING ? 'nothing is desired' : `operation ${restores} did not have it`));
    throw removalGuardFault({
      reason,
      agent: agentLabel(agent),
      limit,
      removals: rows.map((row, index) => ({
        module: row.module,
        kind: row.kind,
        identity: row.identity,
        cause: removedByFacts.get(row) ?? causes[index] ?? '',
        isLeftOut: restores === null && known.has(row.module) && !named.has(row.module),
      })),
      isLocal: false,
    });
  }
}
