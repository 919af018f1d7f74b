/** Wires the parts of the orchestrator together, and starts and stops them in order. */
import type { KeyObject } from 'node:crypto';
import { join } from 'node:path';
import { publicKeyOfKeyObject } from '../src/identity/key-object.js';
import { loadOrCreateKey } from '../src/identity/private-key.js';
import { isFault } from '../src/kernel/fault.js';
import type { PublicKeyHex } from '../src/kernel/ids.js';
import type { Logger } from '../src/kernel/logger.js';
import type { Service } from '../src/kernel/service.js';
import { VERSION } from '../src/kernel/version.js';
import { ownRelease } from '../src/release/own-release.js';
import { createApi } from './api.js';
import { type ApiCertificate, apiCertificate } from './api-certificate.js';
import { type Audit, createAudit } from './audit/audit.js';
import {
  AUDIT_HEAD_FILE,
  AUDIT_HEAD_KEY,
  AuditHead,
  type LostEvents,
  lostEvents,
  lostEventsFault,
} from './audit/audit-head.js';
import { AuditKey } from './audit/checkpoint.js';
import { type Auth, createAuth } from './auth/auth.js';
import { hasNoOperators } from './auth/operator-store.js';
import { rightsOfParties } from './auth/operators.js';
import { newEpoch } from './backup/new-epoch.js';
import { examineDirectory, faultsOfStore, identityOf, type StartChoices } from './backup/starting-directory.js';
import { StoreCheck } from './backup/store-check.js';
import { createControlServer } from './control-server.js';
import { readChainHead } from './core/audit-log.js';
import { ClockWatch } from './core/clock-watch.js';
import type { Core } from './core/core.js';
import { type DomainEvent, SYSTEM } from './core/domain-event.js';
import { EventBus } from './core/event-bus.js';
import { TransactionalWriter } from './core/unit-of-work.js';
import { type OpenDatabase, openDatabase } from './database/database.js';
import { setMeta } from './database/meta.js';
import { risingIds } from './database/rising-ids.js';
import { storeLocationOf } from './database/store-location.js';
import { createDiscovery } from './discovery/discovery.js';
import { automationLimits } from './engine/convergence/automatic-applies.js';
import { DriftScheduler, driftSchedule } from './engine/drift/drift-scheduler.js';
import { Engine } from './engine/engine.js';
import { engineLimits } from './engine/engine-limits.js';
import { epochBegun, storedEpoch } from './engine/epoch.js';
import { ModuleFiles } from './engine/modules/module-files.js';
import { ParserPool } from './engine/modules/parser-pool.js';
import { busyNodes } from './engine/rollouts/rollout-store.js';
import { addFirstOperator, type BootstrapOperator, namedOperator } from './first-operator.js';
import type { AgentListener } from './fleet/agent-listener.js';
import { ConnectionRegistry } from './fleet/connection-registry.js';
import { createFleet } from './fleet/fleet.js';
import { authority, reachable } from './fleet/own-address.js';
import { createForwards } from './forward/create-forwards.js';
import { createHousekeeping } from './housekeeping.js';
import type { ApiServer } from './http/api-server.js';
import { KeyedRequests } from './http/idempotency.js';
import { MaintenanceWatch } from './maintenance/maintenance-watch.js';
import { MaintenanceWindows } from './maintenance/maintenance-windows.js';
import { MetricsPoller, metricsSchedule } from './metrics/metrics-poller.js';
import { OwnMetrics } from './metrics/own-metrics.js';
import { addressPolicy, resolveHost } from './notify/address-policy.js';
import { countPendingDeliveries } from './notify/delivery-store.js';
import { createNotificationQueue, createNotify } from './notify/notify.js';
import { Packages } from './packages/packages.js';
import type { Keyring } from './secrets/keyring.js';
import { openKeyring } from './secrets/open-keyring.js';
import { createSecrets, type Secrets } from './secrets/secrets.js';
import { ServedCertificate } from './served-certificate.js';
import { createTerminals } from './terminal/create-terminals.js';
import { Upgrades } from './upgrades/upgrades.js';

