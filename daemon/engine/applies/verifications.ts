/** Runs the health checks of an agent's last applied modules again, without an apply. */

import type { Verification } from '../../../src/contract/runs.js';
import { toSeconds } from '../../../src/kernel/clock.js';
import { Fault, isFault } from '../../../src/kernel/fault.js';
import { refusalOf, revive, secretsIn } from '../../../src/language/revive.js';
import { type DesiredCheck, verifyError } from '../../../src/resources/checks/check.js';
import type { Core } from '../../core/core.js';
import { eventOfRequest, type RequestContext, SYSTEM } from '../../core/domain-event.js';
import { agentParty } from '../../fleet/agent-store.js';
import { type AgentSecrets, noteSecretUse } from '../agent-secrets.js';
import { reportedChecks } from '../operations/operation-checks.js';
import type { OperationError } from '../operations/operation-error.js';
import { newestApplied, type OperationRow } from '../operations/operation-store.js';
import { type AgentGate, agentLabel, approvedAgent, type KnownAgent } from '../runs/agent-gate.js';
import type { AgentSessions } from '../runs/agent-sessions.js';
import type { Leases } from '../runs/leases.js';
import { Observation, type Observations, underLease } from '../runs/observations.js';
import type { RunContents } from '../runs/run-contents.js';

interface VerificationsOptions extends Pick<Core, 'clock' | 'db' | 'newId' | 'uow'> {
  readonly gate: AgentGate;
  readonly sessions: AgentSessions;
  readonly leases: Leases;
  readonly observations: Observations;
  readonly secrets: AgentSecrets;
  readonly contents: RunContents;
}

interface VerificationRequest {
  readonly nodeId: string;
  readonly signal: AbortSignal;
  /** The operator's request; null for one of the orchestrator itself. */
  readonly context: RequestContext | null;
}

/** The outcome for callers that only need a verdict. */
export interface Verdict {
  readonly ok: boolean;
  /** Why it is not ok: `verify_failed`, or the fault that kept the checks from running. */
  readonly error: OperationError | null;
}

/** Milliseconds beyond the times of the checks in which the agent must have answered. */
const ROOM = 60_000;
/** Checks that an agent runs at the same time (`CHECKS_AT_ONCE` of the agent), at least. */
const AT_ONCE = 4;

export class Verifications {
  private readonly options: VerificationsOptions;

  constructor(options: VerificationsOptions) {
    this.options = options;
  }

  /** Runs the checks and returns a verdict; an agent without checks is ok at once. Rejects only for defects. */
  async verify(nodeId: string, signal: AbortSignal): Promise<Verdict> {
    try {
      const { ok, error } = await this.run({ nodeId, signal, context: null });
      return { ok, error };
    } catch (error) {
      if (!isFault(error)) throw error;
      if (error.code === 'no_snapshot') return { ok: true, error: null };
      return { ok: false, error: { code: error.code, message: error.message } };
    }
  }

  /**
   * Runs the checks and returns their results. Throws the faults of `AgentGate.pass`, `no_snapshot`, `agent_too_old`,
   * `secret_unavailable`, `operation_in_progress`, `agent_timeout`, and `cancelled` when an apply starts.
   */
  async run({ nodeId, signal, context }: VerificationRequest): Promise<Verification> {
    const { db, clock, gate, leases } = this.options;
    const known = await approvedAgent(db, nodeId);
    const now = clock.now();
    const before = await this.applied(known);
    if (before.masked.length === 0) return verification(known, before.operation, { from: now, to: now, ...NONE });
    const agent = await gate.pass(nodeId);
    return underLease({ kind: 'verify', nodeId: agent.nodeId, leases, signal }, async (own) => {
      const from = clock.now();
      // An apply may have ended while this request waited for the lease.
      const { operation, masked } = await this.applied(agent);
      const found = masked.length === 0 ? NONE : await this.observe({ agent, operation, masked, context }, own);
      return verification(agent, operation, { from, to: clock.now(), ...found });
    });
  }

  /** Returns the last apply and its checks. Throws `no_snapshot`. */
  private async applied(agent: KnownAgent): Promise<Pick<Attempt, 'operation' | 'masked'>> {
    const { db, contents } = this.options;
    const operation = await newestApplied(db, agent.nodeId, agent.row.created_id);
    if (operation === null || operation.content_id === null) throw nothingApplied(agent);
    const { verify: masked } = await contents.get(db, operation.content_id);
    return { operation, masked };
  }

