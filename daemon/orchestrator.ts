/** Wires the rooms of the orchestrator together, and starts and stops them in order; decides nothing. */
import { sign } from 'node:crypto';
import { join } from 'node:path';
import { CONTRACT } from '../src/contract/contract.js';
import { openApiDocument } from '../src/contract/openapi.js';
import { spkiFingerprint } from '../src/identity/fingerprint.js';
import { loadOrCreateKey } from '../src/identity/key-file.js';
import { publicKeyOfKeyObject } from '../src/identity/key-object.js';
import { parsePublicKey } from '../src/identity/public-key.js';
import type { Clock } from '../src/kernel/clock.js';
import { Fault, isFault } from '../src/kernel/fault.js';
import type { NewId, PublicKeyHex } from '../src/kernel/ids.js';
import type { Logger } from '../src/kernel/logger.js';
import type { Service } from '../src/kernel/service.js';
import { VERSION } from '../src/kernel/version.js';
import { moduleJsonSchema } from '../src/language/schema.js';
import { type ApiCertificate, apiCertificate } from './api-certificate.js';
import { authorize } from './auth/access.js';
import { type Auth, createAuth } from './auth/auth.js';
import type { Settings } from './config/settings.js';
import { CONTROL_SOCKET } from './control-protocol.js';
import { ControlServer } from './control-server.js';
import { Discovery } from './discovery/discovery.js';
import { systemNetwork } from './discovery/system-network.js';
import { DriftScheduler } from './engine/drift-scheduler.js';
import { Engine } from './engine/engine.js';
import { storedEpoch } from './engine/epoch.js';
import { Retention } from './engine/retention.js';
import { type Audit, createAudit } from './events/audit.js';
import { AuditKey } from './events/audit-key.js';
import { type DomainEvent, SYSTEM } from './events/domain-event.js';
import { EventBus } from './events/event-bus.js';
import { TransactionalWriter } from './events/transactional-writer.js';
import { AgentGateway } from './fleet/agent-gateway.js';
import { AgentListener } from './fleet/agent-listener.js';
import { AgentService } from './fleet/agent-service.js';
import { ConnectionRegistry } from './fleet/connection-registry.js';
import { Enrolment } from './fleet/enrolment.js';
import { EnrolmentTokens } from './fleet/enrolment-tokens.js';
import { Presence } from './fleet/presence.js';
import { TagService } from './fleet/tag-service.js';
import { healthOf } from './health.js';
import { Housekeeping } from './housekeeping.js';
import { agentHandlers } from './http/agents.js';
import { type ApiServer, createApiServer } from './http/api-server.js';
import { assignmentHandlers } from './http/assignments.js';
import { auditHandlers } from './http/audit.js';
import { authHandlers } from './http/auth.js';
import { channelHandlers } from './http/channels.js';
import { discoveryHandlers } from './http/discovery.js';
import { enrolmentTokenHandlers } from './http/enrolment-tokens.js';
import { maintenanceWindowHandlers } from './http/maintenance-windows.js';
import { metricsHandlers } from './http/metrics.js';
import { moduleHandlers } from './http/modules.js';
import { notificationHandlers } from './http/notifications.js';
import { operationHandlers } from './http/operations.js';
import { operatorHandlers } from './http/operators.js';
import { runHandlers } from './http/runs.js';
import { secretHandlers } from './http/secrets.js';
import { statusHandlers } from './http/status.js';
import { tagHandlers } from './http/tags.js';
import { MaintenanceWatch } from './maintenance/maintenance-watch.js';
import { MaintenanceWindows } from './maintenance/maintenance-windows.js';
import { MetricsReader } from './metrics/metrics.js';
import { MetricsPoller } from './metrics/metrics-poller.js';
import { OwnMetrics } from './metrics/own-metrics.js';
import { AddressPolicy } from './notify/address-policy.js';
import { createNotify, createRaiser, type Notify, type Raiser } from './notify/notify.js';
import { ownAddresses, resolveHost } from './notify/system-network.js';
import { agentAddress, authority, reachable } from './own-address.js';
import {
  addressRules,
  driftSchedule,
  engineLimits,
  metricsSchedule,
  pendingLimits,
  retentionDays,
} from './room-settings.js';
import type { Keyring } from './secrets/keyring.js';
import { openKeyring } from './secrets/open-keyring.js';
import { createSecrets, type Secrets } from './secrets/secrets.js';
import { idempotencyHashKey, isToken } from './service-keys.js';
import { type OpenDatabase, openDatabase } from './store/database.js';
import { countPendingDeliveries } from './store/deliveries.js';
import {
  completeIdempotencyKey,
  deleteIdempotencyKeysBefore,
  releaseIdempotencyKey,
  reserveIdempotencyKey,
} from './store/idempotency.js';

