/**
 * Upgrades of agents: tells an agent which release to fetch, and keeps what it reports. The agent decides how an upgrade ends,
 * and repeats its report until that is stored here.
 */
import { isFinalUpgrade, UPGRADE_STATES, UPGRADE_WAIT } from '../../src/contract/upgrade-states.js';
import type { Upgrade, upgradeRoutes } from '../../src/contract/upgrades.js';
import { toSeconds } from '../../src/kernel/clock.js';
import { Fault, isFault, messageOf } from '../../src/kernel/fault.js';
import type { NodeId } from '../../src/kernel/ids.js';
import type { Service } from '../../src/kernel/service.js';
import { VERSION } from '../../src/kernel/version.js';
import type { AgentMessageOf, OrchestratorMessage } from '../../src/wire/messages.js';
import type { Core } from '../core/core.js';
import { eventOfRequest, type RequestContext } from '../core/domain-event.js';
import { requireAgent } from '../fleet/agent-service.js';
import { type AgentRow, agentEvent, agentLabel, agentParty, findAgent } from '../fleet/agent-store.js';
import { notConnected } from '../fleet/not-connected.js';
import type { HandlersFor } from '../http/handler.js';
import { findUpgrade, putUpgrade, type UpgradeRow, updateUpgrade, upgradesIn } from './upgrade-store.js';

/** A release that agents can download. */
export interface OfferedPackage {
  readonly version: string;
  readonly platform: string;
  /** Processor as `process.arch` names it. */
  readonly cpu: string;
  readonly sha256: string;
  /** Bytes. */
  readonly size: number;
}

interface UpgradesOptions extends Pick<Core, 'clock' | 'db' | 'logger' | 'newId' | 'uow'> {
  readonly link: {
    isConnected(nodeId: NodeId): boolean;
    holdOf(nodeId: NodeId): string | null;
    send(nodeId: NodeId, messages: readonly OrchestratorMessage[]): boolean;
  };
  /** Returns the releases that agents can download now. */
  readonly packages: () => Promise<readonly OfferedPackage[]>;
}

interface UpgradeWishes {
  readonly version?: string | null | undefined;
  readonly force?: boolean | null | undefined;
  readonly wait_secs?: number | null | undefined;
}

/** Milliseconds in which an agent answers a request. An agent of a release without upgrades does not answer. */
const ANSWER_MS = 20_000;
/** Characters of an agent's reason in an audit event and a notification. */
const SAID_MAX = 300;
const TOO_OLD = 'its release cannot upgrade itself, so install the new one on its machine';
const LEFT = 'the agent has just disconnected';
/** Seconds in which a new release has to reach the orchestrator. */
const TRIAL_SECS = 180;
/** Milliseconds for download, trial and restarts, after which a silent upgrade does not keep another one from beginning. */
const SPARE_MS = 30 * 60_000;

export class Upgrades implements Service {
  readonly name = 'upgrades of agents';
  private readonly options: UpgradesOptions;
  private readonly unanswered = new Map<NodeId, NodeJS.Timeout>();

  constructor(options: UpgradesOptions) {
    this.options = options;
  }

  /** Ends requests that no agent has answered before the last stop. */
  async start(): Promise<void> {
    for (const { node_id, upgrade_id } of await upgradesIn(this.options.db, 'requested')) {
      await this.end(node_id as NodeId, upgrade_id, 'the orchestrator was restarted before the agent had answered');
    }
  }

  async stop(): Promise<void> {
    for (const timer of this.unanswered.values()) clearTimeout(timer);
    this.unanswered.clear();
  }

