/**
 * The audit log as a hash chain: each event has a gapless sequence number and an ID that never decreases. Its hash
 * (SHA-256) covers the hash of the previous event (32 bytes) and the event's canonical JSON. The first event follows
 * 32 zero bytes.
 */
import { createHash } from 'node:crypto';
import type { Clock } from '../../src/kernel/clock.js';
import type { NewId } from '../../src/kernel/ids.js';
import { canonicalJson } from '../../src/kernel/json.js';
import { idAbove } from '../../src/kernel/rising-ids.js';
import type { Queryable } from '../database/schema.js';
import {
  type AuditRow,
  findAuditCut,
  insertAuditRows,
  lastAuditRow,
  metadataColumn,
  metadataOf,
  metadataTextOf,
  newestCheckpoints,
  noteAuditTurn,
} from './audit-store.js';
import { JUMP_MS } from './clock-trust.js';
import { type DomainEvent, EVENT_SEVERITY, type Party } from './domain-event.js';

export const GENESIS_HASH = '0'.repeat(64);

/** An event recorded in the log. */
export interface RecordedEvent extends DomainEvent {
  /** ULID. */
  readonly id: string;
  readonly seq: number;
  /** Unix milliseconds. */
  readonly timestamp: number;
}

/** The last event of the log, to which the next one is chained. */
export interface ChainHead {
  readonly seq: number;
  readonly id: string;
  readonly timestamp: number;
  readonly hash: string;
}

/** The head of an empty log. */
export const GENESIS: ChainHead = { seq: 0, id: '', timestamp: 0, hash: GENESIS_HASH };

/**
 * Returns the last event, or the newest signed mark when the events up to it are gone. So the log continues after
 * events cut off its end, and the gap stays visible.
 */
export async function readChainHead(db: Queryable): Promise<ChainHead> {
  const last = await lastAuditRow(db);
  const [newest] = await newestCheckpoints(db, 1);
  const place = newest ?? (last === null ? await findAuditCut(db) : null);
  if (!place || (last !== null && place.seq <= last.seq)) return last ?? GENESIS;
  const { seq, hash, time } = place;
  return { seq, hash, id: last?.id ?? '', timestamp: Math.max(time, last?.timestamp ?? 0) };
}

export interface AppendOptions {
  readonly clock: Clock;
  readonly newId: NewId;
  readonly head: ChainHead;
}

/** Appends events in the transaction that also read `head`. Returns the recorded events and the new head. */
export async function appendEvents(
  tx: Queryable,
  events: readonly DomainEvent[],
  { head, clock, newId }: AppendOptions,
): Promise<{ readonly head: ChainHead; readonly recorded: readonly RecordedEvent[] }> {
  const rows: AuditRow[] = [];
  let last = head;
  for (const event of events) {
    const timestamp = timeAfter(last.timestamp, clock.now());
    if (timestamp < last.timestamp) await noteAuditTurn(tx, last.seq + 1);
    const row = rowOf(event, {
      seq: last.seq + 1,
      id: last.id === '' ? newId() : idAbove(last.id, newId()),
      timestamp,
      previous: last.hash,
    });
    rows.push(row);
    last = row;
  }
  await insertAuditRows(tx, rows);
  const recorded = events.map((event, index) => ({ ...event, ...placeOf(rows[index] ?? last) }));
  return { head: last, recorded };
}

/** Returns the hash that a row must have. Throws a SyntaxError for damaged metadata. */
export const hashOf = (row: Omit<AuditRow, 'hash'>, previous: string): string =>
  hashWith(row, canonicalJson(metadataOf(row)), previous);

/** @param metadata as canonical JSON */
function hashWith(row: Omit<AuditRow, 'hash'>, metadata: string, previous: string): string {
  const { seq, id, event_type, severity, summary, timestamp } = row;
  const actor = { id: row.actor_id, name: row.actor_name, type: row.actor_type };
  const target = { id: row.target_id, name: row.target_name, type: row.target_type };
  const event =
    `{"actor":${JSON.stringify(actor)},"event_type":${JSON.stringify(event_type)},"id":${JSON.stringify(id)},` +
    `"metadata":${metadata},"seq":${JSON.stringify(seq)},"severity":${JSON.stringify(severity)},"summary":${JSON.stringify(summary)},` +
    `"target":${JSON.stringify(target)},"timestamp":${JSON.stringify(timestamp)}}`;
  return createHash('sha256').update(previous, 'hex').update(event).digest('hex');
}

/**
 * Ignores a clock that was set back slightly, so times do not decrease. After a larger correction it follows the
 * clock, so that one bad clock does not date all later events.
 */
const timeAfter = (last: number, now: number): number => (last - now > JUMP_MS ? now : Math.max(now, last));

interface Place {
  readonly seq: number;
  readonly id: string;
  readonly timestamp: number;
  readonly previous: string;
}

function rowOf(event: DomainEvent, { previous, ...place }: Place): AuditRow {
  const [actor, target] = [storable(event.actor), storable(event.target)];
  const row = {
    ...place,
    event_type: event.type,
    severity: EVENT_SEVERITY[event.type],
    summary: wellFormed(event.summary),
    actor_id: actor.id,
    actor_name: actor.name,
    actor_type: actor.type,
    target_id: target.id,
    target_name: target.name,
    target_type: target.type,
    ...metadataColumn(event.metadata),
  };
  return { ...row, hash: hashWith(row, metadataTextOf(row), previous) };
}

const placeOf = ({ seq, id, timestamp }: ChainHead) => ({ seq, id, timestamp });

const storable = ({ id, name, type }: Party): Party => ({ id: wellFormed(id), name: wellFormed(name), type });

/**
 * Replaces lone surrogates and NUL characters, so that the stored text has the same hash: the former do not survive UTF-8, and
 * PostgreSQL stores no text with the latter.
 */
const wellFormed = (text: string): string => text.replace(/[\0\p{Surrogate}]/gu, '\ufffd');
