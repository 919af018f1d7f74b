/** Plans: compute the changes an apply would make on an agent. Only the audit event is stored. */

import type { RunResult } from '../../../src/contract/runs.js';
import { toSeconds } from '../../../src/kernel/clock.js';
import { isFault } from '../../../src/kernel/fault.js';
import { pendingChecks } from '../../../src/resources/checks/check.js';
import { isPurge } from '../../../src/resources/purge.js';
import { type ResourceResult, summarize } from '../../../src/resources/result.js';
import type { Core } from '../../core/core.js';
import { eventOfRequest, type RequestContext } from '../../core/domain-event.js';
import { agentParty } from '../../fleet/agent-store.js';
import { type AgentSecrets, noteSecretUse } from '../agent-secrets.js';
import { type SentModule, sentNote } from '../modules/current-modules.js';
import { restoresMetadata, wantedText } from '../operations/apply-events.js';
import {
  type AgentGate,
  type AgentWithInputs,
  agentLabel,
  agentWithInputs,
  approvedAgent,
  type KnownAgent,
} from '../runs/agent-gate.js';
import type { AgentSessions } from '../runs/agent-sessions.js';
import type { Leases } from '../runs/leases.js';
import { Observation, type Observations, type Observed, underLease } from '../runs/observations.js';
import { runContent } from '../runs/run-content.js';
import { changedSecretNotes, secretsOfRows } from '../state/applied-secrets.js';
import { endedTrial, triedSources } from '../state/trials.js';
import { oneOffNote, refuseUnconcerned } from '../values/one-off-request.js';
import type { GivenOneOff } from '../values/one-off-store.js';
import { type ApplyWindows, refuseOutsideWindow } from './apply-windows.js';
import type { DesiredSet, DesiredSets } from './desired-set.js';
import type { ApplyTarget } from './earlier-content.js';
import type { RemovalGuard } from './removal-guard.js';

interface PlansOptions extends Pick<Core, 'clock' | 'db' | 'newId' | 'uow'> {
  readonly gate: AgentGate;
  readonly guard: RemovalGuard;
  readonly windows: ApplyWindows;
  readonly leases: Leases;
  readonly desiredSets: DesiredSets;
  readonly observations: Observations;
  readonly secrets: AgentSecrets;
  readonly sessions: AgentSessions;
}

interface PlanRequest {
  readonly nodeId: string;
  /** Modules beside those of assignments; empty with `to`. */
  readonly modules: readonly string[];
  /** The earlier content to bring back in place of modules; null for modules. */
  readonly to?: ApplyTarget | null;
  /** Modules whose texts came with the request. */
  readonly sent?: readonly SentModule[];
  /** Values that the request brings with it; null for none, and with `to`. */
  readonly oneOff?: GivenOneOff | null;
  /** True for a plan of a rollout, whose values may concern only other agents. */
  readonly isOfRollout?: boolean;
  readonly signal: AbortSignal;
  /** Called once all checks have passed, just before the agent starts. */
  readonly onStarted: () => void;
  /** Called with each result as it arrives. */
  readonly onResult: (result: ResourceResult) => void;
}

export class Plans {
  private readonly options: PlansOptions;

  constructor(options: PlansOptions) {
    this.options = options;
  }

  /**
   * Runs a plan and returns its result. Throws the faults of `AgentGate.pass`, of module resolution or of
   * `DesiredSets.earlier`, and `operation_in_progress`. Throws `cancelled` when an apply starts, `agent_not_connected` when the connection is lost, and
   * `agent_timeout`.
   */
  async plan(request: PlanRequest, context: RequestContext): Promise<RunResult> {
    const { db, clock, gate, leases, desiredSets, observations, sessions } = this.options;
    const agent = await gate.pass(request.nodeId);
    return underLease({ kind: 'plan', nodeId: agent.nodeId, leases, signal: request.signal }, async (signal) => {
      const startedAt = clock.now();
      const { to = null, modules, sent = [], oneOff = null } = request;
      // An apply may have ended while this plan waited for the lease.
      const now = await agentWithInputs(db, agent.nodeId);
      const desired =
        to === null
          ? await desiredSets.of(db, now.inputs, { named: modules, sent, oneOff, asksPackages: true })
          : await desiredSets.earlier(db, now, to);
      if (request.isOfRollout !== true) refuseUnconcerned(now, desired, oneOff);
      if (desired.encoded.files.length > 0) sessions.require(agent, 'files');
      if (desired.resources.some(isPurge)) sessions.require(agent, 'purge');
      const noted = changedSecretNotes(
        secretsOfRows(desired.managed),
        new Map(Object.entries(desired.content.secrets)),
      );
      const onResult = (result: ResourceResult) => request.onResult(noted(result));
      const observation = this.observation(agent, desired, onResult);
      await this.audit(agent, desired, sent, context);
      request.onStarted();
      for (const failure of desired.content.failures) request.onResult(failure);
      const found = await observations.run(observation, signal);
      const observed = { ...found, results: [...found.results.map(noted), ...desired.content.failures] };
      const tried = await triedSources(db, now.row.trial_operation_id);
      const endsTrial = endedTrial(
        tried,
        to === null ? sent : await triedSources(db, typeof to === 'string' ? to : null),
      );
      const refusals = await this.refusals(now, desired, observed.results);
      return planResult({ agent, desired, endsTrial, refusals, observed, startedAt, finishedAt: clock.now() });
    });
  }

