/** The API: collects the handlers of every part and creates the server. */
import { createHash, hkdfSync, type KeyObject, timingSafeEqual } from 'node:crypto';
import { CONTRACT } from '../src/contract/contract.js';
import { openApiDocument } from '../src/contract/openapi.js';
import type { PublicKeyHex } from '../src/kernel/ids.js';
import { VERSION } from '../src/kernel/version.js';
import { moduleJsonSchema } from '../src/language/schema.js';
import type { Audit } from './audit/audit.js';
import { auditHandlers } from './audit/audit-routes.js';
import type { Auth } from './auth/auth.js';
import { authHandlers, authorize, operatorHandlers } from './auth/auth-routes.js';
import type { Core } from './core/core.js';
import { notGranted } from './core/rights.js';
import { type Discovery, discoveryHandlers } from './discovery/discovery.js';
import { assignmentHandlers } from './engine/assignments/assignment-routes.js';
import { driftExcuseHandlers } from './engine/drift/drift-excuses.js';
import type { Engine } from './engine/engine.js';
import { fileHandlers, type ModuleFiles } from './engine/modules/module-files.js';
import { moduleHandlers } from './engine/modules/module-service.js';
import { operationHandlers } from './engine/operations/operation-reader.js';
import { rolloutHandlers } from './engine/rollouts/rollout-routes.js';
import { runHandlers } from './engine/runs/run-routes.js';
import { valueHandlers } from './engine/values/value-service.js';
import { agentHandlers } from './fleet/agent-service.js';
import { enrolmentTokenHandlers } from './fleet/enrolment-tokens.js';
import { factHandlers } from './fleet/facts.js';
import type { Fleet } from './fleet/fleet.js';
import type { Machines } from './fleet/machines.js';
import { tagHandlers } from './fleet/tag-service.js';
import { fleetHandlers } from './fleet-summary.js';
import { type ForwardParts, forwardHandlers } from './forward/create-forwards.js';
import { type ApiServer, createApiServer } from './http/api-server.js';
import { completeIdempotencyKey, findIdempotencyKey, type KeyedRequests } from './http/idempotency.js';
import { doorByNoun } from './http/upgrades.js';
import { type MaintenanceWindows, maintenanceWindowHandlers } from './maintenance/maintenance-windows.js';
import { MetricsReader, metricsHandlers } from './metrics/metrics.js';
import type { OwnMetrics } from './metrics/own-metrics.js';
import { channelHandlers } from './notify/channel-service.js';
import { notificationHandlers } from './notify/inbox.js';
import type { Notify } from './notify/notify.js';
import { secretHandlers } from './secrets/secret-service.js';
import type { Secrets } from './secrets/secrets.js';
import type { ServedCertificate } from './served-certificate.js';
import { healthCheck, type Problem, statusHandlers } from './status.js';
import type { TerminalParts } from './terminal/create-terminals.js';
import { terminalHandlers } from './terminal/terminal-routes.js';
import { type Upgrades, upgradeHandlers } from './upgrades/upgrades.js';

/** Parts that provide the API's handlers. */
interface ApiParts {
  readonly privateKey: KeyObject;
  readonly publicKey: PublicKeyHex;
  readonly certificate: ServedCertificate;
  readonly auth: Auth;
  readonly audit: Audit;
  readonly discovery: Discovery;
  readonly engine: Engine;
  readonly files: ModuleFiles;
  readonly fleet: Fleet;
  readonly keyedRequests: KeyedRequests;
  readonly machines: Machines;
  readonly maintenanceWindows: MaintenanceWindows;
  readonly notify: Notify;
  readonly own: OwnMetrics;
  readonly problems: () => readonly Problem[];
  readonly secrets: Secrets;
  readonly terminals: TerminalParts;
  readonly forwards: ForwardParts;
  readonly upgrades: Upgrades;
}

