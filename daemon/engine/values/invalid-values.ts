/** The fault of wrong values. */
import { Fault, type FaultDetail } from '../../../src/kernel/fault.js';

/** Returns the fault of wrong values. @param label names the document */
export function invalidValues(label: string, errors: readonly FaultDetail[]): Fault {
  const [first] = errors;
  const place = first?.line === undefined ? '' : `, line ${first.line}`;
  const more = errors.length > 1 ? ` (and ${errors.length - 1} more)` : '';
  return new Fault('invalid_values', `${label}${place}: ${first?.message ?? 'it is no value set'}${more}`, {
    hint: 'correct these lines; nothing was stored',
    errors,
  });
}
