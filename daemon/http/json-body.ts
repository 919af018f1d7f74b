/** Reads a JSON body without trusting it: its type, encoding, depth and keys are checked before anybody looks inside. */
import { Fault } from '../../src/kernel/fault.js';
import { jsonExcess } from '../../src/kernel/json.js';

export interface BodyRules {
  /** The `Content-Type` header. */
  readonly contentType: string | undefined;
  readonly contentEncoding: string | undefined;
  /** Most levels of objects and arrays. */
  readonly maxDepth: number;
}

/** Throws `unsupported_media_type` or `invalid_body`. */
export function readJson(body: Buffer, rules: BodyRules): unknown {
  requireJson(rules);
  const text = decode(body);
  refuseExcess(text, rules.maxDepth);
  const value = parse(text);
  if (/__proto__|constructor|\\u/.test(text)) refusePrototypes(value);
  return value;
}

function requireJson({ contentType, contentEncoding }: BodyRules): void {
  const refuse = (what: string) =>
    new Fault('unsupported_media_type', `${what} is not taken here`, { hint: 'send Content-Type: application/json' });
  if (contentEncoding !== undefined && contentEncoding.toLowerCase() !== 'identity') {
    throw refuse(`a body with Content-Encoding ${JSON.stringify(contentEncoding)}`);
  }
  if (contentType === undefined || contentType.trim() === '') throw refuse('a body without a Content-Type');
  const [type, ...parameters] = contentType.split(';').map((part) => part.trim().toLowerCase());
  const isUtf8 = parameters.every(
    (parameter) => !/^charset=/.test(parameter) || /^charset="?utf-?8"?$/.test(parameter),
  );
  if (type !== 'application/json' || !isUtf8) throw refuse(`a body of type ${JSON.stringify(contentType)}`);
}

function decode(body: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(body);
  } catch (cause) {
    throw new Fault('invalid_body', 'the body is not UTF-8', { cause });
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    // Only the position: the message of the engine quotes the body, which may hold a secret.
    const position = cause instanceof Error ? /at position (\d+)/.exec(cause.message)?.[1] : undefined;
    throw invalid(`the body is not JSON${position === undefined ? '' : `: see position ${position}`}`);
  }
}

/** Members of a body: many more than any request needs, and few enough to be checked in milliseconds. */
const MAX_MEMBERS = 10_000;

function refuseExcess(text: string, maxDepth: number): void {
  switch (jsonExcess(text, { depth: maxDepth, members: MAX_MEMBERS, width: MAX_MEMBERS })) {
    case null:
      return;
    case 'depth':
      throw invalid(`the body is nested deeper than ${maxDepth} levels`);
    default:
      throw invalid(`the body has more than ${MAX_MEMBERS} members`);
  }
}

/** Keys that would reach the prototype of whatever object they are copied into. */
function refusePrototypes(value: unknown): void {
  if (typeof value !== 'object' || value === null) return;
  for (const [key, member] of Object.entries(value)) {
    const reaches = typeof member === 'object' && member !== null && Object.hasOwn(member, 'prototype');
    if (key === '__proto__' || (key === 'constructor' && reaches))
      throw invalid(`the body has a key ${JSON.stringify(key)}`);
    refusePrototypes(member);
  }
}

const invalid = (message: string): Fault => new Fault('invalid_body', message);
