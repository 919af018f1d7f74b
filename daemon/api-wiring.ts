/** Joins the HTTP API with the rooms that its handlers call; decides nothing. */
import type { KeyObject } from 'node:crypto';
import { CONTRACT } from '../src/contract/contract.js';
import { openApiDocument } from '../src/contract/openapi.js';
import type { Clock } from '../src/kernel/clock.js';
import type { NewId, PublicKeyHex } from '../src/kernel/ids.js';
import type { Logger } from '../src/kernel/logger.js';
import { VERSION } from '../src/kernel/version.js';
import { moduleJsonSchema } from '../src/language/schema.js';
import type { Settings } from '../src/settings/serve.js';
import type { ApiCertificate } from './api-certificate.js';
import { authorize } from './auth/access.js';
import type { Auth } from './auth/auth.js';
import type { Discovery } from './discovery/discovery.js';
import type { Engine } from './engine/engine.js';
import type { Audit } from './events/audit.js';
import type { WiredFleet } from './fleet-wiring.js';
import { healthOf, type Problem } from './health.js';
import type { Authenticate } from './http/access.js';
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
import { terminalHandlers } from './http/terminal.js';
import type { MaintenanceWindows } from './maintenance/maintenance-windows.js';
import { MetricsReader } from './metrics/metrics.js';
import type { OwnMetrics } from './metrics/own-metrics.js';
import type { Notify } from './notify/notify.js';
import type { Secrets } from './secrets/secrets.js';
import { idempotencyHashKey, isToken } from './service-keys.js';
import { completeIdempotencyKey, releaseIdempotencyKey, reserveIdempotencyKey } from './store/idempotency.js';
import type { Queryable } from './store/queryable.js';
import type { WiredTerminals } from './terminal-wiring.js';

export interface ApiWiringOptions {
  readonly db: Queryable;
  readonly settings: () => Settings;
  readonly clock: Clock;
  readonly newId: NewId;
  readonly logger: Logger;
  readonly privateKey: KeyObject;
  readonly publicKey: PublicKeyHex;
  readonly certificate: ApiCertificate | null;
  readonly auth: Auth;
  readonly audit: Audit;
  readonly discovery: Discovery;
  readonly engine: Engine;
  readonly fleet: WiredFleet;
  readonly maintenanceWindows: MaintenanceWindows;
  readonly notify: Notify;
  readonly own: OwnMetrics;
  readonly problems: () => readonly Problem[];
  readonly secrets: Secrets;
  readonly terminals: WiredTerminals;
}

export function wireApi(options: ApiWiringOptions): ApiServer {
  const { db, settings, clock, newId, logger, privateKey, certificate, auth, own, terminals } = options;
  return createApiServer({
    contract: CONTRACT,
    handlers: handlersOf(options),
    authenticate: authenticatorOf(auth),
    authorize,
    isScraper: (token) => isToken(settings().metrics_token, token),
    onAnswered: (request) => own.answered(request),
    idempotency: {
      hashKey: idempotencyHashKey(privateKey),
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
    streams: terminals.clientDoor,
  });
}

const authenticatorOf =
  ({ sessions }: ApiWiringOptions['auth']): Authenticate =>
  (token) =>
    sessions.authenticate(token);

function handlersOf(options: ApiWiringOptions) {
  const { db, settings, publicKey, auth, audit, engine, fleet, notify, secrets } = options;
  const { applies, operations, state } = engine;
  return {
    ...statusHandlers({
      health: () => healthOf({ dataDir: settings().data_dir, publicKey, problems: options.problems }),
      openApi: () => ({ ...openApiDocument(CONTRACT, { version: VERSION }) }),
      moduleSchema: () => ({ ...moduleJsonSchema() }),
    }),
    ...discoveryHandlers(options.discovery),
    ...authHandlers(auth),
    ...operatorHandlers(auth),
    ...agentHandlers(fleet.agents),
    ...tagHandlers(fleet.tags),
    ...enrolmentTokenHandlers(fleet.enrolmentTokens),
    ...metricsHandlers({ reader: new MetricsReader({ db, clock: options.clock }), own: options.own }),
    ...moduleHandlers(engine.modules),
    ...assignmentHandlers(engine),
    ...runHandlers(engine),
    ...operationHandlers({ applies, operations, state }),
    ...secretHandlers({ secrets: secrets.service, usage: secrets.usage }),
    ...channelHandlers(notify),
    ...notificationHandlers(notify.inbox),
    ...maintenanceWindowHandlers(options.maintenanceWindows),
    ...terminalHandlers(options.terminals),
    ...auditHandlers({ ...audit, db }),
  };
}