interface OrchestratorOptions
  extends StartChoices,
    Pick<Core, 'clock' | 'logger' | 'newId' | 'randomBytes' | 'settings'> {
  /** Returns the first operator when the settings name none. */
  readonly ownOperator: () => BootstrapOperator | null;
  readonly onFatal: (error: unknown) => void;
  /** Environment of the process, which may hold the password of the store. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** True begins a new epoch, because the data directory was restored by hand. */
  readonly newEpoch: boolean;
}

/** Addresses and identity of a started orchestrator. */
interface ReadyInfo {
  readonly api_url: string;
  readonly agent_address: string;
  /** SHA-256 of the certificate's SPKI in hex; null without TLS. */
  readonly tls_fingerprint: string | null;
  readonly public_key: string;
  readonly pid: number;
}

export interface Orchestrator extends Service {
  ready(): ReadyInfo;
  /** Reads again what is not part of the settings: the files of the certificate. */
  reload(): void;
}

/**
 * Opens the store and creates the parts; nothing listens before `start`. The store is created before the keys, so
 * that an interrupted first start leaves no keys without a store.
 */
export async function createOrchestrator(options: OrchestratorOptions): Promise<Orchestrator> {
  const settings = options.settings();
  const { data_dir: dataDir } = settings;
  const location = storeLocationOf(settings, options.env);
  const directory = examineDirectory(dataDir, options, location);
  if (directory.isFirst && location.server === null) namedOperator(options);
  const store = await openDatabase({
    ...options,
    ...location,
    ...faultsOfStore({ dataDir, newStore: options.newStore, mayBeEmpty: directory.mayBeEmpty, location }),
  });
  try {
    const isFirst = directory.isFirst && (await hasNoOperators(store.db));
    const { privateKey, replaced } = await identityOf(store.db, dataDir, options);
    const auditKey = new AuditKey(loadOrCreateKey(join(dataDir, 'audit.key')));
    const certificate = apiCertificate(settings, dataDir);
    const notes: (() => void)[] = isFirst ? [() => tellFirstStart(options, privateKey)] : [];
    const logger: Logger = { ...options.logger, info: (...line) => notes.push(() => options.logger.info(...line)) };
    const file = join(dataDir, 'secrets.key');
    const keyring = await openKeyring({ ...options, db: store.db, file, logger });
    const lost = await lostEvents(store.db, {
      file: join(dataDir, AUDIT_HEAD_FILE),
      key: auditKey,
      isBeside: location.server === null,
    });
    if (lost !== null && !options.newEpoch && !options.newStore) {
      throw lostEventsFault(location.server === null ? dataDir : store.place, lost);
    }
    const newId = await risingIds(store.db, options.newId);
    return new AssembledOrchestrator({
      ...options,
      newId,
      store,
      keyring,
      privateKey,
      replaced,
      auditKey,
      certificate,
      notes,
      lost,
    });
  } catch (error) {
    await store.close();
    throw error;
  }
}

/** Warns about a first start: an empty directory may mean that the orchestrator's disk is not mounted. */
function tellFirstStart({ settings, logger }: OrchestratorOptions, privateKey: KeyObject): void {
  logger.warn('this was a first start: a new orchestrator was made, which no agent knows yet', {
    data_dir: settings().data_dir,
    public_key: publicKeyOfKeyObject(privateKey),
    hint: 'if an orchestrator ran here before, its data directory is missing: stop this one, and mount or restore it',
  });
}

interface AssembledOptions extends OrchestratorOptions {
  readonly store: OpenDatabase;
  readonly keyring: Keyring;
  /** Log lines deferred until the ready line, which holds the addresses, has been written. */
  readonly notes: readonly (() => void)[];
  readonly privateKey: KeyObject;
  /** Public key of the identity key that was replaced; null when it has not changed. */
  readonly replaced: string | null;
  readonly auditKey: AuditKey;
  /** Events missing from the store, accepted explicitly by the person who starts the orchestrator. */
  readonly lost: LostEvents | null;
  readonly certificate: ApiCertificate | null;
}

