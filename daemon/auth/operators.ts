/** Adds, lists and removes operators. */
import { isDeepStrictEqual } from 'node:util';
import type { Transaction } from 'kysely';
import { type Operator, ROBOT_LIFE_SECS } from '../../src/contract/operators.js';
import { type Grant, ROLES, type Role } from '../../src/contract/rights.js';
import { operatorIdOf } from '../../src/identity/key-object.js';
import { rotationMessage } from '../../src/identity/key-rotation.js';
import { isSignatureHex, verifySignature } from '../../src/identity/proof-of-key.js';
import { parsePublicKey } from '../../src/identity/public-key.js';
import { toSeconds, toTimestamp } from '../../src/kernel/clock.js';
import { Fault } from '../../src/kernel/fault.js';
import type { PublicKeyHex } from '../../src/kernel/ids.js';
import { isName } from '../../src/kernel/ids.js';
import { LookAlikes } from '../../src/kernel/look-alikes.js';
import type { Core } from '../core/core.js';
import { eventOfRequest, type Party, type RequestContext, SYSTEM } from '../core/domain-event.js';
import { ALL_RIGHTS, checkGrants, NO_RIGHTS, type Rights } from '../core/rights.js';
import type { Database, Queryable } from '../database/schema.js';
import { toldAtFirst } from './operator-ends.js';
import {
  countLastingAdmins,
  findActiveOperator,
  findOperator,
  hasNoOperators,
  isRole,
  listOperators,
  markOperatorRemoved,
  type NewOperatorRow,
  type OperatorLimits,
  type OperatorRow,
  operatorOfRow,
  partyOfOperator,
  putOperator,
  revokeUnusedTokens,
  rightsAt,
  setOperatorRights,
} from './operator-store.js';
import type { RateLimiter } from './rate-limiter.js';
import type { Sessions } from './sessions.js';

interface OperatorsOptions extends Pick<Core, 'clock' | 'db' | 'settings' | 'uow'> {
  readonly sessions: Pick<Sessions, 'revokeAllOf'>;
  /** Limit on rotations of keys, by user name. */
  readonly rotations: RateLimiter;
}

interface NewOperator {
  /** Hex, or a line of an OpenSSH `.pub` file. */
  readonly publicKey: string;
  readonly username: string;
  /** Role [default: `operator`]. */
  readonly role?: string | null | undefined;
  /** Grants [default: none, so the role counts on every machine]. */
  readonly grants?: readonly Grant[] | null | undefined;
  /** Unix seconds from which the operator may do nothing [default: no end]. */
  readonly expiresAt?: number | null | undefined;
  /** True for a program, which gets no terminal, is no admin and has an end. */
  readonly isRobot?: boolean | undefined;
}

interface NewRights extends Pick<NewOperator, 'role'> {
  readonly grants: readonly Grant[] | null;
  /** Unix seconds; null for no end; undefined for that of before. */
  readonly expiresAt?: number | null | undefined;
}

export class Operators {
  private readonly options: OperatorsOptions;

  constructor(options: OperatorsOptions) {
    this.options = options;
  }

  /** Returns operators in the order they were first added. */
  async list(includeRemoved = false): Promise<readonly Operator[]> {
    return (await listOperators(this.options.db, includeRemoved)).map(operatorOfRow);
  }

  /** Returns an operator, active or removed. Throws `operator_not_found`. */
  async get(operatorId: string): Promise<Operator> {
    const row = await findOperator(this.options.db, operatorId);
    if (!row) throw notFound(operatorId);
    return operatorOfRow(row);
  }

  /** Returns what an operator may do now; null once removed or expired. */
  async rightsOf(operatorId: string): Promise<Rights | null> {
    const { db, clock } = this.options;
    const rights = await rightsAt(db, operatorId, clock.now());
    return rights === NO_RIGHTS ? null : rights;
  }

  /**
   * Adds an operator. A removed key gets its record back, with the given name and role.
   * Throws `invalid_public_key`, `invalid_username`, `invalid_role`, `invalid_grant`, `invalid_expiry`, `expiry_beyond_own`, or
   * `operator_exists` for a key or name in use.
   */
  async add(operator: NewOperator, context: RequestContext): Promise<Operator> {
    if (operator.role == null && this.options.settings()['operators.require_role']) throw roleMissing();
    const checked = checkOperator(operator);
    return this.options.uow.write(async (tx, emit) => {
      this.checkExpiry(checked, await findOperator(tx, context.actor.id));
      await refuseDuplicate(tx, checked);
      const row = this.rowOf(checked, { bootstrap: 0, added_by: context.actor.id });
      const former = await findOperator(tx, row.operator_id);
      await putOperator(tx, row);
      emit(addedEvent(row, former, context));
      return readBack(tx, row.operator_id);
    });
  }