  /**
   * Requests an upgrade. Throws `agent_not_found`, `agent_not_approved`, `agent_not_connected`, `package_not_found`,
   * `upgrade_in_progress`.
   */
  async request(context: RequestContext, nodeId: string, wishes: UpgradeWishes): Promise<Upgrade> {
    const { uow, clock, newId, link } = this.options;
    const agent = await this.requireReachable(nodeId);
    const version = wishes.version ?? VERSION;
    const chosen = await this.packageFor(agent, version);
    const now = clock.now();
    const waitSecs = wishes.wait_secs ?? UPGRADE_WAIT.standard;
    const row: UpgradeRow = {
      node_id: agent.node_id,
      upgrade_id: newId(),
      version,
      from_version: agent.agent_version,
      state: 'requested',
      wait_secs: waitSecs,
      waits_for: null,
      error: null,
      requested_by: context.actor.id,
      requested_at: now,
      updated_at: now,
    };
    await uow.write(async (tx, emit) => {
      const before = await findUpgrade(tx, agent.node_id);
      if (before !== null && isUnderWay(before, now)) throw inProgress(agent, before);
      await putUpgrade(tx, row);
      emit(
        eventOfRequest(context, {
          type: 'agent.upgrade_requested',
          target: agentParty(agent),
          summary: `${context.actor.name} upgrades agent ${agentLabel(agent)} from ${agent.agent_version} to ${version}`,
          metadata: { upgrade_id: row.upgrade_id, version, sha256: chosen.sha256, force: wishes.force === true },
        }),
      );
    });
    const isSent = link.send(agent.node_id as NodeId, [
      {
        type: 'upgrade',
        upgrade_id: row.upgrade_id,
        version,
        sha256: chosen.sha256,
        size: chosen.size,
        force: wishes.force === true,
        wait_secs: waitSecs,
        trial_secs: TRIAL_SECS,
      },
    ]);
    if (isSent) {
      this.awaitAnswer(agent.node_id as NodeId, row.upgrade_id);
      return present(row);
    }
    const why = link.isConnected(agent.node_id as NodeId) ? TOO_OLD : LEFT;
    try {
      await this.end(agent.node_id as NodeId, row.upgrade_id, why);
      return present({ ...row, state: 'failed', error: { code: 'agent_timeout', message: why } });
    } catch (error) {
      if (!isFault(error, 'store_unavailable')) throw error;
      // The request is stored, so it is answered; its end is stored when the agent's time to answer is over.
      this.awaitAnswer(agent.node_id as NodeId, row.upgrade_id);
      return present(row);
    }
  }

  /** Returns the last upgrade of an agent. Throws `agent_not_found`, `upgrade_not_found`. */
  async find(nodeId: string): Promise<Upgrade> {
    const { db } = this.options;
    const agent = await requireAgent(db, nodeId);
    const row = await findUpgrade(db, nodeId);
    if (row !== null) return present(row);
    throw new Fault('upgrade_not_found', `agent ${agentLabel(agent)} was never upgraded from here`);
  }

  /** Stores what an approved agent reports, and acknowledges an end. */
  async receive(nodeId: NodeId, report: AgentMessageOf<'upgrade_report'>): Promise<void> {
    const { db, link } = this.options;
    const row = await findUpgrade(db, nodeId);
    const isKnown = row?.upgrade_id === report.upgrade_id;
    if (isKnown) this.answered(nodeId);
    if (row !== null && isKnown && !isFinalUpgrade(stateOf(row)) && isNews(row, report)) {
      await this.note(nodeId, report);
    }
    // An unknown upgrade is one of a store that was restored since: nothing here waits for it.
    if (isFinalUpgrade(report.state)) link.send(nodeId, [{ type: 'upgrade_ack', upgrade_id: report.upgrade_id }]);
  }

  private async requireReachable(nodeId: string): Promise<AgentRow> {
    const agent = await requireAgent(this.options.db, nodeId);
    if (agent.status !== 'approved') {
      throw new Fault('agent_not_approved', `agent ${agentLabel(agent)} is ${agent.status}, not approved`);
    }
    if (!this.options.link.isConnected(agent.node_id as NodeId)) {
      throw notConnected(agentLabel(agent), this.options.link.holdOf(agent.node_id as NodeId));
    }
    return agent;
  }

  private async packageFor({ attributes }: AgentRow, version: string): Promise<OfferedPackage> {
    const cpu = CPUS[attributes.arch ?? ''] ?? attributes.arch;
    const all = await this.options.packages();
    const fitting = all.filter((one) => one.platform === attributes.platform && one.cpu === cpu);
    const chosen = fitting.find((one) => one.version === version);
    if (chosen !== undefined) return chosen;
    const versions = fitting.map((one) => one.version).sort();
    const others = versions.length === 0 ? 'none for it' : versions.join(', ');
    throw new Fault(
      'package_not_found',
      `there is no package of orch ${version} for ${attributes.platform} ${cpu}; there is ${others}`,
      {
        hint: `put orch-${version}-${attributes.platform}-${cpu}.tar.gz into "packages" of the orchestrator's data directory`,
      },
    );
  }