class AssembledOrchestrator implements Orchestrator {
  readonly name = 'orchestrator';
  private readonly options: AssembledOptions;
  private readonly publicKey: PublicKeyHex;
  private readonly core: Core;
  private readonly auth: Auth;
  private readonly secrets: Secrets;
  private readonly auditHead: AuditHead;
  /** False until the audit log has recorded this start. */
  private isStartRecorded = true;
  private readonly clockWatch: ClockWatch;
  private readonly storeCheck: StoreCheck;
  private readonly certificate: ServedCertificate;
  private readonly driftScheduler: DriftScheduler;
  private readonly maintenance: MaintenanceWatch;
  private readonly audit: Audit;
  private readonly api: ApiServer;
  private readonly listener: AgentListener;
  /** Services in start order. */
  private readonly services: readonly Service[];

  constructor(options: AssembledOptions) {
    const { store, clock, newId, logger, privateKey, settings, certificate } = options;
    const { db } = store;
    const isMaintenance = () => this.maintenance.isMaintenance();
    const problems = () => [
      ...this.clockWatch.problems(),
      ...this.storeCheck.problems(),
      ...this.driftScheduler.problems(),
      ...this.certificate.problems(),
    ];
    const bus = new EventBus(logger);
    const queue = createNotificationQueue({ newId, isMaintenance });
    const keyedRequests = new KeyedRequests();
    const uow = new TransactionalWriter({
      db,
      clock,
      newId,
      publish: (event) => {
        keyedRequests.committed(event);
        bus.publish(event);
      },
      onCommitted: (head) => {
        this.auditHead.committed(head);
        queue.committed();
      },
      onRecorded: async (tx, events) => {
        await queue.writer.record(tx, events);
        await keyedRequests.record(tx, events);
      },
    });
    this.clockWatch = new ClockWatch({ db, uow, clock, logger });
    const { ageTime } = this.clockWatch;
    const core: Core = { db, uow, bus, clock, ageTime, newId, randomBytes: options.randomBytes, logger, settings };
    this.certificate = new ServedCertificate(certificate, core);
    const publicKey = publicKeyOfKeyObject(privateKey);
    const keys = { privateKey, publicKey };
    const headFile = join(settings().data_dir, AUDIT_HEAD_FILE);

    this.auditHead = new AuditHead({ ...core, file: headFile, key: options.auditKey });
    this.maintenance = new MaintenanceWatch(core);
    const registry = new ConnectionRegistry();
    const secrets = createSecrets(core, { keyring: options.keyring });
    const parser = new ParserPool(core);
    const files = new ModuleFiles(core);
    const engine = new Engine({
      ...core,
      link: registry,
      limits: engineLimits(settings()),
      removalGuard: () => settings().removal_guard,
      secrets: secrets.resolver,
      outputCipher: secrets.outputCipher,
      parser,
      files,
      windows: this.maintenance,
      rightsOf: rightsOfParties(core),
      onRestart: () => settings()['rollouts.on_restart'],
      automation: () => automationLimits(settings()),
      packages: {
        ask: (nodeId, names) => fleet.versions.ask(nodeId, names),
        askMissing: (nodeId, names) => fleet.versions.askMissing(nodeId, names),
      },
    });
    this.driftScheduler = new DriftScheduler({
      ...core,
      link: registry,
      drift: engine.drift,
      schedule: () => driftSchedule(settings()),
      isMaintenance,
      pausedAgents: () => (this.maintenance.pausesSome() ? (labels) => this.maintenance.isPaused(labels) : null),
    });
    const metrics = new MetricsPoller({
      ...core,
      link: registry,
      random: Math.random,
      schedule: () => metricsSchedule(settings()),
    });
    const terminals = createTerminals(core, { privateKey, link: registry, since: epochBegun });
    const forwards = createForwards(core, { link: registry, features: engine });
    const packages = new Packages({ ...core, dataDir: settings().data_dir, release: () => ownRelease() });
    const upgrades = new Upgrades({ ...core, link: registry, packages: () => packages.list() });
    const fleet = createFleet(core, {
      ...{ ...keys, packages, files, registry },
      machines: engine.machines,
      standingOf: (nodeId) => engine.standings.of(nodeId),
      busy: busyNodes,
      traffic: engine.traffic,
      terminals: terminals.terminals,
      forwards: forwards.forwards,
      endpoints: [terminals.agentEndpoint, forwards.agentEndpoint],
      onMetrics: (nodeId, answer) => metrics.receive(nodeId, answer),
      onUpgradeReport: (nodeId, report) => upgrades.receive(nodeId, report),
    });
    const auth = createAuth(core, { serverSpki: () => this.certificate.spki() });
    const ownPorts = () => [this.api.address().port, this.listener.address().port];
    const notify = createNotify(core, {
      queue,
      cipher: secrets.channelCipher,
      network: { policy: addressPolicy(settings, ownPorts), resolve: resolveHost },
      isMaintenance,
      random: Math.random,
    });
    const own = new OwnMetrics({
      ...core,
      store,
      version: VERSION,
      connected: () => [...registry.connected()].length,
      terminals: () => terminals.terminals.active,
      standings: () => engine.standings.counts(),
      overdueChecks: () => this.driftScheduler.overdue,
      problems,
      certificateExpiresAt: () => this.certificate.expiresAt(),
      queues: { notifications: () => countPendingDeliveries(db) },
    });
    bus.subscribe('all', (event) => {
      own.countEvent(event.type);
      logger.debug(event.summary, { event: event.type });
    });
    const audit = createAudit(core, { key: options.auditKey, epoch: storedEpoch });
    this.storeCheck = new StoreCheck({ ...core, store, verification: audit.verification });
    const discovery = createDiscovery(core, { ...keys, address: () => fleet.listener.address() });
    const maintenanceWindows = new MaintenanceWindows({ ...core, onChanged: (rows) => this.maintenance.take(rows) });
    const parts = {
      ...keys,
      store,
      certificate: this.certificate,
      auth,
      audit,
      engine,
      files,
      fleet,
      metrics,
      notify,
      own,
      secrets,
      terminals,
      forwards,
      upgrades,
    };
    const { machines } = engine;
    this.api = createApi(core, { ...parts, machines, keyedRequests, problems, discovery, maintenanceWindows });
    this.options = options;
    this.core = core;
    this.publicKey = publicKey;
    this.auth = auth;
    this.audit = audit;
    this.secrets = secrets;
    this.listener = fleet.listener;
    this.services = [
      parser,
      this.maintenance,
      engine,
      metrics,
      notify.offlineWatch,
      terminals.service,
      forwards.forwards,
      packages,
      upgrades,
      fleet.gateway,
      fleet.listener,
      this.driftScheduler,
      this.api,
      notify.outbox,
      audit.feed,
      createControlServer(core, { ...parts, clockWatch: this.clockWatch }),
      createHousekeeping(core, { ...parts, late: () => this.recordLate() }),
      this.storeCheck,
      this.certificate,
    ];
  }

