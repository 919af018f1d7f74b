/** An answer as it goes on the wire, and how handlers' answers and faults become one. */
import { Readable } from 'node:stream';
import type { RouteSpec } from '../../src/contract/route.js';
import type { Fault } from '../../src/kernel/fault.js';
import { validator } from '../../src/kernel/validator.js';
import { PROBLEM_TYPE, problemHeaders, problemOf, statusOf } from './problem-document.js';

export interface Rendered {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** null is an answer without a body. */
  readonly payload: string | null;
  /** The body when it is sent piece by piece; there is no payload then. */
  readonly pieces?: Readable;
}

interface AnyAnswer {
  readonly status: number;
  readonly body: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

export const JSON_TYPE = 'application/json; charset=utf-8';

/**
 * Makes the renderer of a route's answers. Bodies are written with `JSON.stringify`, which is about as fast as code
 * generated from the schema for objects of this size. Throws an Error for an answer that the contract does not have:
 * always when its status is none of the route's, and with `validate` when its body does not match the schema.
 */
export function answerRenderer(route: RouteSpec, validate: boolean): (answer: AnyAnswer) => Rendered {
  const checks = new Map(
    Object.entries(route.answers).map(([status, schema]) => [Number(status), schema && validator(schema)]),
  );
  const type = route.mediaType ?? JSON_TYPE;
  return ({ status, body, headers = {} }) => {
    const check = checks.get(status);
    if (check === undefined) throw new Error(`${route.id} answered ${status}, which is not in its contract`);
    if (check === null) return { status, headers, payload: null };
    const typed = { ...headers, 'content-type': type };
    if (route.mediaType !== undefined && body instanceof Readable) {
      return { status, headers: typed, payload: null, pieces: body };
    }
    const payload = route.mediaType === undefined ? JSON.stringify(body) : String(body);
    if (validate) {
      const [problem] = check.problems(route.mediaType === undefined ? JSON.parse(payload ?? 'null') : body);
      if (problem)
        throw new Error(`${route.id} answered a body that breaks its contract: ${problem.path} ${problem.message}`);
    }
    return { status, headers: typed, payload };
  };
}

/** Throws an Error when a line or an event of a stream breaks the contract. */
export function pieceChecker(route: RouteSpec): (piece: unknown) => void {
  const schema = route.stream ?? route.events;
  const check = schema && validator(schema);
  return (piece) => {
    const [problem] = check?.problems(JSON.parse(JSON.stringify(piece))) ?? [];
    if (problem) throw new Error(`${route.id} streamed what breaks its contract: ${problem.path} ${problem.message}`);
  };
}

/** The problem document of a fault that may be shown. */
export function renderFault(fault: Fault, requestId: string, statuses?: RouteSpec['statuses']): Rendered {
  const headers = { ...problemHeaders(fault), 'content-type': PROBLEM_TYPE };
  const status = statusOf(fault, statuses);
  return { status, headers, payload: JSON.stringify(problemOf(fault, requestId, status)) };
}
