/** A notification as channels are sent it. */
import type { SEVERITIES } from '../../src/contract/audit.js';
import type { JsonObject } from '../../src/kernel/json.js';
import { EVENT_SEVERITY, type EventType, type Party } from '../core/domain-event.js';
import type { NotificationRow } from './notification-store.js';
import { plainText } from './plain-text.js';
import { thinMetadata } from './thin-metadata.js';

export interface Message {
  /** The same for every attempt and every channel. */
  readonly id: string;
  readonly event_type: string;
  readonly severity: (typeof SEVERITIES)[number];
  /** One harmless line. */
  readonly summary: string;
  /** Unix milliseconds. */
  readonly timestamp: number;
  readonly actor: Party;
  readonly target: Party;
  /** IDs and counts. */
  readonly metadata: JsonObject;
}

/** Characters. */
const SUMMARY = 512;
const NAME = 128;

export interface MessageParts {
  readonly id: string;
  readonly type: EventType;
  readonly summary: string;
  readonly timestamp: number;
  readonly actor: Party;
  readonly target: Party;
  readonly metadata: JsonObject;
}

export const messageOf = ({ id, type, summary, timestamp, actor, target, metadata }: MessageParts): Message => ({
  id,
  event_type: type,
  severity: EVENT_SEVERITY[type],
  summary: plainText(summary, SUMMARY),
  timestamp,
  actor: plainParty(actor),
  target: plainParty(target),
  metadata: thinMetadata(metadata),
});

export const messageOfRow = (row: NotificationRow): Message => ({
  id: row.id,
  event_type: row.event_type,
  severity: severityOf(row.severity),
  summary: row.summary,
  timestamp: row.timestamp,
  actor: JSON.parse(row.actor_json),
  target: JSON.parse(row.target_json),
  metadata: JSON.parse(row.metadata_json),
});

export const severityOf = (text: string): Message['severity'] =>
  text === 'info' || text === 'warning' || text === 'critical' ? text : 'notice';

const plainParty = ({ id, name, type }: Party): Party => ({
  id: plainText(id, NAME),
  name: plainText(name, NAME),
  type,
});
