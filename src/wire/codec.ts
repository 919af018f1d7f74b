/** Encodes messages as text frames, and decodes and validates them. */
import type { TSchema } from 'typebox';
import { Fault } from '../kernel/fault.js';
import { jsonExcess } from '../kernel/json.js';
import { validator } from '../kernel/validator.js';
import { headOfFrame } from './frame-head.js';
import { jsonPieces, PIECE_CHARACTERS } from './json-pieces.js';
import { LINK_LIMITS } from './limits.js';
import {
  type AgentMessage,
  AgentMessageSchemas,
  type OrchestratorMessage,
  OrchestratorMessageSchemas,
} from './messages.js';
import { roughSize } from './parts.js';

/** A message of an unknown type, which a newer release may send. */
export class UnknownMessage {
  readonly type: string;

  constructor(type: string) {
    this.type = type;
  }
}

/**
 * Decodes a frame. Drops unknown members of a message, which a newer release may send; the values of members are closed. Throws
 * Fault `protocol_violation` with the mistake.
 * @param onIgnored called with the number of characters that were dropped, if any
 */
export type Decode<M> = (frame: string, onIgnored?: (characters: number) => void) => M | UnknownMessage;

/** Describes a message of unknown type. */
export const unknownType = (type: unknown): string => `a message of unknown type ${JSON.stringify(type)?.slice(0, 80)}`;

export function encode(message: AgentMessage | OrchestratorMessage): string {
  if (message.type !== 'run_part') return JSON.stringify(message);
  const { resources, removals, ...head } = message;
  return `${JSON.stringify(head).slice(0, -1)},"resources":${textOf(resources)},"removals":${JSON.stringify(removals)}}`;
}

/**
 * Texts of the resources that were sent. Agents with the same content share the list and so its text: the benchmark row of an
 * applied agent with 100 files misses its goal without it.
 */
const texts = new WeakMap<readonly unknown[], string>();

function textOf(resources: readonly unknown[]): string {
  const text = texts.get(resources) ?? JSON.stringify(resources);
  texts.set(resources, text);
  return text;
}

/** Returns true for a message that is better encoded in pieces. */
export function isLarge(message: OrchestratorMessage): boolean {
  // The text is there already for most of the agents with one content.
  const text = message.type === 'run_part' ? texts.get(message.resources) : undefined;
  return (text?.length ?? roughSize(message)) > PIECE_CHARACTERS;
}

/** Yields the text frame of a message in pieces: the fragments of one WebSocket message. */
export function* encodedPieces(message: OrchestratorMessage): Generator<string, void, undefined> {
  if (isLarge(message)) yield* jsonPieces(message);
  else yield encode(message);
}

/** Creates a decoder for messages of agents. It does not parse a frame of unknown type. */
export const agentDecoder = (): Decode<AgentMessage> => {
  const decode = decoder<AgentMessage>(AgentMessageSchemas);
  const known = new Map(
    Object.entries<MessageSchema>(AgentMessageSchemas).map(([type, { properties }]) => [type, properties]),
  );
  return (frame, onIgnored) => {
    const excess = jsonExcess(frame, LINK_LIMITS.agentJson);
    if (excess !== null)
      throw violation(`a frame with too much in it: more than ${LINK_LIMITS.agentJson[excess]} ${EXCESS[excess]}`);
    const { type, sizes } = headOfFrame(frame);
    const members = type === null ? undefined : known.get(type);
    if (type !== null && members === undefined) {
      onIgnored?.(frame.length);
      return new UnknownMessage(type);
    }
    let ignored = 0;
    for (const [name, size] of sizes) if (members === undefined || !Object.hasOwn(members, name)) ignored += size;
    if (ignored > 0) onIgnored?.(ignored);
    return decode(frame);
  };
};

const EXCESS = { depth: 'levels', members: 'members', width: 'members in one object' } as const;

/** Creates a decoder for messages of orchestrators. */
export const orchestratorDecoder = (): Decode<OrchestratorMessage> =>
  decoder<OrchestratorMessage>(OrchestratorMessageSchemas);

/** Maximum characters of a frame whose mistake is named; a list of mistakes costs many times the check. */
const DETAILED = 16 * 1024;

type MessageSchema = TSchema & { readonly properties: Readonly<Record<string, TSchema>> };

function decoder<M extends { type: string }>(schemas: Readonly<Record<M['type'], MessageSchema>>): Decode<M> {
  const known = new Map(
    Object.entries<MessageSchema>(schemas).map(([type, schema]) => [
      type,
      {
        members: new Set(Object.keys(schema.properties)),
        validator: validator({ ...schema, additionalProperties: true }),
      },
    ]),
  );
  return (frame) => {
    const value = parse(frame);
    const type = typeof value === 'object' && value !== null && 'type' in value ? value.type : undefined;
    if (typeof type !== 'string') throw violation(unknownType(type));
    const expected = known.get(type);
    if (expected === undefined) return new UnknownMessage(type);
    if (!expected.validator.check(value)) {
      const first = frame.length > DETAILED ? undefined : expected.validator.problems(value)[0];
      throw violation(`a malformed ${type} message: ${first ? `${first.path || '/'} ${first.message}` : 'invalid'}`);
    }
    return withMembers(value as M, expected.members);
  };
}

/** Returns the message without unknown members; the same object if it has none. */
function withMembers<M extends object>(message: M, members: ReadonlySet<string>): M {
  const entries = Object.entries(message);
  if (entries.every(([name]) => members.has(name))) return message;
  return Object.fromEntries(entries.filter(([name]) => members.has(name))) as M;
}

function parse(frame: string): unknown {
  try {
    return JSON.parse(frame);
  } catch (error) {
    throw violation('a frame that is not JSON', error);
  }
}

const violation = (what: string, cause?: unknown): Fault =>
  new Fault('protocol_violation', `the peer sent ${what}`, { cause });
