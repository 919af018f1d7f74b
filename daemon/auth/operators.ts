/** Adds, lists and removes operators. */
import { isDeepStrictEqual } from 'node:util';
import type { Transaction } from 'kysely';
import type { Operator } from '../../src/contract/operators.js';
import { type Grant, ROLES, type Role } from '../../src/contract/rights.js';
import { operatorIdOf } from '../../src/identity/key-object.js';
import { rotationMessage } from '../../src/identity/key-rotation.js';
import { isSignatureHex, verifySignature } from '../../src/identity/proof-of-key.js';
import { parsePublicKey } from '../../src/identity/public-key.js';
import { Fault } from '../../src/kernel/fault.js';
import type { PublicKeyHex } from '../../src/kernel/ids.js';
import { isName } from '../../src/kernel/ids.js';
import { LookAlikes } from '../../src/kernel/look-alikes.js';
import type { Core } from '../core/core.js';
import { eventOfRequest, type Party, type RequestContext, SYSTEM } from '../core/domain-event.js';
import { ALL_RIGHTS, checkGrants, Rights } from '../core/rights.js';
import type { Database, Queryable } from '../database/schema.js';
import {
  countActiveAdmins,
  findActiveOperator,
  findOperator,
  hasNoOperators,
  isRole,
  listOperators,
  markOperatorRemoved,
  type NewOperatorRow,
  type OperatorRow,
  operatorOfRow,
  partyOfOperator,
  putOperator,
  revokeUnusedTokens,
  rightsOfRow,
  setOperatorRights,
} from './operator-store.js';
import type { RateLimiter } from './rate-limiter.js';
import type { Sessions } from './sessions.js';

interface OperatorsOptions extends Pick<Core, 'clock' | 'db' | 'uow'> {
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
}

interface NewRights extends Pick<NewOperator, 'role'> {
  readonly grants: readonly Grant[] | null;
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

  /**
   * Adds an operator. A removed key gets its record back, with the given name and role.
   * Throws `invalid_public_key`, `invalid_username`, `invalid_role`, `invalid_grant`, or `operator_exists` for a key or name in use.
   */
  async add(operator: NewOperator, context: RequestContext): Promise<Operator> {
    const checked = checkOperator(operator);
    return this.options.uow.write(async (tx, emit) => {
      await refuseDuplicate(tx, checked);
      const row = this.rowOf(checked, { bootstrap: 0, added_by: context.actor.id });
      const former = await findOperator(tx, row.operator_id);
      await putOperator(tx, row);
      emit(addedEvent(row, former, context));
      return readBack(tx, row.operator_id);
    });
  }