  /**
   * Replaces the role and the end [default: as before] and the grants of an operator. Throws `operator_not_found`, `invalid_role`,
   * `invalid_grant`, `invalid_expiry`, `expiry_beyond_own`, `last_admin`.
   */
  async setRights(operatorId: string, given: NewRights, context: RequestContext): Promise<Operator> {
    return this.options.uow.write(async (tx, emit) => {
      const row = await findActiveOperator(tx, operatorId);
      if (!row) throw notFound(operatorId);
      const before = limitsOf(row);
      const after = checkRights(row, given);
      if (isDeepStrictEqual(after, before)) return operatorOfRow(row);
      const isRobot = row.robot === 1;
      // Who has expired stays so, whatever the role.
      const keepsEnd = after.expires_at === before.expires_at;
      this.checkExpiry({ ...after, isRobot }, await findOperator(tx, context.actor.id), keepsEnd);
      const isLasting = (limits: Limits) => limits.role === 'admin' && limits.expires_at === null;
      const losesAdmin = isLasting(before) && !isLasting(after);
      if (losesAdmin && (await countLastingAdmins(tx)) === 1) throw lastAdmin(row.username);
      const expiry_told =
        after.expires_at === before.expires_at
          ? row.expiry_told
          : toldAtFirst(after.expires_at, this.options.clock.now());
      await setOperatorRights(tx, operatorId, { ...after, expiry_told });
      // Tokens are made with the rights of their maker, so they end with them.
      const keepsTokens =
        after.role === 'admin' || isDeepStrictEqual(after, { ...before, expires_at: after.expires_at });
      if (!keepsTokens) await revokeUnusedTokens(tx, this.options.clock.now(), operatorId);
      emit(
        eventOfRequest(context, {
          type: 'operator.rights_changed',
          target: partyOfOperator(row),
          summary: `${context.actor.name} changed what ${row.username} may do: ${sayRights(after)}`,
          metadata: { before: shownLimits(before), after: shownLimits(after) },
        }),
      );
      return readBack(tx, operatorId);
    });
  }

  /**
   * Removes an operator, whose sessions and enrolment tokens end; the record stays. Throws `operator_not_found`,
   * `last_admin`.
   */
  async remove(operatorId: string, context: RequestContext): Promise<void> {
    await this.options.uow.write(async (tx, emit) => {
      const row = await findActiveOperator(tx, operatorId);
      if (!row) throw notFound(operatorId);
      const isLasting = row.role === 'admin' && row.expires_at === null;
      if (isLasting && (await countLastingAdmins(tx)) === 1) throw lastAdmin(row.username);
      const now = this.options.clock.now();
      await markOperatorRemoved(tx, operatorId, { removed_at: now, removed_by: context.actor.id });
      const sessions = await this.options.sessions.revokeAllOf(tx, operatorId);
      const enrolment_tokens = await revokeUnusedTokens(tx, now, operatorId);
      const target = partyOfOperator(row);
      const summary = `${target.name} was removed`;
      emit(
        eventOfRequest(context, {
          type: 'operator.removed',
          target,
          summary,
          metadata: { sessions, enrolment_tokens },
        }),
      );
    });
  }

  /**
   * Gives an operator a new key, and with it a new ID: adds a record with the same name and role, and removes the earlier
   * one, with all that a removal ends, in one transaction. Throws `invalid_key_proof`, and `operator_exists` for a key in use.
   */
  async rotateKey(
    { operator_id: formerId }: Pick<Operator, 'operator_id'>,
    { publicKey, proof }: NewKey,
    context: RequestContext,
  ): Promise<Operator> {
    return this.options.uow.write(async (tx, emit) => {
      const former = await findActiveOperator(tx, formerId);
      if (!former) throw notFound(formerId);
      requireProof(parsePublicKey(former.public_key), { publicKey, proof });
      const operatorId = operatorIdOf(publicKey);
      const ofKey = await findActiveOperator(tx, operatorId);
      if (ofKey) throw keyInUse(ofKey.username);
      const earlier = await findOperator(tx, operatorId);
      const now = this.options.clock.now();
      await markOperatorRemoved(tx, formerId, { removed_at: now, removed_by: formerId });
      const ended = {
        sessions: await this.options.sessions.revokeAllOf(tx, formerId),
        enrolment_tokens: await revokeUnusedTokens(tx, now, formerId),
      };
      const { username } = former;
      this.options.rotations.take(username);
      const kept = { ...limitsOf(former), isRobot: former.robot === 1 };
      const { bootstrap, expiry_told } = former;
      const row = { ...this.rowOf({ publicKey, username, ...kept }, { bootstrap, added_by: formerId }), expiry_told };
      await putOperator(tx, row);
      const added = addedEvent(row, earlier, context);
      emit({ ...added, metadata: { ...added.metadata, rotated_from: formerId } });
      emit(
        eventOfRequest(context, {
          type: 'operator.removed',
          target: partyOfOperator(former),
          summary: `the earlier key of ${username} was retired`,
          metadata: { ...ended, rotated_to: operatorId },
        }),
      );
      return readBack(tx, operatorId);
    });
  }

