/** Adds, lists and removes operators. */
import type { Transaction } from 'kysely';
import { type Operator, ROLES, type Role } from '../../src/contract/operators.js';
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
import type { Database, NewRow, Queryable } from '../database/schema.js';
import {
  countActiveAdmins,
  findActiveOperator,
  findOperator,
  hasNoOperators,
  isRole,
  listOperators,
  markOperatorRemoved,
  type OperatorRow,
  operatorOfRow,
  partyOfOperator,
  putOperator,
  revokeUnusedTokens,
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
   * Throws `invalid_public_key`, `invalid_username`, `invalid_role`, or `operator_exists` for a key or name in use.
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
      const { username, role } = operatorOfRow(former);
      this.options.rotations.take(username);
      const row = this.rowOf({ publicKey, username, role }, { bootstrap: former.bootstrap, added_by: formerId });
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
      emit(addedEvent(row, null, { actor: SYSTEM, requestId, address: null }));
      return readBack(tx, row.operator_id);
    });
  }

  private rowOf(
    { publicKey, username, role }: Checked,
    made: Pick<NewRow<'operators'>, 'bootstrap' | 'added_by'>,
  ): NewRow<'operators'> {
    const added_at = this.options.clock.now();
    return { operator_id: operatorIdOf(publicKey), public_key: publicKey, username, role, added_at, ...made };
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
}

/** Validates an operator. Throws `invalid_public_key`, `invalid_username`, `invalid_role`. */
export function checkOperator({ publicKey, username, role }: NewOperator): Checked {
  const name = username.normalize('NFC');
  if (!isName(name)) {
    throw new Fault('invalid_username', `"${name}" is no username`, {
      hint: 'use 1 to 64 letters, digits, "-" and "_", starting with a letter',
    });
  }
  const wanted = role ?? 'operator';
  if (!isRole(wanted)) {
    throw new Fault('invalid_role', `"${wanted}" is no role`, { hint: `choose one of ${ROLES.join(', ')}` });
  }
  return { publicKey: parsePublicKey(publicKey), username: name, role: wanted };
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
function addedEvent(row: NewRow<'operators'>, former: OperatorRow | null, context: RequestContext) {
  const { username, role, public_key } = row;
  const renamed = former === null || former.username === username ? '' : `, formerly ${former.username}`;
  return eventOfRequest(context, {
    type: 'operator.added',
    target: partyOfOperator(row),
    summary: `${username} was added ${former === null ? '' : 'again '}as ${role}${renamed}`,
    metadata: {
      ...{ role, public_key, bootstrap: row.bootstrap === 1 },
      ...(former !== null && { former_name: former.username, former_role: former.role }),
    },
  });
}

const notFound = (operatorId: string): Fault =>
  new Fault('operator_not_found', `there is no operator ${operatorId}`, { hint: 'list them with: orch operator list' });

const lastAdmin = (username: string): Fault =>
  new Fault('last_admin', `${username} is the last admin`, { hint: 'add another admin first' });

/** Returns true while this party may apply: an operator who is not removed and no viewer, or the orchestrator itself. */
export async function mayApply(db: Queryable, { id, type }: Party): Promise<boolean> {
  if (type !== 'operator') return true;
  const row = await findActiveOperator(db, id);
  return row !== null && operatorOfRow(row).role !== 'viewer';
}