  async start(): Promise<void> {
    const started: Service[] = [];
    try {
      started.push(this.clockWatch);
      await this.clockWatch.start();
      started.push(this.audit.checkpoints);
      await this.audit.checkpoints.start();
      await this.recordStartChanges();
      this.auditHead.open(await storedEpoch(this.options.store.db), await readChainHead(this.options.store.db));
      const first = await addFirstOperator({ ...this.options, operators: this.auth.operators });
      await this.endRotation();
      for (const service of this.services) {
        started.push(service);
        await service.start();
      }
      await this.recordStart();
      if (await this.auditHead.isSynced()) await setMeta(this.options.store.db, AUDIT_HEAD_KEY, '1');
      const { pid, ...ready } = this.ready();
      this.options.logger.info('the orchestrator is ready', { ...ready, pid, version: VERSION });
      for (const note of this.options.notes) note();
      if (first !== null)
        this.options.logger.info('the first operator was added', {
          username: first.username,
          public_key: first.publicKey,
        });
    } catch (error) {
      for (const service of started.reverse()) await service.stop();
      await this.auditHead.close();
      await this.options.store.close();
      throw error;
    }
  }

  async stop(): Promise<void> {
    const { logger, store } = this.options;
    logger.info('the orchestrator stops');
    for (const service of [...this.services].reverse()) await service.stop();
    try {
      await this.auth.flush(true);
      await this.record('orchestrator.stopped', 'The orchestrator stopped');
      await this.clockWatch.stop();
    } finally {
      await this.audit.checkpoints.stop();
      await this.auditHead.close();
      await store.close();
    }
  }