export interface BootstrapOperator {
  readonly publicKey: string;
  readonly username: string;
}

export interface OrchestratorOptions {
  /** As they are now; asked each time. */
  readonly settings: () => Settings;
  readonly clock: Clock;
  readonly newId: NewId;
  readonly randomBytes: (count: number) => Buffer;
  readonly logger: Logger;
  /** The first operator when the settings name none. */
  readonly ownOperator: () => BootstrapOperator | null;
  readonly onFatal: (error: unknown) => void;
}

/** Where it is reached, once it has started. */
export interface ReadyInfo {
  readonly api_url: string;
  readonly agent_address: string;
  /** null without TLS. */
  readonly tls_fingerprint: string | null;
  readonly public_key: string;
  readonly pid: number;
}

export interface Orchestrator extends Service {
  ready(): ReadyInfo;
}

const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;

/** Opens the store and makes the parts; nothing listens before `start`. */
export async function createOrchestrator(options: OrchestratorOptions): Promise<Orchestrator> {
  const settings = options.settings();
  const privateKey = loadOrCreateKey(join(settings.data_dir, 'identity.key'));
  const auditKey = new AuditKey(loadOrCreateKey(join(settings.data_dir, 'audit.key')));
  const certificate = apiCertificate(settings, settings.data_dir);
  const store = await openDatabase({ ...options, file: join(settings.data_dir, 'orch.db') });
  try {
    const notes: (() => void)[] = [];
    const logger: Logger = { ...options.logger, info: (...line) => notes.push(() => options.logger.info(...line)) };
    const file = join(settings.data_dir, 'secrets.key');
    const keyring = await openKeyring({ ...options, db: store.db, file, logger });
    return new Wired({ ...options, store, keyring, privateKey, auditKey, certificate, notes });
  } catch (error) {
    await store.close();
    throw error;
  }
}

interface WiredOptions extends OrchestratorOptions {
  readonly store: OpenDatabase;
  readonly keyring: Keyring;
  /** What is to be logged after the first line, which holds the addresses. */
  readonly notes: readonly (() => void)[];
  readonly privateKey: ReturnType<typeof loadOrCreateKey>;
  readonly auditKey: AuditKey;
  readonly certificate: ApiCertificate | null;
}

class Wired implements Orchestrator {
  readonly name = 'orchestrator';
  private readonly options: WiredOptions;
  private readonly publicKey: PublicKeyHex;
  private readonly uow: TransactionalWriter;
  private readonly auth: Auth;
  private readonly secrets: Secrets;
  private readonly notify: Notify;
  private readonly maintenance: MaintenanceWatch;
  private readonly audit: Audit;
  private readonly enrolmentTokens: EnrolmentTokens;
  private readonly api: ApiServer;
  private readonly listener: AgentListener;
  private readonly own: OwnMetrics;
  /** In the order of the start. */
  private readonly services: readonly Service[];

  constructor(options: WiredOptions) {
    const { store, clock, newId, logger, privateKey, settings } = options;
    const { db } = store;
    const bus = new EventBus(logger);
    const raiser = createRaiser({ newId, isMaintenance: () => this.maintenance.isMaintenance() });
    const uow = new TransactionalWriter({
      db,
      clock,
      newId,
      publish: (event) => bus.publish(event),
      onRecorded: (tx, events) => raiser.raising.record(tx, events),
    });
    this.maintenance = new MaintenanceWatch({ db, uow, clock, logger });
    const registry = new ConnectionRegistry();
    const secrets = createSecrets({ db, uow, clock, newId, logger, keyring: options.keyring });
    const engine = new Engine({
      db,
      uow,
      clock,
      newId,
      logger,
      link: registry,
      limits: engineLimits(settings()),
      removalGuard: () => settings().removal_guard,
      secrets: secrets.lender,
      vault: secrets.vault,
    });
    const metrics = new MetricsPoller({
      db,
      clock,
      logger,
      link: registry,
      random: Math.random,
      schedule: () => metricsSchedule(settings()),
    });
    const gateway = new AgentGateway({
      registry,
      enrolment: new Enrolment({ uow, registry, clock, limits: () => pendingLimits(settings()) }),
      presence: new Presence({ uow, clock }),
      traffic: engine.traffic,
      onMetrics: (nodeId, answer) => metrics.receive(nodeId, answer),
      clock,
      logger,
    });
    bus.subscribe('all', (event) => {
      this.own.happened(event.type);
      logger.debug(event.summary, { event: event.type });
    });
    this.options = options;
    this.uow = uow;
    this.publicKey = publicKeyOfKeyObject(privateKey);
    this.auth = authOf(options, uow);
    this.secrets = secrets;
    this.notify = this.notifyOf(raiser);
    this.own = new OwnMetrics({
      db,
      version: VERSION,
      connected: () => [...registry.connected()].length,
      queues: { notifications: () => countPendingDeliveries(db) },
    });
    this.audit = createAudit({
      db,
      uow,
      bus,
      key: options.auditKey,
      clock,
      logger,
      epoch: storedEpoch,
      retentionDays: () => settings()['audit.retention_days'] || null,
    });
    this.listener = new AgentListener({
      host: settings().agent_host,
      port: settings().agent_port,
      privateKey,
      onConnection: (peer) => gateway.accept(peer),
      logger,
    });
    this.enrolmentTokens = new EnrolmentTokens({
      db,
      uow,
      clock,
      newId,
      random: options.randomBytes,
      publicKey: this.publicKey,
      address: () => agentAddress(settings(), this.listener.address().port),
    });
    const agents = new AgentService({ db, uow, registry, connections: gateway, clock });
    const tags = new TagService({ db, uow, clock });
    this.api = this.apiOf({ engine, agents, tags });
    const drift = new DriftScheduler({
      db,
      clock,
      logger,
      link: registry,
      drift: engine.drift,
      schedule: () => driftSchedule(settings()),
      isMaintenance: () => this.maintenance.isMaintenance(),
    });
    this.services = [
      this.maintenance,
      engine,
      metrics,
      this.notify.absences,
      gateway,
      this.listener,
      drift,
      this.api,
      this.notify.outbox,
      this.audit.feed,
      this.control(),
      this.housekeeping(metrics),
    ];
  }

