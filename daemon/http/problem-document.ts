/** Faults as RFC 9457 problem documents. */
import { FAULTS } from '../../src/contract/faults.js';
import type { Problem } from '../../src/contract/problem.js';
import type { RouteSpec } from '../../src/contract/route.js';
import type { Fault } from '../../src/kernel/fault.js';

export const PROBLEM_TYPE = 'application/problem+json; charset=utf-8';

/** The document; members of the fault's data stand beside the standard ones and never replace them. */
export function problemOf(fault: Fault, requestId: string, status: number): Problem {
  const { title } = FAULTS[fault.code];
  const standard: Problem = {
    type: `urn:orch:problem:${fault.code}`,
    title,
    status,
    detail: fault.hint ? `${fault.message}; ${fault.hint}` : fault.message,
    code: fault.code,
    request_id: requestId,
    ...(fault.errors ? { errors: [...fault.errors] } : {}),
  };
  return Object.fromEntries([
    ...Object.entries({ ...fault.data, errors: undefined }),
    ...Object.entries(standard),
  ]) as Problem;
}

/** The status of a fault on a route with these statuses of its own. */
export const statusOf = (fault: Fault, statuses: RouteSpec['statuses'] = {}): number =>
  statuses[fault.code] ?? FAULTS[fault.code].status;

/** The headers that go with a fault. */
export function problemHeaders(fault: Fault): Readonly<Record<string, string>> {
  const headers: Record<string, string> = {};
  if (FAULTS[fault.code].status === 401) headers['www-authenticate'] = 'Bearer';
  const { retry_after: retryAfter, allow } = fault.data ?? {};
  if (typeof retryAfter === 'number') headers['retry-after'] = String(Math.max(0, Math.ceil(retryAfter)));
  if (fault.code === 'method_not_allowed' && Array.isArray(allow)) headers.allow = allow.join(', ');
  return headers;
}
