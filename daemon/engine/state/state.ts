/** Reads the believed state of an agent, and what an apply of the same modules would add and remove. */

import type { State } from '../../../src/contract/operations.js';
import { toSeconds } from '../../../src/kernel/clock.js';
import { isFault } from '../../../src/kernel/fault.js';
import { keyText, resourceKey } from '../../../src/resources/resource-key.js';
import type { Core } from '../../core/core.js';
import type { DesiredSet, DesiredSets } from '../applies/desired-set.js';
import type { Lanes } from '../lanes.js';
import { findModuleHeads } from '../modules/module-store.js';
import { findOperation, type OperationRow } from '../operations/operation-store.js';
import { agentWithInputs, type KnownAgent, knownAgent } from '../runs/agent-gate.js';
import type { RunContents } from '../runs/run-contents.js';
import { type AppliedResourceRow, listAppliedResources, originOf } from './applied-resource-store.js';
import { trialOf } from './trials.js';

interface StateReaderOptions extends Pick<Core, 'db'> {
  readonly desiredSets: DesiredSets;
  readonly lanes: Lanes;
  readonly contents: RunContents;
}

export class StateReader {
  private readonly options: StateReaderOptions;

  constructor(options: StateReaderOptions) {
    this.options = options;
  }

  /** Returns the believed state. Throws `agent_not_found`. */
  async get(nodeId: string): Promise<State> {
    const { db, lanes } = this.options;
    const agent = await knownAgent(db, nodeId);
    const applied = await lanes.enter(agent.nodeId, () => listAppliedResources(db, agent.nodeId));
    const { state_operation_id, state_content_id } = agent.row;
    const last = state_operation_id === null ? null : await findOperation(db, state_operation_id);
    const desired = await this.desired(agent, last);
    const confirmed = state_content_id === null ? null : last;
    const believed = new Set(applied.map(keyText));
    const trial = await trialOf(db, agent.row.trial_operation_id);
    const missing = desired?.resources.filter((resource) => !believed.has(resourceKey(resource))) ?? [];
    return {
      node_id: agent.nodeId,
      operation_id: agent.row.state_operation_id,
      ...(last == null || last.restores === null ? {} : { restores: last.restores }),
      ...(last == null || last.value_inputs === null ? {} : { value_inputs: [...last.value_inputs] }),
      ...(trial === null ? {} : { trial }),
      applied: applied.map((row) => appliedView(row, confirmed)),
      pending_removals: (desired?.removed ?? []).map((row) => appliedView(row, confirmed)),
      unapplied: missing.map(({ module, kind, identity }) => ({ module, kind, identity })),
    };
  }

  /**
   * Returns the desired set of the current assignments and the ad-hoc modules of the last apply that still exist. Returns null
   * when it cannot be resolved.
   */
  private async desired({ nodeId }: KnownAgent, last: OperationRow | null): Promise<DesiredSet | null> {
    const { db, desiredSets, contents } = this.options;
    const names = last?.content_id == null ? [] : [...(await contents.get(db, last.content_id)).adHoc];
    const present = new Set((await findModuleHeads(db, names)).map(({ name }) => name));
    try {
      const { inputs } = await agentWithInputs(db, nodeId);
      return await desiredSets.of(db, inputs, { named: names.filter((name) => present.has(name)) });
    } catch (error) {
      if (isFault(error)) return null;
      throw error;
    }
  }
}

/** @param confirmed the apply that found every managed resource as it was, without writing its row; null if there is none */
function appliedView(row: AppliedResourceRow, confirmed: OperationRow | null): State['applied'][number] {
  const { module, kind, identity } = row;
  const at = confirmed?.finished_at ?? row.applied_at;
  const operation_id = confirmed?.operation_id ?? row.operation_id;
  return { module, kind, identity, applied_at: toSeconds(at), operation_id, origin: originOf(row) };
}
