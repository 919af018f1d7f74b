/** Wires the parts of the engine, and starts, ticks and stops them. */
import { messageOf } from '../../src/kernel/fault.js';
import type { Logger } from '../../src/kernel/logger.js';
import type { Service } from '../../src/kernel/service.js';
import type { Core } from '../core/core.js';
import type { Party } from '../core/domain-event.js';
import type { Rights } from '../core/rights.js';
import type { Queryable } from '../database/schema.js';
import type { AgentLink, AgentTraffic } from '../fleet/connection-registry.js';
import { Machines } from '../fleet/machines.js';
import type { AgentSecrets } from './agent-secrets.js';
import { Applies } from './applies/applies.js';
import type { ApplyWindows } from './applies/apply-windows.js';
import { DesiredSets, type PackageVersions } from './applies/desired-set.js';
import { PlanLimits } from './applies/plan-limits.js';
import { Plans } from './applies/plans.js';
import { RemovalGuard } from './applies/removal-guard.js';
import { Verifications } from './applies/verifications.js';
import { CurrentAssignments } from './assignments/assignment-store.js';
import { Assignments } from './assignments/assignments.js';
import { AutomaticApplies, type AutomationLimits } from './convergence/automatic-applies.js';
import { Evaluator } from './convergence/evaluator.js';
import { RolloutHolds } from './convergence/rollout-holds.js';
import { Standings } from './convergence/standings.js';
import { Drift } from './drift/drift.js';
import { DriftExcuses } from './drift/drift-excuses.js';
import { ENGINE_LIMITS, type EngineLimits } from './engine-limits.js';
import { Epoch } from './epoch.js';
import { Lanes } from './lanes.js';
import { CurrentModules } from './modules/current-modules.js';
import { Followers } from './modules/followers.js';
import type { ModuleFiles } from './modules/module-files.js';
import { ModuleService } from './modules/module-service.js';
import type { TextParser } from './modules/text-parser.js';
import { LiveOperations } from './operations/live-operations.js';
import { OperationDriver } from './operations/operation-driver.js';
import { OperationFeed } from './operations/operation-feed.js';
import type { OutputCipher } from './operations/operation-outputs.js';
import { OperationReader } from './operations/operation-reader.js';
import { OperationRecords } from './operations/operation-records.js';
import { OperationReports } from './operations/operation-reports.js';
import { OperationDeadlines, Recovery } from './operations/recovery.js';
import { RolloutRights } from './rollouts/rollout-rights.js';
import { Rollouts } from './rollouts/rollouts.js';
import { AgentGate } from './runs/agent-gate.js';
import { AgentSessions } from './runs/agent-sessions.js';
import { Leases } from './runs/leases.js';
import { Observations } from './runs/observations.js';
import { RunContents } from './runs/run-contents.js';
import { Traffic } from './runs/traffic.js';
import { StateReader } from './state/state.js';
import { Trials } from './state/trials.js';
import { CurrentValues } from './values/current-values.js';
import { type ReadOneOff, readOneOffValues } from './values/one-off-request.js';
import { ValueService } from './values/value-service.js';

export interface EngineOptions extends Pick<Core, 'bus' | 'clock' | 'db' | 'logger' | 'newId' | 'uow'> {
  readonly link: AgentLink;
  /** Overrides of `ENGINE_LIMITS`. */
  readonly limits?: Partial<EngineLimits>;
  /** Returns the number of removals that one apply may make without `allow_removals`; called for each apply. */
  readonly removalGuard: () => number;
  readonly secrets: AgentSecrets;
  readonly parser: TextParser;
  readonly files: ModuleFiles;
  /** Returns what a party may do now; null for everything. */
  readonly rightsOf: (db: Queryable, actor: Party) => Promise<Rights | null>;
  /** Returns what a restart does to running rollouts. */
  readonly onRestart: () => 'continue' | 'halt';
  /** Encrypts outputs of scripts with secrets. */
  readonly outputCipher: OutputCipher;
  /** Returns the limits of automatic applies; called at each use. */
  readonly automation: () => AutomationLimits;
  readonly windows: ApplyWindows;
  readonly packages: PackageVersions;
}

/** Milliseconds between checks of deadlines. */
const TICK = 1000;

export class Engine implements Service {
  readonly name = 'engine';
  readonly modules: ModuleService;
  readonly values: ValueService;
  /** Parses the modules that a request carries as text. Throws `invalid_module`. */
  readonly sources: CurrentModules['read'];
  /** Reads the values that a request brings with it. Throws `invalid_values`. */
  readonly oneOff: ReadOneOff;
  readonly assignments: Assignments;
  readonly rollouts: Rollouts;
  readonly applies: Applies;
  readonly operations: OperationReader;
  readonly plans: Plans;
  readonly drift: Drift;
  readonly verifications: Verifications;
  readonly driftExcuses: DriftExcuses;
  readonly state: StateReader;
  readonly traffic: AgentTraffic;
  readonly standings: Standings;
  readonly machines: Machines;
  readonly planLimits: PlanLimits;
  readonly rolloutRights: RolloutRights;
  private readonly automatic: AutomaticApplies;
  private readonly recovery: Recovery;
  private readonly leases: Leases;
  private readonly lanes = new Lanes();
  private readonly live = new LiveOperations();
  private readonly feed = new OperationFeed();
  /** Throws `agent_too_old` when the agent lacks the feature; passes before the inventory of its connection. */
  readonly requireFeature: AgentSessions['requireOf'];
  private readonly observations: Observations;
  private readonly deadlines: OperationDeadlines;
  private readonly logger: Logger;
  private timer: NodeJS.Timeout | undefined;

