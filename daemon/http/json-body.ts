/** Reads a JSON body without trusting it: its type, encoding, depth and keys are checked before anybody looks inside. */
import { Fault } from '../../src/kernel/fault.js';

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
  if (depthOf(text) > rules.maxDepth) throw invalid(`the body is nested deeper than ${rules.maxDepth} levels`);
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

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/** The deepest nesting, without recursion and without building anything. */
function depthOf(text: string): number {
  let depth = 0;
  let deepest = 0;
  let inString = false;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (inString) {
      if (code === BACKSLASH) at += 1;
      else if (code === QUOTE) inString = false;
    } else if (code === QUOTE) inString = true;
    else if (code === 0x7b || code === 0x5b) deepest = Math.max(deepest, ++depth);
    else if (code === 0x7d || code === 0x5d) depth -= 1;
  }
  return deepest;
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
