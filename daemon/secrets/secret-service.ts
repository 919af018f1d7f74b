/** Creates, lists, changes and deletes secrets; their values are write-only. */
import { isDeepStrictEqual } from 'node:util';
import {
  type CreateSecret,
  MAX_SECRET_BYTES,
  type Restriction,
  type Secret,
  type SecretUsage,
  type secretRoutes,
  type UpdateSecret,
} from '../../src/contract/secrets.js';
import { toTimestamp } from '../../src/kernel/clock.js';
import { Fault, isFault } from '../../src/kernel/fault.js';
import { isSecretName } from '../../src/kernel/ids.js';
import type { JsonObject } from '../../src/kernel/json.js';
import { LookAlikes } from '../../src/kernel/look-alikes.js';
import type { Core } from '../core/core.js';
import { eventOfRequest, type Party, type RequestContext, SYSTEM } from '../core/domain-event.js';
import { requireMatch, type Tagged, tagged } from '../core/entity-tag.js';
import type { Queryable } from '../database/schema.js';
import type { Machines } from '../fleet/machines.js';
import type { HandlersFor } from '../http/handler.js';
import { parseTimestamp } from '../http/parse-timestamp.js';
import type { Keyring } from './keyring.js';
import { readRestriction, refuseBeyond } from './restriction.js';
import {
  deleteSecret,
  expiredSecrets,
  findSecret,
  insertSecret,
  listSecrets,
  type SecretRow,
  sealedRecordOf,
  secretNotFound,
  secretParty,
  secretView,
  updateSecret,
} from './secret-store.js';

interface SecretServiceOptions extends Pick<Core, 'ageTime' | 'clock' | 'db' | 'newId' | 'uow'> {
  readonly keyring: Keyring;
}

export class SecretService {
  private readonly options: SecretServiceOptions;

  constructor(options: SecretServiceOptions) {
    this.options = options;
  }

  /** Returns all secrets without their values, ordered by name. */
  async list(): Promise<Secret[]> {
    return (await listSecrets(this.options.db)).map(secretView);
  }

  /** Returns a secret without its value. Throws `secret_not_found`. */
  async get(name: string): Promise<Tagged<Secret>> {
    return shown(await requireSecret(this.options.db, name));
  }

