/** Something that happened: what the audit log keeps and the bus tells. */
import type { JsonObject } from '../../src/kernel/json.js';
import type { EventType } from './event-type.js';

export const PARTY_TYPES = [
  'operator',
  'agent',
  'system',
  'module',
  'assignment',
  'secret',
  'channel',
  'window',
  'session',
  'operation',
  'audit',
  'enrolment',
] as const;

/** Who did it, or what it was done to. */
export interface Party {
  readonly id: string;
  readonly name: string;
  readonly type: (typeof PARTY_TYPES)[number];
}

/** The orchestrator itself. */
export const SYSTEM: Party = { id: 'system', name: 'orchestrator', type: 'system' };

export interface DomainEvent {
  readonly type: EventType;
  readonly actor: Party;
  readonly target: Party;
  /** One sentence without secrets. */
  readonly summary: string;
  readonly metadata: JsonObject;
}
