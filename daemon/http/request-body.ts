/** The body of a request by its route: read, cleared of absent members, and checked. */
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { TSchema } from 'typebox';
import type { RouteSpec } from '../../src/contract/route.js';
import { Fault, type FaultDetail } from '../../src/kernel/fault.js';
import { jsonExcess } from '../../src/kernel/json.js';
import { NULL_CLEARS } from '../../src/kernel/schema.js';
import { escapePointer, MAX_PROBLEMS, validator } from '../../src/kernel/validator.js';

/**
 * Reads the bytes of a body. Throws `body_too_large`, by Content-Length before a byte is read, else once `limit` is passed;
 * and `bad_request` when the client goes away before its end.
 */
export async function readBytes(request: IncomingMessage, limit: number): Promise<Buffer> {
  if (Number(request.headers['content-length'] ?? 0) > limit) throw tooLarge();
  // A client that went away while its session was looked up leaves a request that never ends.
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
      // An error that comes later has no listener of ours, and would end the process.
      request.on('error', () => undefined);
      done();
    };
    request.on('data', onData).on('end', onEnd).on('error', onBroken).on('close', onBroken);
  });
}

const broken = (cause?: Error): Fault => new Fault('bad_request', 'the connection broke', { cause });

const tooLarge = (): Fault => new Fault('body_too_large', 'the request body is larger than this server takes');

interface SentBody {
  /** Empty when there was none. */
  readonly bytes: Buffer;
  readonly headers: IncomingHttpHeaders;
  readonly contentType: string | undefined;
}

/** Makes the reader of a route's bodies, which throws `unsupported_media_type` or `invalid_body`. */
export function bodyReader(route: RouteSpec, maxDepth: number): (sent: SentBody) => unknown {
  const schema = route.body;
  const check = schema && validator(schema);
  const mayBeEmpty = !check || route.bodyOptional === true || check.check({});
  return ({ bytes, headers, contentType }) => {
    if (bytes.length === 0) {
      if (mayBeEmpty) return schema ? {} : undefined;
      throw new Fault('invalid_body', 'this request needs a body', { hint: 'send a JSON object' });
    }
    const value = readJson(bytes, { contentType, contentEncoding: headers['content-encoding'], maxDepth });
    if (!check || !schema) return requireNothing(value);
    const present = withoutAbsent(schema, value);
    const errors = check.problems(present);
    if (errors.length > 0) throw invalidBody(errors);
    return present;
  };
}

/** An empty object is as good as no body. */
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

/** Reads a JSON body without trusting it: its type, encoding, depth and keys are checked before anybody looks inside. */
interface BodyRules {
  /** The `Content-Type` header. */
  readonly contentType: string | undefined;
  readonly contentEncoding: string | undefined;
  /** Most levels of objects and arrays. */
  readonly maxDepth: number;
}

/** Throws `unsupported_media_type` or `invalid_body`. */
function readJson(body: Buffer, rules: BodyRules): unknown {
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

/**
 * The value without such members, by its schema. Free-form maps are left as they are: there null is a value.
 * Unknown members stay, for the validator to refuse.
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

/** The schema itself, or what it is when it is not null; nothing is known of a choice between several. */
function branchOf(schema: TSchema): Branch {
  const union: { readonly anyOf?: readonly TSchema[] } = schema;
  if (!union.anyOf) return schema;
  const branches = union.anyOf.filter((branch) => !isNull(branch));
  return (branches.length === 1 ? branches[0] : undefined) ?? {};
}

const isNull = (schema: { readonly type?: unknown }): boolean => schema.type === 'null';