  private observation({ nodeId }: KnownAgent, desired: DesiredSet, onResult: PlanRequest['onResult']): Observation {
    const runId = this.options.newId();
    // Secrets are longer than their masks.
    const size = Object.keys(desired.content.secrets).length === 0 ? desired.encoded.json.length : null;
    return new Observation({
      runId,
      nodeId,
      mode: 'plan',
      content: { ...runContent(desired), verify: [] },
      size,
      onResult,
    });
  }

  /** Returns why an apply without consent would be refused now, so that a caller knows it before it asks. */
  private async refusals(
    agent: AgentWithInputs,
    desired: DesiredSet,
    results: readonly ResourceResult[],
  ): Promise<readonly Refusal[]> {
    const { guard, windows } = this.options;
    const checks = [
      async () => refuseOutsideWindow(windows, desired.matching),
      async () => guard.check(agent, desired, null),
      async () => guard.checkPurges(results),
    ];
    const found: Refusal[] = [];
    for (const check of checks) {
      try {
        await check();
      } catch (error) {
        if (!isFault(error)) throw error;
        const { code, message, hint = null, data } = error;
        const allowed = data?.allow_removals;
        found.push({ code, message, hint, ...(typeof allowed === 'number' && { allow_removals: allowed }) });
      }
    }
    return found;
  }

  /** Emits the audit event before anything is sent, because a plan already runs check scripts on the machine. */
  private async audit(
    known: KnownAgent,
    desired: DesiredSet,
    sent: readonly SentModule[],
    context: RequestContext,
  ): Promise<void> {
    const { uow, secrets } = this.options;
    const { names, restores } = desired;
    const { suffix, metadata } = sentNote(sent);
    const own = oneOffNote(desired.valueInputs);
    await uow.write(async (tx, emit) => {
      const agent = await approvedAgent(tx, known.nodeId);
      emit(
        eventOfRequest(context, {
          type: 'state.planned',
          target: agentParty(agent.row),
          summary: `${context.actor.name} planned ${wantedText({ modules: names, restores })} on ${agentLabel(agent)}${suffix}${own.suffix}`,
          metadata: { modules: [...names], ...restoresMetadata(restores), ...metadata, ...own.metadata },
        }),
      );
      const use = {
        names: Object.keys(desired.content.secrets),
        purpose: 'a plan',
        metadata: { request_id: context.requestId },
      };
      await noteSecretUse({ tx, emit, secrets }, { agent, actor: context.actor, ...use });
    });
  }
}

type Refusal = NonNullable<RunResult['refusals']>[number];

interface Planned {
  readonly agent: KnownAgent;
  readonly desired: DesiredSet;
  /** Modules whose trial an apply of this would end. */
  readonly endsTrial: readonly string[];
  readonly refusals: readonly Refusal[];
  readonly observed: Observed;
  /** Unix milliseconds. */
  readonly startedAt: number;
  /** Unix milliseconds. */
  readonly finishedAt: number;
}

function planResult({ agent, desired, endsTrial, refusals, observed, startedAt, finishedAt }: Planned): RunResult {
  const { results, end, error } = observed;
  const confirmSecs = desired.modules.flatMap(({ compiled }) => compiled.confirmSecs ?? []);
  return {
    operation_id: null,
    node_id: agent.nodeId,
    status: end === 'succeeded' && desired.content.failures.length === 0 ? 'succeeded' : 'failed',
    has_changes: results.some(({ status }) => status === 'pending'),
    modules: [...desired.names],
    started_at: toSeconds(startedAt),
    finished_at: toSeconds(finishedAt),
    summary: {
      ...summarize(results),
      total: desired.resources.length + desired.removals.length + desired.content.failures.length,
    },
    resources: [...results],
    ...(desired.verify.length > 0 && { checks: pendingChecks(desired.verify) }),
    warnings: desired.warnings,
    plan_hash: observed.observed === null ? null : planHash(desired.encoded.sha256, observed.observed),
    error,
    ...earlierMembers(desired),
    ...(desired.valueInputs.length === 0 ? {} : { value_inputs: [...desired.valueInputs] }),
    ...(refusals.length === 0 ? {} : { refusals: [...refusals] }),
    ...(endsTrial.length === 0 ? {} : { ends_trial: [...endsTrial] }),
    ...(confirmSecs.length === 0 ? {} : { confirm_secs: Math.min(...confirmSecs) }),
  };
}

/** Returns the members of a result about an earlier desired state, and remarks. */
export const earlierMembers = ({
  restores,
  notes,
}: Pick<DesiredSet, 'restores' | 'notes'>): Pick<RunResult, 'restores' | 'notes'> =>
  restores !== null ? { restores, notes: [...notes] } : notes.length > 0 ? { notes: [...notes] } : {};

/** Returns the hash of a plan: of the content that an apply would store, and of what the agent observed. */
const planHash = (desired: string, observed: string): string => `${desired}.${observed}`;

/** Splits a plan hash, whose form the contract's pattern has already checked. */
export function splitPlanHash(hash: string): { readonly desired: string; readonly observed: string } {
  const [desired = '', observed = ''] = hash.split('.');
  return { desired, observed };
}
