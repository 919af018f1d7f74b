/** The body of a request by its route: read, cleared of absent members, and checked. */
import type { IncomingHttpHeaders } from 'node:http';
import type { RouteSpec } from '../../src/contract/route.js';
import { Fault, type FaultDetail } from '../../src/kernel/fault.js';
import { escapePointer, MAX_PROBLEMS, validator } from '../../src/kernel/validator.js';
import { withoutAbsent } from './absent-members.js';
import { readJson } from './json-body.js';

export interface SentBody {
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