  constructor(options: EngineOptions) {
    const { db, clock, link, logger, parser, outputCipher } = options;
    const limits = { ...ENGINE_LIMITS, ...options.limits };
    const { lanes, live, feed } = this;
    const sessions = new AgentSessions();
    const epoch = new Epoch();
    const machines = new Machines(options);
    const gate = new AgentGate({ db, link, live });
    const leases = new Leases(clock, limits);
    const assignments = new CurrentAssignments();
    const current = new CurrentModules(options);
    const contents = new RunContents();
    const values = new CurrentValues();
    const desiredSets = new DesiredSets({ ...options, current, values, assignments, lanes, contents, sessions });
    const followers = new Followers({ assignments, contents });
    const records = new OperationRecords({ ...options, epoch, trials: new Trials({ ...options, followers }) });
    const observations = new Observations({ link, clock, limits });
    const driver = new OperationDriver({
      ...{ logger, link, live, sessions, records, feed },
      windows: options.windows,
      onRolloutApply: (rolloutId, nodeId) => void this.rollouts.applyEnded(rolloutId, nodeId),
    });
    const operations = { db, clock, limits, link, live, sessions, records, feed, driver, contents };
    const guard = new RemovalGuard({ db, assignments, limit: options.removalGuard });
    const shared = { ...options, guard, gate, leases, lanes, desiredSets, observations, contents };
    this.logger = logger;
    this.requireFeature = sessions.requireOf.bind(sessions);
    this.leases = leases;
    this.observations = observations;
    this.deadlines = new OperationDeadlines(operations);
    this.modules = new ModuleService({ ...options, followers });
    this.values = new ValueService({ ...options, assignments, current, contents, values });
    this.sources = (sources, operatorId) => current.read(sources, operatorId);
    this.oneOff = (...request) => readOneOffValues({ db, parser, current }, ...request);
    this.assignments = new Assignments({ ...options, current, machines });
    this.applies = new Applies({ ...shared, sessions, live, records, driver });
    this.operations = new OperationReader({ clock, db, live, feed, outputCipher, contents, machines });
    this.plans = new Plans({ ...shared, sessions });
    this.drift = new Drift({ ...shared, machines });
    this.verifications = new Verifications({ ...shared, sessions });
    this.driftExcuses = new DriftExcuses({ ...shared, machines });
    const { plans, applies } = this;
    const verify = this.verifications.verify.bind(this.verifications);
    const revive = current.revive.bind(current);
    this.machines = machines;
    this.planLimits = new PlanLimits({ db, assignments, machines });
    const rolloutRights = new RolloutRights({ machines, planLimits: this.planLimits });
    this.rolloutRights = rolloutRights;
    const mayApply = async (actor: Party, nodeId: string | null) => {
      const rights = await options.rightsOf(db, actor);
      if (rights === null) return true;
      const machine = nodeId === null ? null : await machines.find(nodeId);
      return machine === null ? rights.has('apply') : rights.may('apply', machine);
    };
    const tools = { limits, leases, plans, applies, operations: this.operations, verify, revive, mayApply };
    this.rollouts = new Rollouts({ ...options, ...tools, rolloutRights });
    options.bus.subscribe(['operator.removed'], ({ target }) => this.rollouts.operatorRemoved(target));
    options.bus.subscribe(['operator.rights_changed', 'operator.expired'], ({ target }) =>
      this.rollouts.rightsChanged(target),
    );
    const evaluator = new Evaluator({ clock, desiredSets, assignments, current, contents, lanes });
    this.standings = new Standings({ ...options, evaluator });
    const { standings } = this;
    const holds = new RolloutHolds();
    this.automatic = new AutomaticApplies({
      ...options,
      sessions,
      leases,
      standings,
      assignments,
      applies,
      operations: this.operations,
      limits: options.automation,
      holds: () => holds.current(db),
    });
    this.state = new StateReader({ db, desiredSets, lanes, contents });
    this.traffic = new Traffic({
      sessions,
      lanes,
      observations,
      driver,
      reports: new OperationReports(operations),
      onReady: (nodeId) => this.rollouts.agentReady(nodeId),
      onRevoked: (nodeId) => this.rollouts.agentRevoked(nodeId),
    });
    this.recovery = new Recovery({ db, clock, epoch, leases, records, driver, contents });
  }

  /** Resumes the operations and the rollouts that were in progress. Must be called before agents can connect. */
  async start(): Promise<void> {
    await this.recovery.run();
    this.automatic.start();
    await this.standings.start();
    await this.rollouts.start();
    this.timer = setInterval(() => void this.tick(), TICK);
    this.timer.unref();
  }

  /** Ends plans, drift checks and event feeds. Applies continue on their agents; they and rollouts resume at the next start. */
  async stop(): Promise<void> {
    clearInterval(this.timer);
    await this.automatic.stop();
    await this.standings.stop();
    this.rollouts.stop();
    this.observations.stop();
    this.feed.close();
  }

  /** Checks every deadline; called once a second. */
  async tick(): Promise<void> {
    this.leases.tick();
    this.observations.tick();
    this.rollouts.tick();
    this.standings.tick();
    void this.automatic.tick();
    for (const operation of this.live.all()) {
      try {
        await this.lanes.enter(operation.nodeId, () => this.deadlines.check(operation));
      } catch (error) {
        this.logger.error('a deadline could not be looked at', {
          operation_id: operation.id,
          reason: messageOf(error),
        });
      }
    }
  }
}