  /**
   * Creates a secret and returns it.
   * Throws `invalid_name`, `invalid_body`, `invalid_restriction`, `invalid_selector`, `secret_exists`, `not_granted`.
   */
  async create(given: CreateSecret, context: RequestContext): Promise<Tagged<Secret>> {
    checkName(given.name);
    checkValue(given.value);
    const { uow } = this.options;
    const row = this.newRow(given, context);
    await uow.write(async (tx, emit) => {
      await refuseBeyond(tx, context.rights, row);
      if ((await findSecret(tx, row.name)) !== null) throw secretExists(row.name);
      const like = new LookAlikes((await listSecrets(tx)).map((one) => one.name)).like(row.name);
      if (like !== null) throw looksLike(row.name, like);
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
    return shown(row);
  }

  /**
   * Changes a secret and returns it. Absent members stay and null clears a member, but never the value. Idempotent.
   * Throws `secret_not_found`, `invalid_body`, `invalid_restriction`, `invalid_selector`, `secrets_locked`,
   * `precondition_failed`, `not_granted`.
   */
  async update(name: string, given: UpdateSecret, context: RequestContext): Promise<Tagged<Secret>> {
    if (typeof given.value === 'string') checkValue(given.value);
    const change = readChange(given);
    const { uow, clock, keyring } = this.options;
    return uow.write(async (tx, emit) => {
      const before = await requireSecret(tx, name);
      // Before the values are compared, which would tell whether a guess is right.
      await refuseBeyond(tx, context.rights, before);
      requireMatch(context, `the secret ${name}`, contentOf(before));
      const { row, changed } = applyChange(before, {
        change,
        value: given.value ?? null,
        actor: context.actor,
        clock,
        keyring,
      });
      if (changed.length === 0) return shown(before);
      await refuseBeyond(tx, context.rights, row);
      await updateSecret(tx, row.secret_id, withoutKeys(row));
      emit(
        eventOfRequest(context, {
          type: 'secret.updated',
          target: secretParty(name),
          summary: `${context.actor.name} changed ${changed.join(', ')} of the secret ${name}`,
          metadata: { changed, ...detailsOf(row) },
        }),
      );
      return shown(row);
    });
  }

  /** Deletes a secret. Resources that were applied with it stay. Throws `secret_not_found`, `not_granted`. */
  async remove(name: string, context: RequestContext): Promise<void> {
    await this.options.uow.write(async (tx, emit) => {
      const row = await requireSecret(tx, name);
      await refuseBeyond(tx, context.rights, row);
      requireMatch(context, `the secret ${name}`, contentOf(row));
      await deleteSecret(tx, row.secret_id);
      emit(
        eventOfRequest(context, {
          type: 'secret.deleted',
          target: secretParty(name),
          summary: `${context.actor.name} deleted the secret ${name}`,
        }),
      );
    });
  }

  /** Emits an event for each secret that expired since the last call; called each minute. */
  async emitExpired(): Promise<void> {
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
    const { description, expires_at, restriction } = readChange(given);
    const place = { secret_id: newId(), name: given.name, row_version: 1 };
    return {
      ...place,
      ...keyring.seal(given.value, { recordId: place.secret_id, name: place.name, version: 1 }),
      description: description ?? null,
      expires_at: expires_at ?? null,
      expiry_told: 0,
      restriction: restriction ?? null,
      created_at: now,
      created_by: actor.id,
      updated_at: now,
      updated_by: actor.id,
    };
  }
}

/** Returns what a change of a secret can replace; its version rises with each of them. */
const contentOf = ({ secret_id, row_version }: SecretRow) => ({ secret_id, row_version });

const shown = (row: SecretRow): Tagged<Secret> => tagged(secretView(row), contentOf(row));

const withoutKeys = ({ secret_id: _id, name: _name, ...rest }: SecretRow) => rest;

function detailsOf(row: SecretRow): JsonObject {
  const { restriction } = row;
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

const looksLike = (name: string, like: string): Fault =>
  new Fault('secret_exists', `the name "${name}" looks like that of the secret "${like}"`, {
    hint: 'choose a name that people can tell apart from it',
    data: { name: like },
  });

interface SecretHandlersOptions {
  readonly secrets: SecretService;
  readonly machines: Pick<Machines, 'all'>;
  /** Returns the usage of a secret. Throws `secret_not_found`. */
  readonly usage: (name: string) => Promise<SecretUsage>;
}

/** Returns the route handlers of secrets. */
export const secretHandlers = ({
  secrets,
  machines,
  usage,
}: SecretHandlersOptions): HandlersFor<typeof secretRoutes> => ({
  listSecrets: async () => ({ status: 200, body: await secrets.list() }),
  createSecret: async ({ body, context }) => ({ status: 201, ...(await secrets.create(body, context)) }),
  getSecret: async ({ params }) => ({ status: 200, ...(await secrets.get(params.name)) }),
  updateSecret: async ({ params, body, context }) => ({
    status: 200,
    ...(await secrets.update(params.name, body, context)),
  }),
  removeSecret: async ({ params, context }) => {
    await secrets.remove(params.name, context);
    return { status: 204, body: undefined };
  },
  getSecretUsage: async ({ params, rights }) => {
    const body = await usage(params.name);
    if (!rights.isLimited) return { status: 200, body };
    const shown = new Set((await machines.all(rights)).map(({ nodeId }) => nodeId));
    return { status: 200, body: { ...body, agents: body.agents.filter(({ node_id }) => shown.has(node_id)) } };
  },
});

/** Changed members of a row; absent members stay. */
interface Change {
  readonly description?: string | null;
  readonly expires_at?: number | null;
  readonly restriction?: Restriction | null;
}

const FIELDS = [
  ['description', 'the description'],
  ['expires_at', 'the expiry'],
  ['restriction', 'the restriction'],
] as const satisfies readonly (readonly [keyof Change, string])[];

/** Returns the changed members. Throws `invalid_body`, `invalid_restriction`, `invalid_selector`. */
function readChange({ description, expires_at, restriction }: Omit<UpdateSecret, 'value'>): Change {
  return {
    ...(description === undefined ? {} : { description }),
    ...(expires_at === undefined ? {} : { expires_at: readExpiry(expires_at) }),
    ...(restriction === undefined ? {} : { restriction: readRestriction(restriction) }),
  };
}

interface ChangeOptions extends Pick<Core, 'clock'> {
  readonly change: Change;
  /** New value; null keeps the old one. */
  readonly value: string | null;
  readonly actor: Party;
  readonly keyring: Keyring;
}

interface Changed {
  readonly row: SecretRow;
  /** Phrases that name the changed parts; empty for an unchanged row. */
  readonly changed: readonly string[];
}

/**
 * Returns the changed row. Reseals the value for each row version, so that an older sealed value does not open in a
 * newer row. Throws `secrets_locked` when the old value is kept and cannot be decrypted.
 */
function applyChange(before: SecretRow, { change, value, actor, clock, keyring }: ChangeOptions): Changed {
  const isNewValue = value !== null && value !== readable(before, keyring);
  const fields = FIELDS.filter(
    ([name]) => change[name] !== undefined && !isDeepStrictEqual(change[name], before[name]),
  );
  const changed = [...(isNewValue ? ['the value'] : []), ...fields.map(([, title]) => title)];
  if (changed.length === 0) return { row: before, changed };
  const row_version = before.row_version + 1;
  const text = isNewValue ? value : keyring.open(before, sealedRecordOf(before));
  const sealed = keyring.seal(text, sealedRecordOf({ ...before, row_version }));
  const isSameExpiry = change.expires_at === undefined || change.expires_at === before.expires_at;
  const expiry_told = isSameExpiry ? before.expiry_told : 0;
  const updated = { row_version, expiry_told, updated_at: clock.now(), updated_by: actor.id };
  return { row: { ...before, ...change, ...sealed, ...updated }, changed };
}

/** Returns the value; null when it cannot be decrypted, which setting a new value repairs. */
function readable(row: SecretRow, keyring: Keyring): string | null {
  try {
    return keyring.open(row, sealedRecordOf(row));
  } catch (error) {
    if (isFault(error, 'secrets_locked')) return null;
    throw error;
  }
}

/** Throws `invalid_name` for a name that is not valid. */
function checkName(name: string): void {
  if (isSecretName(name)) return;
  throw new Fault('invalid_name', `${JSON.stringify(name.slice(0, 200))} cannot be the name of a secret`, {
    hint: 'use 1 to 128 of A-Z a-z 0-9 _ . - and begin with a letter or _',
    errors: [{ path: '/name', message: 'must be 1 to 128 of A-Z a-z 0-9 _ . - and begin with a letter or _' }],
  });
}

/** Throws `invalid_body` for a value that is empty, too long or not valid Unicode. */
function checkValue(value: string): void {
  const bytes = Buffer.byteLength(value, 'utf8');
  if (value === '')
    throw invalid(
      '/value',
      'is empty: a variable that is not set looks like that, and there is nothing in it to keep secret',
    );
  if (bytes > MAX_SECRET_BYTES) throw invalid('/value', `has ${bytes} bytes, and ${MAX_SECRET_BYTES} are the most`);
  if (/\p{Surrogate}/u.test(value)) throw invalid('/value', 'is not valid Unicode text');
}

/** Returns the expiry in Unix milliseconds; null for none. Throws `invalid_body`. */
function readExpiry(text: string | null): number | null {
  if (text === null) return null;
  const time = parseTimestamp(text);
  if (time === null) throw invalid('/expires_at', 'is not an RFC 3339 timestamp such as 2030-01-31T12:00:00Z');
  return time;
}

const invalid = (path: string, message: string): Fault =>
  new Fault('invalid_body', `the body is not valid: ${path} ${message}`, { errors: [{ path, message }] });
