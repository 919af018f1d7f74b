/** `Idempotency-Key`: a write repeated with the same key runs once and gets the same answer each time. */

import { createHmac } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';
import type { Clock } from '../../src/kernel/clock.js';
import { Fault, isFault, messageOf } from '../../src/kernel/fault.js';
import { canonicalJson } from '../../src/kernel/json.js';
import type { Logger } from '../../src/kernel/logger.js';
import type { RecordedEvent } from '../core/audit-log.js';
import { BEGINS_NOTHING } from '../core/domain-event.js';
import { preparedQuery } from '../database/prepared-query.js';
import type { Queryable, Row } from '../database/schema.js';
import { storedJson } from '../database/stored-json.js';
import { JSON_TYPE, PROBLEM_TYPE, type Rendered } from './rendered.js';

/** Key of one operator. */
interface IdempotencySlot {
  readonly operator_id: string;
  readonly key: string;
}

/** Store of the requests that have begun something, with their first answers. */
export interface IdempotencyKeys {
  /**
   * Persistent secret of 32 bytes. Hashes of requests are keyed with it, so that the store reveals nothing about
   * their bodies.
   */
  readonly hashKey: Uint8Array;
  /** Notes requests with a key while they run, for the unit of work. */
  readonly running: KeyedRequests;
  /** Returns the request that began something under the key at or after `validSince` (Unix milliseconds), or null. */
  find(slot: IdempotencySlot, validSince: number): Promise<IdempotencyRow | null>;
  /** Stores the answer of the request that holds the key. */
  complete(
    slot: IdempotencySlot,
    answer: { readonly status: number; readonly body_json: string | null },
  ): Promise<void>;
}

interface IdempotentRequest {
  readonly operatorId: string;
  readonly key: string;
  /** ID of this request, which its audit events have as `request_id`. */
  readonly requestId: string;
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
  /** True once the first answer was given, and only its storing is awaited. */
  isAnswered: boolean;
}

interface Answered {
  readonly rendered: Rendered;
  /** Resolves when the answer is stored, if it has to be. Never rejects. */
  readonly kept: Promise<void>;
}

const KEEP_AGAIN_MS = 1_000;

/**
 * Runs requests with an Idempotency-Key. The key is stored in the transaction of the first audit event that the request
 * causes, so it is in the store exactly if the request has begun something: also when the answer of the commit was lost,
 * and when the orchestrator was killed. A request that began nothing leaves nothing, and its repetition runs.
 */
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
   * waiting for one in flight. Kept are only answers below 500 of requests that began something.
   * Throws `idempotency_conflict` when the key belongs to another request, or to one that began something and whose
   * answer was lost or is secret.
   */
  async run(request: IdempotentRequest, produce: () => Promise<Rendered>): Promise<Outcome> {
    const slot = `${request.operatorId} ${request.key}`;
    const hash = createHmac('sha256', this.keys.hashKey).update(canonicalJson(request.content)).digest('hex');
    const identity = `${request.route} ${hash}`;
    const earlier = this.running.get(slot);
    if (earlier) {
      if (earlier.identity !== identity) throw conflict();
      const { isAnswered } = earlier;
      const rendered = await earlier.outcome;
      if (isAnswered && request.isSecret && rendered.status < 400) throw givenOnce();
      return { rendered, replayed: true };
    }
    let replayed = false;
    const answered = this.first(request, hash, produce, () => {
      replayed = true;
    });
    const outcome = answered.then(({ rendered }) => rendered);
    const running = { identity, outcome, isAnswered: false };
    this.running.set(slot, running);
    // Until the answer is stored, a repetition gets it from memory.
    const over = () => void this.running.delete(slot);
    answered
      .then(({ kept }) => {
        running.isAnswered = true;
        return kept;
      })
      .then(over, over);
    return { rendered: await outcome, replayed };
  }

  private async first(
    { operatorId, key, requestId, route, isSecret }: IdempotentRequest,
    hash: string,
    produce: () => Promise<Rendered>,
    onReplay: () => void,
  ): Promise<Answered> {
    const slot = { operator_id: operatorId, key };
    const now = this.clock.now();
    const claim = { ...slot, route, request_hash: hash, created_at: now };
    const known = await this.keys.find(slot, now - VALID_FOR_MS);
    if (known) {
      onReplay();
      const rendered = storedAnswer(known, claim);
      if (isSecret && rendered.status < 400) throw givenOnce();
      return { rendered, kept: Promise.resolve() };
    }
    const beginning = this.keys.running.enter(requestId, claim);
    try {
      const rendered = await produce();
      if (!beginning.isCommitted || rendered.status >= 500) return { rendered, kept: Promise.resolve() };
      const body_json = isSecret && rendered.status < 400 ? null : rendered.payload;
      const { done } = await this.keep(slot, { status: rendered.status, body_json });
      return { rendered, kept: done };
    } finally {
      this.keys.running.leave(requestId);
    }
  }

  /** Stores an answer. While the store is away, the returned object goes on trying. */
  private async keep(slot: IdempotencySlot, answer: StoredAnswer): Promise<{ readonly done: Promise<void> }> {
    try {
      await this.keys.complete(slot, answer);
      return { done: Promise.resolve() };
    } catch (error) {
      this.logger.error('the answer to an Idempotency-Key could not be kept yet', { reason: messageOf(error) });
      return { done: this.keepLater(slot, answer) };
    }
  }

  private async keepLater(slot: IdempotencySlot, answer: StoredAnswer): Promise<void> {
    for (;;) {
      await setTimeout(KEEP_AGAIN_MS, undefined, { ref: false });
      try {
        await this.keys.complete(slot, answer);
        return;
      } catch (error) {
        if (isFault(error, 'shutting_down')) return;
      }
    }
  }
}