export function createApi(core: Core, parts: ApiParts): ApiServer {
  const { db, settings, newId } = core;
  const { privateKey, certificate, auth, machines, own, terminals, forwards } = parts;
  const server = createApiServer({
    ...core,
    contract: CONTRACT,
    handlers: handlersOf(core, parts),
    authenticate: (token) => auth.sessions.authenticate(token),
    authorize,
    authorizeOn: async (right, { rights }, nodeId) => {
      const machine = await machines.require(rights, nodeId);
      if (!rights.may(right, machine)) throw notGranted(right, 'this machine');
    },
    isScraper: (token) => isToken(settings().metrics_token, token),
    onAnswered: (request) => own.answered(request),
    idempotency: {
      hashKey: idempotencyHashKey(privateKey),
      running: parts.keyedRequests,
      find: (slot, validSince) => findIdempotencyKey(db, slot, validSince),
      complete: (slot, answer) => completeIdempotencyKey(db, slot, answer),
    },
    newRequestId: newId,
    listen: { host: settings().api_host, port: settings().api_port },
    tls: certificate.pair,
    limits: {
      bodyBytes: settings()['limits.body_bytes'],
      headersTimeoutMs: settings()['limits.headers_timeout_secs'] * 1000,
      requestTimeoutMs: settings()['limits.request_timeout_secs'] * 1000,
    },
    trustProxyTls: settings().trust_proxy_tls,
    validateAnswers: false,
    streams: doorByNoun({ terminal: terminals.clientEndpoint, forward: forwards.clientEndpoint }),
  });
  certificate.onRenewed((renewed) => server.renew(renewed));
  return server;
}

function handlersOf(core: Core, parts: ApiParts) {
  const { publicKey, auth, audit, engine, fleet, notify, secrets, problems } = parts;
  return {
    ...statusHandlers({
      health: healthCheck({
        ...core,
        dataDir: core.settings().data_dir,
        publicKey,
        problems,
        certificateExpiresAt: () => parts.certificate.expiresAt(),
      }),
      openApi: () => ({ ...openApiDocument(CONTRACT, { version: VERSION }) }),
      moduleSchema: () => ({ ...moduleJsonSchema() }),
    }),
    ...discoveryHandlers(parts.discovery),
    ...authHandlers(auth),
    ...operatorHandlers({ ...auth, machines: parts.machines }),
    ...agentHandlers(fleet.agents),
    ...fleetHandlers({
      ...core,
      agents: fleet.agents,
      standings: () => engine.standings.counts(),
      rollouts: (page) => engine.rollouts.list(page),
    }),
    ...factHandlers(fleet.facts),
    ...tagHandlers(fleet.tags),
    ...upgradeHandlers(parts.upgrades),
    ...enrolmentTokenHandlers(fleet.enrolmentTokens),
    ...metricsHandlers({ reader: new MetricsReader(core), own: parts.own, machines: parts.machines }),
    ...moduleHandlers(engine.modules),
    ...fileHandlers(parts.files),
    ...valueHandlers(engine.values),
    ...assignmentHandlers(engine),
    ...rolloutHandlers(engine),
    ...runHandlers(engine),
    ...driftExcuseHandlers(engine.driftExcuses),
    ...operationHandlers(engine),
    ...secretHandlers({ secrets: secrets.service, usage: secrets.usage, machines: parts.machines }),
    ...channelHandlers(notify),
    ...notificationHandlers(notify.inbox, parts.machines),
    ...maintenanceWindowHandlers(parts.maintenanceWindows),
    ...terminalHandlers({ ...parts.terminals, machines: parts.machines }),
    ...forwardHandlers(parts.forwards.forwards),
    ...auditHandlers({ ...audit, db: core.db, machines: parts.machines }),
  };
}

/** Compares in constant time. An empty `token` setting matches nothing. */
const isToken = (token: string, given: string): boolean =>
  token !== '' && timingSafeEqual(digestOf(token), digestOf(given));

const digestOf = (text: string): Buffer => createHash('sha256').update(text).digest();

/** Derives the key from the identity key, which no store holds; see `IdempotencyKeys`. */
const idempotencyHashKey = (privateKey: KeyObject): Buffer =>
  Buffer.from(hkdfSync('sha256', privateKey.export({ type: 'pkcs8', format: 'der' }), '', 'orch-idempotency-v1', 32));
