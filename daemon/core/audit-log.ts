/**
 * The audit log as a chain: each event has a number without gaps, an ID that never goes back, and a hash over the
 * hash of the event before it (32 bytes) and the canonical JSON of the event itself. The first one follows 32 zero bytes.
 */
import { createHash } from 'node:crypto';
import { canonicalJson } from '../../src/kernel/json.js';
import { idAbove } from '../database/rising-ids.js';
import type { Queryable } from '../database/schema.js';
import {
  type AuditRow,
  findAuditCut,
  insertAuditRows,
  lastAuditRow,
  newestCheckpoints,
  noteAuditTurn,
} from './audit-store.js';
import { JUMP_MS } from './clock-trust.js';
import type { Core } from './core.js';
import { type DomainEvent, EVENT_SEVERITY, type Party } from './domain-event.js';

export const GENESIS_HASH = '0'.repeat(64);

/** An event that is in the log. */
export interface RecordedEvent extends DomainEvent {
  /** ULID. */
  readonly id: string;
  readonly seq: number;
  /** Unix milliseconds. */
  readonly timestamp: number;
}

/** The last event, which the next one is chained to. */
export interface ChainHead {
  readonly seq: number;
  readonly id: string;
  readonly timestamp: number;
  readonly hash: string;
}

/** What stands before the first event. */
export const GENESIS: ChainHead = { seq: 0, id: '', timestamp: 0, hash: GENESIS_HASH };

/**
 * The last event; behind a signed place whose event is gone, that place. So the log goes on after what somebody has cut off
 * from its end, and the gap stays to be seen.
 */
export async function readChainHead(db: Queryable): Promise<ChainHead> {
  const last = await lastAuditRow(db);
  const [newest] = await newestCheckpoints(db, 1);
  const place = newest ?? (last === null ? await findAuditCut(db) : null);
  if (!place || (last !== null && place.seq <= last.seq)) return last ?? GENESIS;
  const { seq, hash, time } = place;
  return { seq, hash, id: last?.id ?? '', timestamp: Math.max(time, last?.timestamp ?? 0) };
}

export interface AppendOptions extends Pick<Core, 'clock' | 'newId'> {
  readonly head: ChainHead;
}

/** Adds events in the transaction that also read `head`; returns them as they were recorded, and the new head. */
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

/** The hash that a row has to have. */
export function hashOf(row: Omit<AuditRow, 'hash'>, previous: string): string {
  const event = {
    seq: row.seq,
    id: row.id,
    event_type: row.event_type,
    severity: row.severity,
    summary: row.summary,
    timestamp: row.timestamp,
    actor: { id: row.actor_id, name: row.actor_name, type: row.actor_type },
    target: { id: row.target_id, name: row.target_name, type: row.target_type },
    metadata: JSON.parse(row.metadata_json),
  };
  return createHash('sha256').update(Buffer.from(previous, 'hex')).update(canonicalJson(event)).digest('hex');
}

/** A clock that was set back a little makes no earlier times; one that was far ahead does not date all that follows. */
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
    metadata_json: canonicalJson(event.metadata),
  };
  return { ...row, hash: hashOf(row, previous) };
}

const placeOf = ({ seq, id, timestamp }: ChainHead) => ({ seq, id, timestamp });

const storable = ({ id, name, type }: Party): Party => ({ id: wellFormed(id), name: wellFormed(name), type });

/** Halves of surrogate pairs do not survive UTF-8, so the text read back would have another hash. */
const wellFormed = (text: string): string => text.replace(/\p{Surrogate}/gu, '\ufffd');