  private async observe(
    { agent, operation, masked, context }: Attempt,
    signal: AbortSignal,
  ): Promise<Pick<Verification, 'checks' | 'error'>> {
    const { db, newId, sessions, secrets, observations } = this.options;
    if (sessions.can(agent.nodeId, 'verify') === null) throw notReady(agent);
    sessions.require(agent, 'verify');
    const names = [...new Set(masked.flatMap((check) => secretsIn(check)))];
    const { source } = await secrets.resolve(db, agent.row, new Set(names));
    const refusal = refusalOf(names, source);
    if (refusal !== null) throw withoutSecret(refusal);
    const checks = masked.map((check) => revive(check, source));
    await this.audit(agent, operation, { context, names });
    const observation = new Observation({
      runId: newId(),
      nodeId: agent.nodeId,
      mode: 'verify',
      content: { resources: [], removals: [], verify: checks },
      size: null,
      onResult: () => undefined,
      timeoutMs: timeoutOf(checks),
    });
    const { end, error, checks: reports } = await observations.run(observation, signal);
    const dispatch = { resources: [], removals: [], verify: checks };
    const results = [...reportedChecks({ checks, reports, dispatch })];
    return { checks: results, error: verifyError(results) ?? (isWhole(results, end) ? null : (error ?? INCOMPLETE)) };
  }

  /** Emits the audit events before anything is sent, because a check may run scripts on the machine. */
  private async audit(
    { nodeId }: KnownAgent,
    { operation_id }: OperationRow,
    { context, names }: { readonly context: RequestContext | null; readonly names: readonly string[] },
  ): Promise<void> {
    const { uow, secrets } = this.options;
    if (context === null && names.length === 0) return;
    await uow.write(async (tx, emit) => {
      const agent = await approvedAgent(tx, nodeId);
      if (context !== null) {
        emit(
          eventOfRequest(context, {
            type: 'state.verified',
            target: agentParty(agent.row),
            summary: `${context.actor.name} ran the health checks of ${agentLabel(agent)}`,
            metadata: { operation_id },
          }),
        );
      }
      const metadata = { operation_id, ...(context === null ? {} : { request_id: context.requestId }) };
      const use = { agent, names, actor: context?.actor ?? SYSTEM, purpose: 'a health check', metadata };
      await noteSecretUse({ tx, emit, secrets }, use);
    });
  }
}

interface Attempt {
  readonly agent: KnownAgent;
  /** The apply whose checks run. */
  readonly operation: OperationRow;
  /** The checks, with masks in the place of secrets. */
  readonly masked: readonly DesiredCheck[];
  readonly context: RequestContext | null;
}

interface Found extends Pick<Verification, 'checks' | 'error'> {
  /** Unix milliseconds. */
  readonly from: number;
  readonly to: number;
}

const verification = (
  agent: KnownAgent,
  { operation_id }: OperationRow,
  { from, to, checks, error }: Found,
): Verification => ({
  node_id: agent.nodeId,
  operation_id,
  ok: error === null,
  started_at: toSeconds(from),
  finished_at: toSeconds(to),
  checks,
  error,
});

const NONE: Pick<Verification, 'checks' | 'error'> = { checks: [], error: null };

const INCOMPLETE: OperationError = {
  code: 'protocol_violation',
  message: 'the agent ended the health checks without a result for each of them',
};

const isWhole = (results: Verification['checks'], end: string): boolean =>
  end === 'succeeded' && results.every(({ status }) => status === 'healthy');

/** Returns the milliseconds after which an agent that still reports is given up. */
function timeoutOf(checks: readonly DesiredCheck[]): number {
  const within = Math.max(...checks.map((check) => check.within_secs));
  const attempts = checks.reduce((sum, check) => sum + check.timeout_secs, 0) / AT_ONCE;
  return (within + attempts) * 1000 + ROOM;
}

const nothingApplied = (agent: KnownAgent): Fault =>
  new Fault('no_snapshot', `nothing was ever applied to agent ${agentLabel(agent)}, so there are no health checks`, {
    hint: 'apply something first: orch apply',
  });

const notReady = (agent: KnownAgent): Fault =>
  new Fault('agent_not_connected', `agent ${agentLabel(agent)} has only just connected`, {
    hint: 'try again in a moment',
    data: { retry_after: 1 },
  });

const withoutSecret = (refusal: string): Fault =>
  new Fault('secret_unavailable', `${refusal}, and a health check needs it`, {
    hint: 'see the secret, its expiry and its restriction: orch secrets show NAME',
  });