  /**
   * Replaces the role [default: as before] and the grants of an operator. Throws `operator_not_found`, `invalid_role`,
   * `invalid_grant`, `last_admin`.
   */
  async setRights(operatorId: string, { role, grants }: NewRights, context: RequestContext): Promise<Operator> {
    return this.options.uow.write(async (tx, emit) => {
      const row = await findActiveOperator(tx, operatorId);
      if (!row) throw notFound(operatorId);
      const before = operatorOfRow(row);
      const wanted = checkRole(role ?? before.role);
      const after = { role: wanted, grants: grants === null ? null : checkGrants(wanted, grants) };
      if (isDeepStrictEqual(after, { role: before.role, grants: before.grants ?? null })) return before;
      const losesAdmin = before.role === 'admin' && wanted !== 'admin';
      if (losesAdmin && (await countActiveAdmins(tx)) === 1) throw lastAdmin(row.username);
      await setOperatorRights(tx, operatorId, after);
      // Other tokens count only as long as their maker holds what making them takes.
      const endsTokens = losesAdmin || !new Rights(after.role, after.grants).has('enroll');
      if (endsTokens) await revokeUnusedTokens(tx, this.options.clock.now(), operatorId);
      emit(
        eventOfRequest(context, {
          type: 'operator.rights_changed',
          target: partyOfOperator(row),
          summary: `${context.actor.name} changed what ${row.username} may do: ${sayRights(after)}`,
          metadata: {
            before: { role: before.role, grants: before.grants ?? null },
            after: { role: after.role, grants: after.grants?.map((grant) => ({ ...grant })) ?? null },
          },
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
      if (row.role === 'admin' && (await countActiveAdmins(tx)) === 1) throw lastAdmin(row.username);
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
      const { username, role, grants = null } = operatorOfRow(former);
      this.options.rotations.take(username);
      const row = this.rowOf(
        { publicKey, username, role, grants },
        { bootstrap: former.bootstrap, added_by: formerId },
      );
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
    const checked = checkOperator({ ...operator, role: 'admin' });
    return this.options.uow.write(async (tx, emit) => {
      if (!(await hasNoOperators(tx))) return null;
      const row = this.rowOf(checked, { bootstrap: 1, added_by: SYSTEM.id });
      await putOperator(tx, row);
      emit(addedEvent(row, null, { actor: SYSTEM, rights: ALL_RIGHTS, requestId, address: null }));
      return readBack(tx, row.operator_id);
    });
  }

  private rowOf(
    { publicKey, username, role, grants }: Checked,
    made: Pick<NewOperatorRow, 'bootstrap' | 'added_by'>,
  ): NewOperatorRow {
    const added_at = this.options.clock.now();
    return {
      operator_id: operatorIdOf(publicKey),
      public_key: publicKey,
      ...{ username, role, added_at, ...made },
      grants,
    };
  }
}

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

interface Checked {
  readonly publicKey: PublicKeyHex;
  readonly username: string;
  readonly role: Role;
  readonly grants: readonly Grant[] | null;
}

/** Validates an operator. Throws `invalid_public_key`, `invalid_username`, `invalid_role`, `invalid_grant`. */
export function checkOperator({ publicKey, username, role, grants }: NewOperator): Checked {
  const name = username.normalize('NFC');
  if (!isName(name)) {
    throw new Fault('invalid_username', `"${name}" is no username`, {
      hint: 'use 1 to 64 letters, digits, "-" and "_", starting with a letter',
    });
  }
  const wanted = checkRole(role ?? 'operator');
  const checked = grants == null ? null : checkGrants(wanted, grants);
  return { publicKey: parsePublicKey(publicKey), username: name, role: wanted, grants: checked };
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
  const { username, role, public_key } = row;
  const { grants = null } = row;
  const renamed = former === null || former.username === username ? '' : `, formerly ${former.username}`;
  return eventOfRequest(context, {
    type: 'operator.added',
    target: partyOfOperator(row),
    summary: `${username} was added ${former === null ? '' : 'again '}as ${sayRights({ role, grants })}${renamed}`,
    metadata: {
      ...{ role, public_key, bootstrap: row.bootstrap === 1, ...(grants !== null && { grants }) },
      ...(former !== null && { former_name: former.username, former_role: former.role }),
    },
  });
}

const notFound = (operatorId: string): Fault =>
  new Fault('operator_not_found', `there is no operator ${operatorId}`, { hint: 'list them with: orch operator list' });

const lastAdmin = (username: string): Fault =>
  new Fault('last_admin', `${username} is the last admin`, { hint: 'add another admin first' });

const sayRights = ({ role, grants }: { readonly role: string; readonly grants: readonly Grant[] | null }): string =>
  grants === null
    ? role
    : `${role} for ${grants.map(({ rights, selector }) => `${rights.join(', ')} on ${selector}`).join('; ')}`;

/** Returns what a party may do now: null for the orchestrator itself, and no right for an operator who was removed. */
export async function rightsOfParty(db: Queryable, { id, type }: Party): Promise<Rights | null> {
  if (type !== 'operator') return null;
  const row = await findActiveOperator(db, id);
  return row === null ? new Rights('viewer', []) : rightsOfRow(row);
}
