/** `Idempotency-Key`: a write repeated with the same key runs once and gets the same answer each time. */
import { createHmac } from 'node:crypto';
import type { Clock } from '../../src/kernel/clock.js';
import { Fault, messageOf } from '../../src/kernel/fault.js';
import { canonicalJson } from '../../src/kernel/json.js';
import type { Logger } from '../../src/kernel/logger.js';
import { preparedQuery } from '../database/prepared-query.js';
import type { Queryable, Row } from '../database/schema.js';
import { JSON_TYPE, PROBLEM_TYPE, type Rendered } from './rendered.js';

interface IdempotencySlot {
  readonly operator_id: string;
  readonly key: string;
}

interface StoredRequest {
  readonly route: string;
  readonly request_hash: string;
  /** HTTP status; null while the request has no answer yet. */
  readonly status: number | null;
  readonly body_json: string | null;
}

/** Store of first answers. */
export interface IdempotencyKeys {
  /**
   * Persistent secret of 32 bytes. Hashes of requests are keyed with it, so that the store reveals nothing about
   * their bodies.
   */
  readonly hashKey: Uint8Array;
  /**
   * Reserves the slot for a new request. Returns null, or the request that reserved it at or after `validSince` (Unix
   * milliseconds).
   */
  reserve(
    request: IdempotencySlot & { readonly route: string; readonly request_hash: string; readonly created_at: number },
    validSince: number,
  ): Promise<StoredRequest | null>;
  complete(
    slot: IdempotencySlot,
    answer: { readonly status: number; readonly body_json: string | null },
  ): Promise<void>;
  release(slot: IdempotencySlot): Promise<void>;
}

interface IdempotentRequest {
  readonly operatorId: string;
  readonly key: string;
  readonly route: string;
  /** Everything that distinguishes this request from another. */
  readonly content: unknown;
  /** True when a successful answer holds a secret: then only its completion is stored, not the answer. */
  readonly isSecret: boolean;
}

export interface Outcome {
  readonly rendered: Rendered;
  /** True when the request did not run and this is the answer of an earlier one. */
  readonly replayed: boolean;
}

const VALID_FOR_MS = 24 * 3600 * 1000;
const KEY = /^[\x21-\x7e]{1,255}$/;

/** Returns the key of a request, or null when it has none. Throws `bad_request` for a malformed key. */
export function idempotencyKeyOf(header: string | readonly string[] | undefined): string | null {
  if (header === undefined) return null;
  if (typeof header === 'string' && KEY.test(header)) return header;
  throw new Fault('bad_request', 'the Idempotency-Key is not 1 to 255 visible ASCII characters', {
    hint: 'send a fresh random value with each new write',
  });
}

interface Running {
  readonly identity: string;
  readonly outcome: Promise<Rendered>;
}

/** Runs requests with an Idempotency-Key. */
export class IdempotentRequests {
  private readonly running = new Map<string, Running>();
  private readonly keys: IdempotencyKeys;
  private readonly clock: Clock;
  private readonly logger: Logger;

  constructor(options: { readonly keys: IdempotencyKeys; readonly clock: Clock; readonly logger: Logger }) {
    this.keys = options.keys;
    this.clock = options.clock;
    this.logger = options.logger;
  }

  /**
   * Returns the first answer to this request: from `produce`, which never rejects, or from an earlier request,
   * waiting for one in flight. Answers of 500 and above are not stored.
   * Throws `idempotency_conflict` when the key belongs to another request, or to one whose answer was lost or is
   * secret.
   */
  async run(request: IdempotentRequest, produce: () => Promise<Rendered>): Promise<Outcome> {
    const slot = `${request.operatorId} ${request.key}`;
    const hash = createHmac('sha256', this.keys.hashKey).update(canonicalJson(request.content)).digest('hex');
    const identity = `${request.route} ${hash}`;
    const earlier = this.running.get(slot);
    if (earlier) {
      if (earlier.identity !== identity) throw conflict();
      return { rendered: await earlier.outcome, replayed: true };
    }
    let replayed = false;
    const outcome = this.first(request, hash, produce, () => {
      replayed = true;
    }).finally(() => this.running.delete(slot));
    this.running.set(slot, { identity, outcome });
    return { rendered: await outcome, replayed };
  }

  private async first(
    { operatorId, key, route, isSecret }: IdempotentRequest,
    hash: string,
    produce: () => Promise<Rendered>,
    onReplay: () => void,
  ): Promise<Rendered> {
    const slot = { operator_id: operatorId, key };
    const now = this.clock.now();
    const reservation = { ...slot, route, request_hash: hash, created_at: now };
    const known = await this.keys.reserve(reservation, now - VALID_FOR_MS);
    if (known) {
      onReplay();
      const answer = storedAnswer(known, reservation);
      if (isSecret && answer.status < 400) throw givenOnce();
      return answer;
    }
    const rendered = await produce();
    await this.keep(slot, isSecret && rendered.status < 400 ? { ...rendered, payload: null } : rendered);
    return rendered;
  }