  ready(): ReadyInfo {
    const { settings, certificate } = this.options;
    const { advertised_host: advertised, api_host: apiHost, agent_host: agentHost } = settings();
    const scheme = certificate === null ? 'http' : 'https';
    return {
      api_url: `${scheme}://${authority(reachable(apiHost, advertised), this.api.address().port)}`,
      agent_address: authority(reachable(agentHost, advertised), this.listener.address().port),
      tls_fingerprint: this.api.fingerprint,
      public_key: this.publicKey,
      pid: process.pid,
    };
  }

  reload(): void {
    void this.certificate.look();
  }

  private async recordStartChanges(): Promise<void> {
    const { newEpoch: wantsEpoch, newStore, replaced, lost, logger } = this.options;
    if (newStore || wantsEpoch) {
      await newEpoch({ ...this.options, uow: this.core.uow, by: newStore ? 'new_store' : 'new_epoch' });
    }
    if (lost !== null) await this.recordLost(lost);
    if (replaced === null) return;
    const summary = 'The orchestrator has another identity key: each agent has to be repinned';
    await this.record('orchestrator.identity_changed', summary, { before: replaced, after: this.publicKey });
    logger.warn('the orchestrator has another identity key, agents of the one before do nothing for it', {
      before: replaced,
      public_key: this.publicKey,
      hint: 'on each machine: stop the agent, "orch agent repin", and start it with the new key',
    });
  }

  private async recordLate(): Promise<void> {
    if (!this.isStartRecorded) await this.recordStart();
    await this.auth.sessions.storeLate();
  }

  /**
   * Records the start in the audit log. On a full disk the orchestrator serves reads, and housekeeping retries this
   * later.
   */
  private async recordStart(): Promise<void> {
    this.isStartRecorded = true;
    try {
      await this.record('orchestrator.started', 'The orchestrator started');
    } catch (error) {
      if (!isFault(error, 'store_unavailable')) throw error;
      this.isStartRecorded = false;
      this.options.logger.error('the store cannot be written, it can only be read', {
        reason: error.message,
        hint: 'free some space on the disk of the data directory; writes are refused until then',
      });
    }
  }

  private async recordLost(lost: LostEvents): Promise<void> {
    const { expected_seq, last_seq, problem } = lost;
    const summary =
      problem === null
        ? `The store was taken without its newest events: it ended with event ${last_seq}, ${expected_seq} was committed`
        : `The store was taken although newer events may have been committed: ${problem}`;
    await this.record('audit.events_lost', summary, { ...lost });
    this.options.logger.error(summary, { ...lost });
  }

  /**
   * Finishes an interrupted rotation. One that cannot finish leaves both keys in place, and everything works with
   * both.
   */
  private async endRotation(): Promise<void> {
    try {
      await this.secrets.rotation.resume();
    } catch (error) {
      if (!isFault(error, 'secrets_locked')) throw error;
      this.options.logger.error('the rotation of the key of the secrets is not at its end', { reason: error.message });
    }
  }

  private async record(type: DomainEvent['type'], summary: string, more: DomainEvent['metadata'] = {}): Promise<void> {
    await this.core.uow.write(async (_, emit) => {
      emit({ type, actor: SYSTEM, target: SYSTEM, summary, metadata: { version: VERSION, ...more } });
    });
  }
}