function storedAnswer(
  known: IdempotencyRow,
  wanted: { readonly route: string; readonly request_hash: string },
): Rendered {
  if (known.route !== wanted.route || known.request_hash !== wanted.request_hash) throw conflict();
  if (known.status === null) throw lost(known);
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

/** The work that a request began, kept under its key until the answer takes the place. */
interface Began {
  readonly event_id: string;
  readonly summary: string;
  readonly operation_id?: string;
  readonly rollout_id?: string;
}

function lost({ body_json }: IdempotencyRow): Fault {
  const began: Began | null = body_json === null ? null : storedJson(body_json);
  const { summary, ...ids } = began ?? { summary: null };
  const what = summary === null ? '' : ` (${summary})`;
  return new Fault(
    'idempotency_conflict',
    `the first request with this Idempotency-Key was carried out${what}, and its answer was lost`,
    {
      hint: 'look at what it did, and repeat it with a fresh key only if that is needed',
      data: { reason: 'answer_lost', ...ids },
    },
  );
}

/** A request that began something under an `Idempotency-Key`. */
type IdempotencyRow = Row<'idempotency_keys'>;

type StoredAnswer = { readonly status: number; readonly body_json: string | null };

interface Claim extends IdempotencySlot {
  readonly route: string;
  readonly request_hash: string;
  /** Unix milliseconds. */
  readonly created_at: number;
}

interface Beginning {
  readonly claim: Claim;
  /** True once an audit event of the request is committed, and with it the key. */
  isCommitted: boolean;
}

/** Requests with a key that run now. The unit of work tells it the audit events of each transaction. */
export class KeyedRequests {
  private readonly byRequest = new Map<string, Beginning>();

  enter(requestId: string, claim: Claim): Readonly<Beginning> {
    const beginning = { claim, isCommitted: false };
    this.byRequest.set(requestId, beginning);
    return beginning;
  }

  leave(requestId: string): void {
    this.byRequest.delete(requestId);
  }

  /** Stores the keys of the requests that caused the events; must run in the transaction of the events. */
  async record(tx: Queryable, events: readonly RecordedEvent[]): Promise<void> {
    const stored = new Set<Beginning>();
    for (const event of events) {
      const beginning = this.beginningOf(event);
      if (beginning === undefined || beginning.isCommitted || stored.has(beginning)) continue;
      stored.add(beginning);
      const { operator_id, key, route, request_hash, created_at } = beginning.claim;
      await putKey(tx, operator_id, key, route, request_hash, created_at, JSON.stringify(beganBy(event)));
    }
  }

  /** Notes that an event is committed. */
  committed(event: RecordedEvent): void {
    const beginning = this.beginningOf(event);
    if (beginning !== undefined) beginning.isCommitted = true;
  }

  private beginningOf({ type, metadata }: RecordedEvent): Beginning | undefined {
    if (this.byRequest.size === 0 || BEGINS_NOTHING.has(type)) return undefined;
    return typeof metadata.request_id === 'string' ? this.byRequest.get(metadata.request_id) : undefined;
  }
}

function beganBy({ id, summary, metadata, target }: RecordedEvent): Began {
  const { operation_id } = metadata;
  return {
    event_id: id,
    summary,
    ...(typeof operation_id === 'string' ? { operation_id } : {}),
    ...(typeof metadata.rollout_id === 'string' ? { rollout_id: metadata.rollout_id } : {}),
    ...(target.type === 'rollout' ? { rollout_id: target.id } : {}),
  };
}

const putKey = preparedQuery(
  (db, operator_id: string, key: string, route: string, request_hash: string, created_at: number, body_json: string) =>
    db
      .insertInto('idempotency_keys')
      .values({ operator_id, key, route, request_hash, created_at, status: null, body_json })
      .onConflict((conflict) =>
        conflict
          .columns(['operator_id', 'key'])
          .doUpdateSet({ route, request_hash, created_at, status: null, body_json }),
      ),
);

/** Returns the request that holds the key, unless it took it before `validSince` (Unix milliseconds). */
export async function findIdempotencyKey(
  db: Queryable,
  { operator_id, key }: IdempotencySlot,
  validSince: number,
): Promise<IdempotencyRow | null> {
  return (await selectKey(db, operator_id, key, validSince))[0] ?? null;
}

const selectKey = preparedQuery((db, operatorId: string, key: string, validSince: number) =>
  db
    .selectFrom('idempotency_keys')
    .selectAll()
    .where('operator_id', '=', operatorId)
    .where('key', '=', key)
    .where('created_at', '>=', validSince),
);

/** Stores the answer of the request that holds the key. */
export async function completeIdempotencyKey(
  db: Queryable,
  slot: IdempotencySlot,
  answer: StoredAnswer,
): Promise<void> {
  await storeAnswer(db, answer.status, answer.body_json, slot.operator_id, slot.key);
}

const storeAnswer = preparedQuery((db, status: number, body_json: string | null, operatorId: string, key: string) =>
  db
    .updateTable('idempotency_keys')
    .set({ status, body_json })
    .where('operator_id', '=', operatorId)
    .where('key', '=', key),
);

/** Deletes keys made before `time` (Unix milliseconds). Returns the number deleted. */
export async function deleteIdempotencyKeysBefore(db: Queryable, time: number): Promise<number> {
  const result = await db.deleteFrom('idempotency_keys').where('created_at', '<', time).executeTakeFirst();
  return Number(result.numDeletedRows);
}
