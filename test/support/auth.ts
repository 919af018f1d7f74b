import { randomBytes } from 'node:crypto';
import { type Auth, createAuth } from '../../daemon/auth/auth.js';
import { type AuditRow, readAuditChain } from '../../daemon/core/audit-store.js';
import type { RequestContext } from '../../daemon/core/domain-event.js';
import { ALL_RIGHTS } from '../../daemon/core/rights.js';
import type { Operator } from '../../src/contract/operators.js';
import type { Role } from '../../src/contract/rights.js';
import { signNonce } from '../../src/identity/login-binding.js';
import { writerOf } from './audit.js';
import { ManualClock, openStore, recordingLogger } from './database.js';
import { type Identity, newIdentity } from './identity.js';
import { serveSettings } from './serve-settings.js';

export const HOUR = 3_600_000;
export const HERE = { address: '192.0.2.7', requestId: 'request-1' };

export interface SceneOptions {
  readonly serverSpki?: () => Uint8Array | null;
  readonly sessionLifetimeMs?: () => number;
  readonly loginsPerMinute?: number;
  readonly failedLoginsPerMinute?: number;
}

/** A store without operators. */
export async function emptyScene({ serverSpki = () => null, ...own }: SceneOptions = {}) {
  const store = await openStore();
  const clock = new ManualClock();
  const { writer, bus, published, db } = writerOf(store, clock);
  const logger = recordingLogger();
  const settings = () =>
    serveSettings({
      session_token_expiry_secs: (own.sessionLifetimeMs?.() ?? HOUR) / 1000,
      'limits.login_per_minute': own.loginsPerMinute ?? 1000,
      'limits.failed_login_per_minute': own.failedLoginsPerMinute ?? 1000,
    });
  const core = { db, bus, uow: writer, clock, randomBytes, logger, settings };
  const auth = createAuth(core, { serverSpki });
  return { ...auth, auth, core, store, db, clock, published, logger };
}

/** A store with one admin, alice, and everything to log in to it. */
export async function scene(options: SceneOptions = {}) {
  const empty = await emptyScene(options);
  const alice = newIdentity();
  const admin = await empty.operators.bootstrap({ publicKey: alice.publicKey, username: 'alice' }, 'start');
  if (!admin) throw new Error('the first operator was not added');
  return { ...empty, alice, admin, context: contextOf(admin) };
}

export type Scene = Awaited<ReturnType<typeof scene>>;

export const contextOf = ({ operator_id, username }: Operator, requestId = 'request-1'): RequestContext => ({
  rights: ALL_RIGHTS,
  actor: { id: operator_id, name: username, type: 'operator' },
  requestId,
  address: HERE.address,
});

export async function addOperator({ operators, context }: Scene, username: string, role: Role = 'operator') {
  const identity = newIdentity();
  const operator = await operators.add({ publicKey: identity.publicKey, username, role }, context);
  return { ...identity, operator };
}

export async function logIn(
  { login }: Pick<Auth, 'login'>,
  { privateKey, publicKey }: Identity,
  from: typeof HERE = HERE,
) {
  const nonce = await login.challenge(publicKey, from);
  return login.verify(publicKey, signNonce(privateKey, Buffer.from(nonce, 'hex')), from);
}

/** The audit events of a type, oldest first. */
export async function audited({ db }: Pick<Scene, 'db'>, type: string): Promise<readonly AuditRow[]> {
  return (await readAuditChain(db, 0, 10_000)).filter(({ event_type }) => event_type === type);
}

/** Metadata of what was audited under a type, oldest first. */
export const metadataOf = async (s: Pick<Scene, 'db'>, type: string) =>
  (await audited(s, type)).map(({ metadata_json }) => JSON.parse(metadata_json));
