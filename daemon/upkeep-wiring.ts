/** Joins what is done now and then, and what is asked over the control socket, with the rooms that do it; decides nothing. */
import { join } from 'node:path';
import type { PublicKeyHex } from '../src/kernel/ids.js';
import type { Audit } from './audit/audit.js';
import type { Auth } from './auth/auth.js';
import { Backups } from './backup/backups.js';
import { sealInThread } from './backup/seal-in-thread.js';
import { CONTROL_SOCKET } from './control-protocol.js';
import { ControlServer } from './control-server.js';
import type { ClockWatch } from './core/clock-watch.js';
import type { Core } from './core/core.js';
import type { TransactionalWriter } from './core/unit-of-work.js';
import type { OpenDatabase } from './database/database.js';
import type { EnrolmentTokens } from './fleet/enrolment-tokens.js';
import { Housekeeping } from './housekeeping.js';
import { deleteIdempotencyKeysBefore } from './http/idempotency.js';
import type { MetricsPoller } from './metrics/metrics-poller.js';
import type { Notify } from './notify/notify.js';
import { Retention } from './retention.js';
import { retentionDays } from './room-settings.js';
import type { Secrets } from './secrets/secrets.js';
import type { WiredTerminals } from './terminal-wiring.js';

export interface UpkeepWiringOptions extends Pick<Core, 'ageTime' | 'clock' | 'logger' | 'settings'> {
  readonly store: OpenDatabase;
  readonly uow: TransactionalWriter;
  readonly publicKey: PublicKeyHex;
  readonly audit: Audit;
  readonly auth: Auth;
  /** Does what a full disk has put off. */
  readonly late: () => Promise<void>;
  readonly clockWatch: ClockWatch;
  readonly enrolmentTokens: EnrolmentTokens;
  readonly metrics: MetricsPoller;
  readonly notify: Notify;
  readonly secrets: Secrets;
  readonly terminals: WiredTerminals;
}

const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;

export const wireUpkeep = (options: UpkeepWiringOptions) => ({
  control: controlOf(options),
  housekeeping: housekeepingOf(options),
});

function controlOf(options: UpkeepWiringOptions): ControlServer {
  const { store, uow, settings, clock, logger, publicKey, secrets, clockWatch } = options;
  const dataDir = settings().data_dir;
  const backups = new Backups({ dataDir, store, uow, clock, publicKey, seal: sealInThread });
  return new ControlServer({
    path: join(dataDir, CONTROL_SOCKET),
    logger,
    verbs: {
      'rotate-secrets-key': async () => ({ ...(await secrets.rotation.rotate()) }),
      backup: async (target) => ({ ...(await backups.make(target)) }),
      clock: async ({ accept }) => ({ ...(accept ? await clockWatch.accept() : clockWatch.report()) }),
    },
  });
}

function housekeepingOf(options: UpkeepWiringOptions): Housekeeping {
  const { store, uow, settings, logger, audit, auth, metrics, notify, secrets, terminals } = options;
  const retention = new Retention({ uow, ageTime: options.ageTime, days: () => retentionDays(settings()) });
  return new Housekeeping({
    everyMs: MINUTE,
    logger,
    jobs: [
      { name: 'what a full disk has put off', run: () => options.late() },
      { name: 'failed logins', run: () => auth.failures.flush() },
      { name: 'expired sessions', run: () => auth.sessions.prune() },
      { name: 'expired enrolment tokens', run: () => options.enrolmentTokens.prune() },
      { name: 'expired secrets', run: () => secrets.service.tellExpired() },
      { name: 'old addresses of logins', run: () => notify.pruneAddresses() },
      { name: 'old metrics', run: () => metrics.prune() },
      { name: 'old records', run: () => retention.run() },
      { name: 'old recordings', run: () => terminals.transcripts.prune() },
      { name: 'old audit events', run: () => audit.pruning.run() },
      { name: 'idempotency keys', run: () => deleteIdempotencyKeysBefore(store.db, options.ageTime() - DAY) },
    ],
  });
}