  private awaitAnswer(nodeId: NodeId, upgradeId: string): void {
    this.answered(nodeId);
    const late = () => {
      this.unanswered.delete(nodeId);
      this.end(nodeId, upgradeId, `the agent does not answer: ${TOO_OLD}`).catch((error: unknown) =>
        this.options.logger.error('the end of an upgrade was not stored', {
          node_id: nodeId,
          reason: messageOf(error),
        }),
      );
    };
    this.unanswered.set(nodeId, setTimeout(late, ANSWER_MS));
  }

  private answered(nodeId: NodeId): void {
    clearTimeout(this.unanswered.get(nodeId));
    this.unanswered.delete(nodeId);
  }

  /** Fails an upgrade that has no report yet. */
  private async end(nodeId: NodeId, upgradeId: string, message: string): Promise<void> {
    const row = await findUpgrade(this.options.db, nodeId);
    if (row?.upgrade_id !== upgradeId || row.state !== 'requested') return;
    const error = { code: 'agent_timeout', message };
    await this.note(nodeId, { upgrade_id: upgradeId, version: row.version, state: 'failed', waits_for: null, error });
  }

  private async note(nodeId: NodeId, report: Omit<AgentMessageOf<'upgrade_report'>, 'type'>): Promise<void> {
    const { uow, clock } = this.options;
    const { state, waits_for, error, upgrade_id } = report;
    await uow.write(async (tx, emit) => {
      const agent = await findAgent(tx, nodeId);
      const row = await findUpgrade(tx, nodeId);
      if (agent === null || row?.upgrade_id !== upgrade_id || isFinalUpgrade(stateOf(row))) return;
      await updateUpgrade(tx, nodeId, { state, waits_for, error, updated_at: clock.now() });
      if (!isFinalUpgrade(state)) return;
      const { version, from_version } = row;
      const metadata = { upgrade_id, version, from_version, state, ...(error === null ? {} : { error }) };
      const label = agentLabel(agent);
      if (state === 'succeeded') {
        const summary = `Agent ${label} was upgraded from ${from_version} to ${version}`;
        return emit(agentEvent('agent.upgraded', agent, summary, metadata));
      }
      const what = state === 'rolled_back' ? `was rolled back to ${from_version}` : 'failed';
      const [why = ''] = (error?.message ?? 'for an unknown reason').slice(0, SAID_MAX).split('\n');
      const summary = `The upgrade of agent ${label} to ${version} ${what}: ${why}`;
      emit(agentEvent('agent.upgrade_failed', agent, summary, metadata));
    });
  }
}

/** Processors of releases by the attribute `arch` of agents. */
const CPUS: Readonly<Record<string, string>> = { x86_64: 'x64', aarch64: 'arm64' };

const stateOf = ({ state }: UpgradeRow): Upgrade['state'] => UPGRADE_STATES.find((one) => one === state) ?? 'failed';

const isNews = (row: UpgradeRow, { state, waits_for }: AgentMessageOf<'upgrade_report'>): boolean =>
  row.state !== state || row.waits_for !== waits_for;

/** True while a report of the upgrade may still come. */
const isUnderWay = (row: UpgradeRow, now: number): boolean =>
  !isFinalUpgrade(stateOf(row)) && Math.abs(now - row.requested_at) < row.wait_secs * 1000 + SPARE_MS;

const inProgress = (agent: AgentRow, { version, state }: UpgradeRow): Fault =>
  new Fault('upgrade_in_progress', `agent ${agentLabel(agent)} is being upgraded to ${version} (${state})`, {
    hint: 'wait until that has ended',
  });

const present = (row: UpgradeRow): Upgrade => ({
  upgrade_id: row.upgrade_id,
  node_id: row.node_id,
  version: row.version,
  from_version: row.from_version,
  state: stateOf(row),
  waits_for: row.waits_for,
  error: row.error === null ? null : { code: row.error.code, message: row.error.message },
  requested_by: row.requested_by,
  requested_at: toSeconds(row.requested_at),
  updated_at: toSeconds(row.updated_at),
});

/** Handlers of the routes of upgrades. */
export const upgradeHandlers = (upgrades: Upgrades): HandlersFor<typeof upgradeRoutes> => ({
  upgradeAgent: async ({ params, body, context }) => ({
    status: 202,
    body: await upgrades.request(context, params.node_id, body),
  }),
  getAgentUpgrade: async ({ params }) => ({ status: 200, body: await upgrades.find(params.node_id) }),
});
