/** Problem documents as the faults that they were at the server. */
import { Fault, type FaultDetail } from '../kernel/fault.js';
import { isFaultCode } from '../kernel/fault-code.js';

type Members = Readonly<Record<string, unknown>>;

const STANDARD: ReadonlySet<string> = new Set(['type', 'detail', 'code', 'errors']);

/**
 * The fault of a problem document, or null for what is none. A code that this program does not know becomes `internal`
 * with the server's words, and stands in `data.code`. `data` has the other members, `status` and `request_id` among them.
 */
export function faultOfProblem(value: unknown): Fault | null {
  if (!isObject(value) || typeof value.code !== 'string' || typeof value.status !== 'number') return null;
  const { code, detail, title, errors } = value;
  const others = Object.fromEntries(Object.entries(value).filter(([name]) => !STANDARD.has(name)));
  const message = [detail, title, code].find((text) => typeof text === 'string' && text !== '');
  const details = Array.isArray(errors) ? errors.filter(isDetail) : [];
  return new Fault(isFaultCode(code) ? code : 'internal', String(message), {
    data: isFaultCode(code) ? others : { ...others, code },
    ...(details.length > 0 ? { errors: details } : {}),
  });
}

function isDetail(value: unknown): value is FaultDetail {
  return isObject(value) && typeof value.path === 'string' && typeof value.message === 'string';
}

const isObject = (value: unknown): value is Members =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