  /** Returns true when there has never been an operator, so that `bootstrap` may add the first one. */
  isEmpty(): Promise<boolean> {
    return hasNoOperators(this.options.db);
  }

  /** Adds the first admin. Returns null when there is or ever was an operator. Throws as `add` does. */
  async bootstrap(operator: Omit<NewOperator, 'role'>, requestId: string): Promise<Operator | null> {
    const checked = checkOperator({ ...operator, role: 'admin', expiresAt: null });
    return this.options.uow.write(async (tx, emit) => {
      if (!(await hasNoOperators(tx))) return null;
      const row = this.rowOf(checked, { bootstrap: 1, added_by: SYSTEM.id });
      await putOperator(tx, row);
      emit(addedEvent(row, null, { actor: SYSTEM, rights: ALL_RIGHTS, requestId, address: null }));
      return readBack(tx, row.operator_id);
    });
  }

  private rowOf(
    { publicKey, isRobot, ...checked }: Checked,
    made: Pick<NewOperatorRow, 'bootstrap' | 'added_by'>,
  ): NewOperatorRow {
    const now = this.options.clock.now();
    return {
      operator_id: operatorIdOf(publicKey),
      public_key: publicKey,
      ...checked,
      ...made,
      robot: isRobot ? 1 : 0,
      expiry_told: toldAtFirst(checked.expires_at, now),
      added_at: now,
    };
  }

  /**
   * Throws `invalid_expiry` for a new end that is over, and for a robot without one or with one too far ahead; `expiry_beyond_own` when
   * the end of `maker`, the operator who gives it, comes earlier.
   */
  private checkExpiry(
    { role, expires_at, isRobot }: Limits & Pick<Checked, 'isRobot'>,
    maker: OperatorRow | null,
    keepsEnd = false,
  ): void {
    const now = this.options.clock.now();
    if (!keepsEnd && expires_at !== null && expires_at <= now)
      throw badExpiry(`${toTimestamp(expires_at)} is over already`);
    if (isRobot && role === 'admin') throw robotAdmin();
    if (isRobot && (expires_at === null || expires_at > now + ROBOT_LIFE_SECS * 1000)) {
      throw badExpiry('a robot needs an end within 366 days');
    }
    const own = maker?.expires_at ?? null;
    if (own !== null && (expires_at === null || expires_at > own)) throw beyondOwn(own);
  }
}

const badExpiry = (why: string): Fault =>
  new Fault('invalid_expiry', why, { hint: 'give a time ahead: --expires 90d' });

const robotAdmin = (): Fault =>
  new Fault('invalid_role', 'a robot is no admin, because an admin could give rights that outlive the robot', {
    hint: 'give it the role operator',
  });

const roleMissing = (): Fault =>
  new Fault('invalid_role', 'no role was given, and the setting operators.require_role asks for one', {
    hint: `choose one of ${ROLES.join(', ')}`,
  });

const beyondOwn = (own: number): Fault =>
  new Fault('expiry_beyond_own', `your own time ends at ${toTimestamp(own)}, and what you give ends no later`, {
    hint: 'give an earlier end, or ask an admin without one',
    data: { expires_at: toSeconds(own) },
  });

interface NewKey {
  readonly publicKey: PublicKeyHex;
  /** Signature in hex of `rotationMessage`, by the new key. */
  readonly proof: string;
}

function requireProof(former: PublicKeyHex, { publicKey, proof }: NewKey): void {
  if (isSignatureHex(proof) && verifySignature(publicKey, rotationMessage(former, publicKey), proof)) return;
  throw new Fault('invalid_key_proof', 'the proof is no signature of this rotation by the new key', {
    hint: 'rotate with: orch operator rotate',
  });
}

const keyInUse = (username: string): Fault =>
  new Fault('operator_exists', `the public key belongs to ${username} already`, {
    hint: 'every operator needs a key of its own',
  });

interface Limits extends OperatorLimits {
  readonly role: Role;
}

interface Checked extends Limits {
  readonly publicKey: PublicKeyHex;
  readonly username: string;
  readonly isRobot: boolean;
}

function limitsOf(row: OperatorRow): Limits {
  const { role, grants = null } = operatorOfRow(row);
  return { role, grants, expires_at: row.expires_at };
}

