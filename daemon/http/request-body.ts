/** Reads the body of a request by its route's schema: parses, drops absent members and validates. */
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { TSchema } from 'typebox';
import type { RouteSpec } from '../../src/contract/route.js';
import { Fault, type FaultDetail } from '../../src/kernel/fault.js';
import { jsonExcess } from '../../src/kernel/json.js';
import { NULL_CLEARS } from '../../src/kernel/schema.js';
import { escapePointer, MAX_PROBLEMS, validator } from '../../src/kernel/validator.js';

/**
 * Reads the bytes of a body. Throws `body_too_large` from the Content-Length before reading a byte, or once `limit`
 * is exceeded. Throws `bad_request` when the client disconnects before the end.
 */
export async function readBytes(request: IncomingMessage, limit: number): Promise<Buffer> {
  if (Number(request.headers['content-length'] ?? 0) > limit) throw tooLarge();
  // A request whose client disconnected during the session lookup never ends.
  if (request.destroyed) throw broken();
  const chunks: Buffer[] = [];
  let length = 0;
  return new Promise((resolve, reject) => {
    const onData = (chunk: Buffer) => {
      length += chunk.length;
      if (length > limit) settle(() => reject(tooLarge()));
      else chunks.push(chunk);
    };
    const onEnd = () => settle(() => resolve(chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks)));
    const onBroken = (cause?: Error) =>
      settle(() => reject(new Fault('bad_request', 'the connection broke', { cause })));
    const settle = (done: () => void) => {
      request.off('data', onData).off('end', onEnd).off('error', onBroken).off('close', onBroken);
      // A later error without a listener would end the process.
      request.on('error', () => undefined);
      done();
    };
    request.on('data', onData).on('end', onEnd).on('error', onBroken).on('close', onBroken);
  });
}

const broken = (cause?: Error): Fault => new Fault('bad_request', 'the connection broke', { cause });

const tooLarge = (): Fault => new Fault('body_too_large', 'the request body is larger than this server takes');

interface SentBody {
  /** Body as sent; empty when there was none. */
  readonly bytes: Buffer;
  readonly headers: IncomingHttpHeaders;
  readonly contentType: string | undefined;
}

/** Creates the reader of a route's bodies, which throws `unsupported_media_type` or `invalid_body`. */
export function bodyReader(route: RouteSpec, maxDepth: number): (sent: SentBody) => unknown {
  const schema = route.body;
  const check = schema && validator(schema);
  const mayBeEmpty = !check || route.bodyOptional === true || check.check({});
  return ({ bytes, headers, contentType }) => {
    if (bytes.length === 0) {
      if (mayBeEmpty) return schema ? {} : undefined;
      throw new Fault('invalid_body', 'this request needs a body', { hint: 'send a JSON object' });
    }
    const value = readJson(bytes, {
      contentType,
      contentEncoding: headers['content-encoding'],
      maxDepth,
      maxMembers: route.bodyMembers ?? MAX_MEMBERS,
    });
    if (!check || !schema) return requireNothing(value);
    const present = withoutAbsent(schema, value);
    const errors = check.problems(present);
    if (errors.length > 0) throw invalidBody(errors);
    return present;
  };
}

/** Accepts an empty object in place of no body. */
function requireNothing(value: unknown): undefined {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
    const names = Object.keys(value).slice(0, MAX_PROBLEMS);
    if (names.length === 0) return undefined;
    throw invalidBody(names.map((name) => ({ path: `/${escapePointer(name)}`, message: `unknown key "${name}"` })));
  }
  throw new Fault('invalid_body', 'this request takes no body');
}

function invalidBody(errors: readonly FaultDetail[]): Fault {
  const shown = errors.slice(0, 3).map(({ path, message }) => (path === '' ? message : `${path} ${message}`));
  const more = errors.length > shown.length ? `, and ${errors.length - shown.length} more` : '';
  return new Fault('invalid_body', `the body is not valid: ${shown.join(', ')}${more}`, { errors });
}

/** Checks on a JSON body that run before anything uses it: type, encoding, depth and keys. */
interface BodyRules {
  /** The `Content-Type` header. */
  readonly contentType: string | undefined;
  readonly contentEncoding: string | undefined;
  /** Maximum nesting of objects and arrays. */
  readonly maxDepth: number;
  /** Maximum members of all objects together. */
  readonly maxMembers: number;
}

/** Parses an untrusted JSON body. Throws `unsupported_media_type` or `invalid_body`. */
function readJson(body: Buffer, rules: BodyRules): unknown {
  requireJson(rules);
  const text = decode(body);
  refuseExcess(text, rules);
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
    // Only the position: the engine's message quotes the body, which may hold a secret.
    const position = cause instanceof Error ? /at position (\d+)/.exec(cause.message)?.[1] : undefined;
    throw invalid(`the body is not JSON${position === undefined ? '' : `: see position ${position}`}`);
  }
}

/** General maximum of members: many more than most requests need, and few enough to validate in milliseconds. */
const MAX_MEMBERS = 10_000;

function refuseExcess(text: string, { maxDepth, maxMembers }: BodyRules): void {
  switch (jsonExcess(text, { depth: maxDepth, members: maxMembers, width: maxMembers })) {
    case null:
      return;
    case 'depth':
      throw invalid(`the body is nested deeper than ${maxDepth} levels`);
    default:
      throw invalid(`the body has more than ${maxMembers} members`);
  }
}

/** Rejects keys that would reach the prototype of an object they are copied into. */
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

/**
 * Returns the value without members that are null where the schema treats null as absent. Free-form maps are
 * unchanged, because null is a value there. Unknown members stay for the validator to reject.
 */
function withoutAbsent(schema: TSchema, value: unknown): unknown {
  const { properties, required, items } = branchOf(schema);
  if (Array.isArray(value)) return items ? value.map((item) => withoutAbsent(items, item)) : value;
  if (typeof value !== 'object' || value === null || !properties) return value;
  const kept = Object.entries(value).filter(
    ([name, member]) =>
      member !== null ||
      required?.includes(name) ||
      !Object.hasOwn(properties, name) ||
      Reflect.get(properties[name] ?? {}, NULL_CLEARS) === true,
  );
  return Object.fromEntries(
    kept.map(([name, member]) => {
      const inner = Object.hasOwn(properties, name) ? properties[name] : undefined;
      return [name, inner ? withoutAbsent(inner, member) : member];
    }),
  );
}

interface Branch {
  readonly properties?: Readonly<Record<string, TSchema>>;
  readonly required?: readonly string[];
  readonly items?: TSchema;
}

/** Returns the schema, or its only non-null alternative. A choice between several yields no information. */
function branchOf(schema: TSchema): Branch {
  const union: { readonly anyOf?: readonly TSchema[] } = schema;
  if (!union.anyOf) return schema;
  const branches = union.anyOf.filter((branch) => !isNull(branch));
  return (branches.length === 1 ? branches[0] : undefined) ?? {};
}

const isNull = (schema: { readonly type?: unknown }): boolean => schema.type === 'null';
