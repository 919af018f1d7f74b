/** The message that channels send for a notification, with its text made safe to display. */
import type { SEVERITIES } from '../../src/contract/audit.js';
import type { JsonObject, JsonValue } from '../../src/kernel/json.js';
import { EVENT_SEVERITY, type EventType, type Party } from '../core/domain-event.js';
import type { NotificationRow } from './notification-store.js';

export interface Message {
  /** ID of the notification, the same for every attempt and every channel. */
  readonly id: string;
  readonly event_type: string;
  readonly severity: (typeof SEVERITIES)[number];
  /** One line of text without control or format characters. */
  readonly summary: string;
  /** Unix milliseconds of the event. */
  readonly timestamp: number;
  readonly actor: Party;
  readonly target: Party;
  /** IDs, counts and flags of the event. */
  readonly metadata: JsonObject;
}

/** Maximum lengths in UTF-16 code units. */
const SUMMARY = 512;
const NAME = 128;

interface MessageParts {
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
  actor: row.actor,
  target: row.target,
  metadata: row.metadata,
});

export const severityOf = (text: string): Message['severity'] =>
  text === 'info' || text === 'warning' || text === 'critical' ? text : 'notice';

const plainParty = ({ id, name, type }: Party): Party => ({
  id: plainText(id, NAME),
  name: plainText(name, NAME),
  type,
});

/** Control and format characters (bidi marks, zero width), line separators, lone surrogates and white space. */
const HOSTILE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\s]+/gu;

/**
 * Returns text from an agent as one line of at most `most` UTF-16 code units; an ellipsis marks a cut. Removes invisible
 * characters, which could hide or reorder text.
 */
export function plainText(text: string, most: number): string {
  const line = text.replace(HOSTILE, ' ').trim();
  return line.length <= most ? line : `${whole(line.slice(0, most - 1))}…`;
}

/** Returns the text without a lone surrogate at the end. */
const whole = (text: string): string => text.replace(/[\ud800-\udbff]$/, '');

/** Pattern of ULIDs and hex IDs, which text written by people does not match by chance. */
const ID = /^([0-7][0-9A-HJKMNP-TV-Z]{25}|[0-9a-f]{16,64}|system)$/;
const MOST_MEMBERS = 32;

function thinMetadata(metadata: JsonObject): JsonObject {
  const thin: Record<string, JsonValue> = {};
  for (const [name, value] of Object.entries(metadata).slice(0, MOST_MEMBERS)) {
    if (isThin(value)) thin[name] = value;
    else if (isCounts(value)) thin[name] = value;
  }
  return thin;
}

const isThin = (value: JsonValue | undefined): value is number | boolean | string =>
  typeof value === 'number' || typeof value === 'boolean' || (typeof value === 'string' && ID.test(value));

const isCounts = (value: JsonValue | undefined): value is JsonObject =>
  typeof value === 'object' &&
  value !== null &&
  !Array.isArray(value) &&
  Object.values(value).every((count) => typeof count === 'number') &&
  Object.keys(value).length <= MOST_MEMBERS;
