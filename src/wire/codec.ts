/** Messages as text frames, and back: nothing unvalidated leaves here. */
import { Fault } from '../kernel/fault.js';
import { jsonExcess } from '../kernel/json.js';
import { type Validator, validator } from '../kernel/validator.js';
import { LINK_LIMITS } from './limits.js';
import {
  type AgentMessage,
  AgentMessageSchemas,
  type OrchestratorMessage,
  OrchestratorMessageSchemas,
} from './messages.js';

/** Turns a frame into a message; throws Fault `protocol_violation` that says what is wrong with it. */
export type Decode<M> = (frame: string) => M;

export const encode = (message: AgentMessage | OrchestratorMessage): string => JSON.stringify(message);

/** A decoder of what agents send. */
export const agentDecoder = (): Decode<AgentMessage> => {
  const decode = decoder<AgentMessage>(AgentMessageSchemas);
  return (frame) => {
    const excess = jsonExcess(frame, LINK_LIMITS.agentJson);
    if (excess !== null)
      throw violation(`a frame with too much in it: more than ${LINK_LIMITS.agentJson[excess]} ${EXCESS[excess]}`);
    return decode(frame);
  };
};

const EXCESS = { depth: 'levels', members: 'members', width: 'members in one object' } as const;

/**
 * A decoder of what orchestrators send, which may be newer than the agent: members of a message that are not known are passed
 * over, and a message of an unknown type is null. What is inside of the members is as closed as ever.
 */
export const orchestratorDecoder = (): Decode<OrchestratorMessage | null> => {
  const open = Object.entries(OrchestratorMessageSchemas).map(
    ([type, schema]) => [type, { ...schema, additionalProperties: true }] as const,
  );
  return decoder<OrchestratorMessage | null>(Object.fromEntries(open), null);
};

/** Characters of a frame whose mistake is named. */
const DETAILED = 16 * 1024;

/** @param unknown what stands for a message of an unknown type; left out: such a message is a violation */
function decoder<M extends { type: string } | null>(
  schemas: Readonly<Record<string, Parameters<typeof validator>[0]>>,
  unknown?: M,
): Decode<M> {
  const validators = new Map<string, Validator<unknown>>(
    Object.entries(schemas).map(([type, schema]) => [type, validator(schema)]),
  );
  return (frame) => {
    const value = parse(frame);
    const type = typeof value === 'object' && value !== null && 'type' in value ? value.type : undefined;
    const known = typeof type === 'string' ? validators.get(type) : undefined;
    if (!known && unknown !== undefined && typeof type === 'string') return unknown;
    if (!known) throw violation(`a message of unknown type ${JSON.stringify(type)?.slice(0, 80)}`);
    if (!known.check(value)) {
      // A list of all mistakes costs many times what the check does, and a large frame has many.
      const first = frame.length > DETAILED ? undefined : known.problems(value)[0];
      throw violation(`a malformed ${type} message: ${first ? `${first.path || '/'} ${first.message}` : 'invalid'}`);
    }
    return value as M;
  };
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