  private async keep(slot: IdempotencySlot, { status, payload }: Rendered): Promise<void> {
    try {
      if (status >= 500) await this.keys.release(slot);
      else await this.keys.complete(slot, { status, body_json: payload });
    } catch (error) {
      this.logger.error('the answer to an Idempotency-Key could not be kept', { reason: messageOf(error) });
    }
  }
}

function storedAnswer(
  known: StoredRequest,
  wanted: { readonly route: string; readonly request_hash: string },
): Rendered {
  if (known.route !== wanted.route || known.request_hash !== wanted.request_hash) throw conflict();
  if (known.status === null) throw lost();
  const type = known.status >= 400 ? PROBLEM_TYPE : JSON_TYPE;
  const headers: Readonly<Record<string, string>> = known.body_json === null ? {} : { 'content-type': type };
  return { status: known.status, headers, payload: known.body_json };
}

const conflict = (): Fault =>
  new Fault('idempotency_conflict', 'this Idempotency-Key was used for another request', {
    hint: 'send a fresh key with each new write',
    data: { reason: 'different_request' },
  });

const givenOnce = (): Fault =>
  new Fault(
    'idempotency_conflict',
    'this request was done before, and its answer held a secret that is given only once',
    {
      hint: 'take back what it made, and send the request with a fresh key',
      data: { reason: 'answer_secret' },
    },
  );

const lost = (): Fault =>
  new Fault(
    'idempotency_conflict',
    'the first request with this Idempotency-Key was cut off before its answer was kept',
    {
      hint: 'look at what it did, then repeat it with a fresh key if that is needed',
      data: { reason: 'answer_lost' },
    },
  );

/** A stored answer to a request with an `Idempotency-Key`. Its `body_json` is the text that was sent. */
type IdempotencyRow = Row<'idempotency_keys'>;

/** Key of one operator. */
type IdempotencyKey = Pick<IdempotencyRow, 'operator_id' | 'key'>;

interface Reservation extends IdempotencyKey {
  readonly route: string;
  readonly request_hash: string;
  readonly created_at: number;
}

/**
 * Reserves a key for a new request. Returns null when it was free, else the request that holds it, with its answer or
 * with `status` null while in flight. Reservations from before `validSince` (Unix milliseconds) are ignored.
 */
export async function reserveIdempotencyKey(
  db: Queryable,
  reservation: Reservation,
  validSince: number,
): Promise<IdempotencyRow | null> {
  const { operator_id, key, route, request_hash, created_at } = reservation;
  const [reserved] = await putReservation(db, operator_id, key, route, request_hash, created_at, validSince);
  return reserved === undefined ? findIdempotencyKey(db, reservation) : null;
}

const putReservation = preparedQuery(
  (db, operator_id: string, key: string, route: string, request_hash: string, created_at: number, validSince: number) =>
    db
      .insertInto('idempotency_keys')
      .values({ operator_id, key, route, request_hash, created_at, status: null, body_json: null })
      .onConflict((conflict) =>
        conflict
          .columns(['operator_id', 'key'])
          .doUpdateSet({ route, request_hash, created_at, status: null, body_json: null })
          .where('idempotency_keys.created_at', '<', validSince),
      )
      .returning('key'),
);

export async function findIdempotencyKey(db: Queryable, key: IdempotencyKey): Promise<IdempotencyRow | null> {
  const query = db.selectFrom('idempotency_keys').selectAll().where('operator_id', '=', key.operator_id);
  return (await query.where('key', '=', key.key).executeTakeFirst()) ?? null;
}

/** Stores the answer of the request that reserved the key. */
export async function completeIdempotencyKey(
  db: Queryable,
  key: IdempotencyKey,
  answer: Pick<IdempotencyRow, 'status' | 'body_json'>,
): Promise<void> {
  await storeAnswer(db, answer.status, answer.body_json, key.operator_id, key.key);
}

const storeAnswer = preparedQuery(
  (db, status: number | null, body_json: string | null, operatorId: string, key: string) =>
    db
      .updateTable('idempotency_keys')
      .set({ status, body_json })
      .where('operator_id', '=', operatorId)
      .where('key', '=', key),
);

/** Releases a key whose request failed and may be retried. */
export async function releaseIdempotencyKey(db: Queryable, key: IdempotencyKey): Promise<void> {
  const query = db.deleteFrom('idempotency_keys').where('operator_id', '=', key.operator_id);
  await query.where('key', '=', key.key).execute();
}

/** Deletes keys made before `time` (Unix milliseconds). Returns the number deleted. */
export async function deleteIdempotencyKeysBefore(db: Queryable, time: number): Promise<number> {
  const result = await db.deleteFrom('idempotency_keys').where('created_at', '<', time).executeTakeFirst();
  return Number(result.numDeletedRows);
}