/** Returns what a request makes of an operator's role, grants and end. Throws `invalid_role`, `invalid_grant`. */
function checkRights(row: OperatorRow, { role, grants, expiresAt }: NewRights): Limits {
  const before = limitsOf(row);
  const wanted = checkRole(role ?? before.role);
  return {
    role: wanted,
    grants: grants === null ? null : checkGrants(wanted, grants),
    expires_at: expiresAt === undefined ? before.expires_at : millisOf(expiresAt),
  };
}

const millisOf = (seconds: number | null | undefined): number | null => (seconds == null ? null : seconds * 1000);

const shownLimits = ({ role, grants, expires_at }: Limits) => ({
  role,
  grants: grants?.map((grant) => ({ ...grant })) ?? null,
  ...(expires_at !== null && { expires_at: toTimestamp(expires_at) }),
});

/** Validates an operator. Throws `invalid_public_key`, `invalid_username`, `invalid_role`, `invalid_grant`. */
export function checkOperator(operator: NewOperator): Checked {
  const { publicKey, username, role, grants, expiresAt, isRobot = false } = operator;
  const name = username.normalize('NFC');
  if (!isName(name)) {
    throw new Fault('invalid_username', `"${name}" is no username`, {
      hint: 'use 1 to 64 letters, digits, "-" and "_", starting with a letter',
    });
  }
  const wanted = checkRole(role ?? 'operator');
  const checked = grants == null ? null : checkGrants(wanted, grants);
  return {
    publicKey: parsePublicKey(publicKey),
    username: name,
    role: wanted,
    grants: checked,
    expires_at: millisOf(expiresAt),
    isRobot,
  };
}

/** Returns the role. Throws `invalid_role`. */
function checkRole(role: string): Role {
  if (isRole(role)) return role;
  throw new Fault('invalid_role', `"${role}" is no role`, { hint: `choose one of ${ROLES.join(', ')}` });
}

async function refuseDuplicate(tx: Transaction<Database>, { publicKey, username }: Checked): Promise<void> {
  const ofKey = await findActiveOperator(tx, operatorIdOf(publicKey));
  if (ofKey) throw keyInUse(ofKey.username);
  const like = new LookAlikes((await listOperators(tx)).map((row) => row.username)).like(username);
  if (like === null) return;
  const message =
    like === username
      ? `there is an operator ${username} already`
      : `the username ${JSON.stringify(username)} looks like that of the operator ${like}`;
  throw new Fault('operator_exists', message, { hint: 'choose another username' });
}

async function readBack(tx: Transaction<Database>, operatorId: string): Promise<Operator> {
  const row = await findActiveOperator(tx, operatorId);
  if (!row) throw new Error(`operator ${operatorId} is gone within its own transaction`);
  return operatorOfRow(row);
}

/** Builds the audit event; `former` is the record of a removed operator with the same key. */
function addedEvent(row: NewOperatorRow, former: OperatorRow | null, context: RequestContext) {
  const { username, role, public_key, grants = null, expires_at = null, robot } = row;
  const renamed = former === null || former.username === username ? '' : `, formerly ${former.username}`;
  return eventOfRequest(context, {
    type: 'operator.added',
    target: partyOfOperator(row),
    summary: `${username} was added ${former === null ? '' : 'again '}as ${sayRights({ role, grants, expires_at })}${renamed}`,
    metadata: {
      ...{ role, public_key, bootstrap: row.bootstrap === 1, ...(grants !== null && { grants }) },
      ...(robot === 1 && { robot: true }),
      ...(expires_at !== null && { expires_at: toTimestamp(expires_at) }),
      ...(former !== null && { former_name: former.username, former_role: former.role }),
    },
  });
}

const notFound = (operatorId: string): Fault =>
  new Fault('operator_not_found', `there is no operator ${operatorId}`, { hint: 'list them with: orch operator list' });

const lastAdmin = (username: string): Fault =>
  new Fault('last_admin', `${username} is the last admin`, { hint: 'add another admin first' });

function sayRights({ role, grants, expires_at }: OperatorLimits & { readonly role: string }): string {
  const where = grants?.map(({ rights, selector }) => `${rights.join(', ')} on ${selector}`).join('; ');
  const until = expires_at === null ? '' : `, until ${toTimestamp(expires_at)}`;
  return `${role}${where === undefined ? '' : ` for ${where}`}${until}`;
}

/** Returns a function for what a party may do now: null for the orchestrator itself. */
export const rightsOfParties =
  ({ clock }: Pick<Core, 'clock'>) =>
  async (db: Queryable, { id, type }: Party): Promise<Rights | null> =>
    type === 'operator' ? rightsAt(db, id, clock.now()) : null;
