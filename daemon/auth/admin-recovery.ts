/** Recovers admin access from the orchestrator's host: makes a public key an active admin. */

import { operatorIdOf } from '../../src/identity/key-object.js';
import { parsePublicKey } from '../../src/identity/public-key.js';
import { Fault } from '../../src/kernel/fault.js';
import type { RecoveredAdmin } from '../../src/programs/store.js';
import type { Core } from '../core/core.js';
import { eventOfRequest, SYSTEM } from '../core/domain-event.js';
import { ALL_RIGHTS } from '../core/rights.js';
import type { Queryable } from '../database/schema.js';
import {
  findActiveOperatorByName,
  findOperator,
  type OperatorRow,
  partyOfOperator,
  putOperator,
  setOperatorRights,
} from './operator-store.js';
import { checkOperator } from './operators.js';

type AdminRecoveryOptions = Pick<Core, 'clock' | 'db' | 'uow'>;

export interface WantedAdmin {
  /** Hex, or a line of an OpenSSH `.pub` file. */
  readonly publicKey: string;
  /** Username; null keeps the key's former name, or uses `admin`. */
  readonly username: string | null;
}

const STANDARD_NAME = 'admin';

export class AdminRecovery {
  private readonly options: AdminRecoveryOptions;

  constructor(options: AdminRecoveryOptions) {
    this.options = options;
  }

  /**
   * Returns what `recover` would do, without a change. Throws `invalid_public_key`, `invalid_username`, or
   * `operator_exists` when another operator has the name or the key has another name.
   */
  preview(wanted: WantedAdmin): Promise<RecoveredAdmin> {
    return find(this.options.db, wanted);
  }

  /** Makes the key an active admin. Throws as `preview` does. */
  recover(wanted: WantedAdmin, requestId: string): Promise<RecoveredAdmin> {
    const { uow, clock } = this.options;
    return uow.write(async (tx, emit) => {
      const found = await find(tx, wanted);
      const { operator_id, username, public_key, change, former_role } = found;
      if (change === 'none') return found;
      const row = { operator_id, username, public_key, role: 'admin', bootstrap: 0 };
      if (change === 'added') await putOperator(tx, { ...row, added_at: clock.now(), added_by: SYSTEM.id });
      else await setOperatorRights(tx, operator_id, { role: 'admin', grants: null, expires_at: null, robot: 0 });
      const metadata = { role: 'admin', former_role, public_key, bootstrap: false, recovery: true };
      emit(
        eventOfRequest(
          { actor: SYSTEM, rights: ALL_RIGHTS, requestId, address: null },
          {
            type: 'operator.added',
            target: partyOfOperator(row),
            summary: `${username} was made an admin on the host of the orchestrator (recover-admin)`,
            metadata,
          },
        ),
      );
      return found;
    });
  }
}

async function find(db: Queryable, { publicKey, username }: WantedAdmin): Promise<RecoveredAdmin> {
  const key = parsePublicKey(publicKey, 'PUBLIC_KEY');
  const former = await findOperator(db, operatorIdOf(key));
  const active = former !== null && former.removed_at === null ? former : null;
  const found = { operator_id: operatorIdOf(key), public_key: key };
  if (active !== null) {
    if (username !== null && username !== active.username) throw otherName(active);
    const isLasting = active.role === 'admin' && active.expires_at === null;
    const change = isLasting ? 'none' : 'role_changed';
    return { ...found, username: active.username, change, former_role: active.role };
  }
  const name = checkOperator({ publicKey, username: username ?? former?.username ?? STANDARD_NAME }).username;
  if ((await findActiveOperatorByName(db, name)) !== null) {
    throw new Fault('operator_exists', `there is an operator ${name} already, with another key`, {
      hint: 'name this one with --username',
    });
  }
  return { ...found, username: name, change: 'added', former_role: null };
}

const otherName = ({ username }: OperatorRow): Fault =>
  new Fault('operator_exists', `the public key belongs to ${username} already, and names never change`, {
    hint: 'leave --username out',
  });
