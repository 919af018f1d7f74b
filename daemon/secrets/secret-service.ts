/** Secrets: create, list, change and delete. A value goes in and is never given out. */
import type { CreateSecret, Secret, UpdateSecret } from '../../src/contract/secrets.js';
import { toTimestamp } from '../../src/kernel/clock.js';
import { Fault } from '../../src/kernel/fault.js';
import type { JsonObject } from '../../src/kernel/json.js';
import type { Core } from '../core/core.js';
import { eventOfRequest, type RequestContext, SYSTEM } from '../core/domain-event.js';
import type { Queryable } from '../database/schema.js';
import type { Keyring } from './keyring.js';
import { applyChange, readChange } from './secret-change.js';
import { checkName, checkValue } from './secret-input.js';
import { restrictionOf, secretNotFound, secretParty, secretView } from './secret-record.js';
import {
  deleteSecret,
  expiredSecrets,
  findSecret,
  insertSecret,
  listSecrets,
  type SecretRow,
  updateSecret,
} from './secret-store.js';

export interface SecretServiceOptions extends Pick<Core, 'ageTime' | 'clock' | 'db' | 'newId' | 'uow'> {
  readonly keyring: Keyring;
}

export class SecretService {
  private readonly options: SecretServiceOptions;

  constructor(options: SecretServiceOptions) {
    this.options = options;
  }

  /** By name. */
  async list(): Promise<Secret[]> {
    return (await listSecrets(this.options.db)).map(secretView);
  }

  /** Throws `secret_not_found`. */
  async get(name: string): Promise<Secret> {
    return secretView(await requireSecret(this.options.db, name));
  }

  /** Throws `invalid_name`, `invalid_body`, `invalid_restriction`, `invalid_selector`, `secret_exists`. */
  async create(given: CreateSecret, context: RequestContext): Promise<Secret> {
    checkName(given.name);
    checkValue(given.value);
    const { uow } = this.options;
    const row = this.newRow(given, context);
    await uow.write(async (tx, emit) => {
      if ((await findSecret(tx, row.name)) !== null) throw secretExists(row.name);
      await insertSecret(tx, row);
      emit(
        eventOfRequest(context, {
          type: 'secret.created',
          target: secretParty(row.name),
          summary: `${context.actor.name} created the secret ${row.name}`,
          metadata: detailsOf(row),
        }),
      );
    });
    return secretView(row);
  }

  /**
   * What is left out stays, null clears; there is always a value. The same again changes nothing.
   * Throws `secret_not_found`, `invalid_body`, `invalid_restriction`, `invalid_selector`, `secrets_locked`.
   */
  async update(name: string, given: UpdateSecret, context: RequestContext): Promise<Secret> {
    if (typeof given.value === 'string') checkValue(given.value);
    const change = readChange(given);
    const { uow, clock, keyring } = this.options;
    return uow.write(async (tx, emit) => {
      const before = await requireSecret(tx, name);
      const { row, changed } = applyChange(before, {
        change,
        value: given.value ?? null,
        actor: context.actor,
        clock,
        keyring,
      });
      if (changed.length === 0) return secretView(before);
      await updateSecret(tx, row.secret_id, withoutKeys(row));
      emit(
        eventOfRequest(context, {
          type: 'secret.updated',
          target: secretParty(name),
          summary: `${context.actor.name} changed ${changed.join(', ')} of the secret ${name}`,
          metadata: { changed, ...detailsOf(row) },
        }),
      );
      return secretView(row);
    });
  }

  /** Throws `secret_not_found`. What was applied with it stays where it is. */
  async remove(name: string, context: RequestContext): Promise<void> {
    await this.options.uow.write(async (tx, emit) => {
      const { secret_id } = await requireSecret(tx, name);
      await deleteSecret(tx, secret_id);
      emit(
        eventOfRequest(context, {
          type: 'secret.deleted',
          target: secretParty(name),
          summary: `${context.actor.name} deleted the secret ${name}`,
        }),
      );
    });
  }

  /** Tells the audit log of every secret that has expired since the last time; to be called each minute. */
  async tellExpired(): Promise<void> {
    const { db, uow, ageTime } = this.options;
    if ((await expiredSecrets(db, ageTime())).length === 0) return;
    await uow.write(async (tx, emit) => {
      for (const { secret_id, name, expires_at } of await expiredSecrets(tx, ageTime())) {
        await updateSecret(tx, secret_id, { expiry_told: 1 });
        emit({
          type: 'secret.expired',
          actor: SYSTEM,
          target: secretParty(name),
          summary: `the secret ${name} has expired`,
          metadata: { expires_at: toTimestamp(expires_at ?? 0) },
        });
      }
    });
  }

  private newRow(given: CreateSecret, { actor }: RequestContext): SecretRow {
    const { clock, newId, keyring } = this.options;
    const now = clock.now();
    const { description, expires_at, restriction_json } = readChange(given);
    const place = { secret_id: newId(), name: given.name, row_version: 1 };
    return {
      ...place,
      ...keyring.seal(given.value, { recordId: place.secret_id, name: place.name, version: 1 }),
      description: description ?? null,
      expires_at: expires_at ?? null,
      expiry_told: 0,
      restriction_json: restriction_json ?? null,
      created_at: now,
      created_by: actor.id,
      updated_at: now,
      updated_by: actor.id,
    };
  }
}

const withoutKeys = ({ secret_id: _id, name: _name, ...rest }: SecretRow) => rest;

function detailsOf(row: SecretRow): JsonObject {
  const restriction = restrictionOf(row);
  return {
    expires_at: row.expires_at === null ? null : toTimestamp(row.expires_at),
    restriction: restriction === null ? null : { ...restriction },
  };
}

async function requireSecret(db: Queryable, name: string): Promise<SecretRow> {
  const row = await findSecret(db, name);
  if (row === null) throw secretNotFound(name);
  return row;
}

const secretExists = (name: string): Fault =>
  new Fault('secret_exists', `there is a secret "${name}" already`, { hint: 'change it instead' });