  async start(): Promise<void> {
    const started: Service[] = [];
    try {
      started.push(this.audit.checkpoints);
      await this.audit.checkpoints.start();
      const first = await this.bootstrap();
      await this.endRotation();
      for (const service of this.services) {
        started.push(service);
        await service.start();
      }
      await this.tell('orchestrator.started', 'The orchestrator started');
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
      await this.options.store.close();
      throw error;
    }
  }

  async stop(): Promise<void> {
    const { logger, store } = this.options;
    logger.info('the orchestrator stops');
    for (const service of [...this.services].reverse()) await service.stop();
    try {
      await this.auth.failures.flush(true);
      await this.tell('orchestrator.stopped', 'The orchestrator stopped');
    } finally {
      await this.audit.checkpoints.stop();
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

  /** A rotation that does not come to its end leaves both keys, and everything works with them. */
  private async endRotation(): Promise<void> {
    try {
      await this.secrets.rotation.resume();
    } catch (error) {
      if (!isFault(error, 'secrets_locked')) throw error;
      this.options.logger.error('the rotation of the key of the secrets is not at its end', { reason: error.message });
    }
  }

  /** Returns the operator that it had to add. */
  private async bootstrap(): Promise<BootstrapOperator | null> {
    const { operators } = this.auth;
    if (!(await operators.isEmpty())) return null;
    const { bootstrap_key: key, bootstrap_username: username } = this.options.settings();
    const first = key === '' ? this.options.ownOperator() : { publicKey: key, username: username || 'admin' };
    if (first === null) {
      throw new Fault('bootstrap_required', 'there is no operator yet, so nobody could log in', {
        hint: 'make your key with "orch operator init" and start again, or name somebody with --bootstrap-key and --bootstrap-username',
      });
    }
    const publicKey = parsePublicKey(first.publicKey, 'bootstrap_key');
    await operators.bootstrap({ publicKey, username: first.username }, this.options.newId());
    return { publicKey, username: first.username };
  }

  private apiOf(services: { engine: Engine; agents: AgentService; tags: TagService }): ApiServer {
    const { store, clock, newId, logger, settings, certificate } = this.options;
    const { engine, agents, tags } = services;
    const { auth } = this;
    const { db } = store;
    return createApiServer({
      contract: CONTRACT,
      handlers: {
        ...statusHandlers({
          health: () => healthOf({ dataDir: settings().data_dir, publicKey: this.publicKey }),
          openApi: () => ({ ...openApiDocument(CONTRACT, { version: VERSION }) }),
          moduleSchema: () => ({ ...moduleJsonSchema() }),
        }),
        ...discoveryHandlers(this.discovery()),
        ...authHandlers(auth),
        ...operatorHandlers(auth),
        ...agentHandlers(agents),
        ...tagHandlers(tags),
        ...enrolmentTokenHandlers(this.enrolmentTokens),
        ...metricsHandlers({ reader: new MetricsReader(db), own: this.own }),
        ...moduleHandlers(engine.modules),
        ...assignmentHandlers(engine),
        ...runHandlers(engine),
        ...operationHandlers(engine),
        ...secretHandlers({ secrets: this.secrets.service, usage: this.secrets.usage }),
        ...channelHandlers(this.notify),
        ...notificationHandlers(this.notify.inbox),
        ...maintenanceWindowHandlers(this.maintenanceWindows()),
        ...auditHandlers({ ...this.audit, db, authenticate: (token) => auth.sessions.authenticate(token) }),
      },
      authenticate: (token) => auth.sessions.authenticate(token),
      authorize,
      isScraper: (token) => isToken(settings().metrics_token, token),
      onAnswered: (request) => this.own.answered(request),
      idempotency: {
        hashKey: idempotencyHashKey(this.options.privateKey),
        reserve: (request, validSince) => reserveIdempotencyKey(db, request, validSince),
        complete: (slot, answer) => completeIdempotencyKey(db, slot, answer),
        release: (slot) => releaseIdempotencyKey(db, slot),
      },
      logger,
      clock,
      newRequestId: newId,
      listen: { host: settings().api_host, port: settings().api_port },
      tls: certificate,
      limits: {
        bodyBytes: settings()['limits.body_bytes'],
        headersTimeoutMs: settings()['limits.headers_timeout_secs'] * 1000,
        requestTimeoutMs: settings()['limits.request_timeout_secs'] * 1000,
      },
      trustProxyTls: settings().trust_proxy_tls,
      validateAnswers: false,
    });
  }

  private notifyOf(raiser: Raiser): Notify {
    const { store, clock, newId, logger, settings } = this.options;
    const policy = new AddressPolicy({
      rules: () => addressRules(settings()),
      own: () => ({ ports: [this.api.address().port, this.listener.address().port], addresses: ownAddresses() }),
    });
    return createNotify({
      db: store.db,
      uow: this.uow,
      clock,
      newId,
      logger,
      vault: this.secrets.channels,
      network: { policy, resolve: resolveHost },
      raiser,
      isMaintenance: () => this.maintenance.isMaintenance(),
      random: Math.random,
    });
  }

  private discovery(): Discovery {
    const { clock, logger, privateKey, settings } = this.options;
    return new Discovery({
      uow: this.uow,
      clock,
      logger,
      network: systemNetwork,
      publicKey: this.publicKey,
      sign: (message) => sign(null, message, privateKey).toString('hex'),
      place: () => {
        const { host, port } = this.listener.address();
        return { listening: host, advertised: settings().advertised_host, port };
      },
    });
  }

  private maintenanceWindows(): MaintenanceWindows {
    const { store, clock, newId } = this.options;
    const onChanged = () => this.maintenance.load();
    return new MaintenanceWindows({ db: store.db, uow: this.uow, clock, newId, onChanged });
  }

  private control(): ControlServer {
    const { settings, logger } = this.options;
    return new ControlServer({
      path: join(settings().data_dir, CONTROL_SOCKET),
      logger,
      verbs: { 'rotate-secrets-key': async () => ({ ...(await this.secrets.rotation.rotate()) }) },
    });
  }

  private housekeeping(metrics: MetricsPoller): Housekeeping {
    const { store, clock, logger, settings } = this.options;
    const retention = new Retention({ uow: this.uow, clock, days: () => retentionDays(settings()) });
    return new Housekeeping({
      everyMs: MINUTE,
      logger,
      jobs: [
        { name: 'failed logins', run: () => this.auth.failures.flush() },
        { name: 'expired sessions', run: () => this.auth.sessions.prune() },
        { name: 'expired enrolment tokens', run: () => this.enrolmentTokens.prune() },
        { name: 'expired secrets', run: () => this.secrets.service.tellExpired() },
        { name: 'old addresses of logins', run: () => this.notify.pruneAddresses() },
        { name: 'old metrics', run: () => metrics.prune() },
        { name: 'old records', run: () => retention.run() },
        { name: 'old audit events', run: () => this.audit.pruning.run() },
        { name: 'idempotency keys', run: () => deleteIdempotencyKeysBefore(store.db, clock.now() - DAY) },
      ],
    });
  }

  private async tell(type: DomainEvent['type'], summary: string): Promise<void> {
    await this.uow.write(async (_, emit) => {
      emit({ type, actor: SYSTEM, target: SYSTEM, summary, metadata: { version: VERSION } });
    });
  }
}

function authOf(
  { store, clock, randomBytes, logger, settings, certificate }: WiredOptions,
  uow: TransactionalWriter,
): Auth {
  const { api_spki: proxySpki } = settings();
  const spki = proxySpki !== '' ? proxySpki : certificate === null ? null : spkiFingerprint(certificate.cert);
  const bound = spki === null ? null : Buffer.from(spki, 'hex');
  return createAuth({
    db: store.db,
    unitOfWork: uow,
    clock,
    random: randomBytes,
    logger,
    sessionLifetimeMs: () => settings().session_token_expiry_secs * 1000,
    loginsPerMinute: settings()['limits.login_per_minute'],
    failedLoginsPerMinute: settings()['limits.failed_login_per_minute'],
    serverSpki: () => bound,
  });
}
