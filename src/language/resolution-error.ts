/** Errors of a resolution, combined into one fault. */
import { Fault, type FaultCode, type FaultDetail } from '../kernel/fault.js';

export type ResolutionCode = Extract<
  FaultCode,
  | 'module_not_supported'
  | 'variant_ambiguous'
  | 'variant_missing'
  | 'expression_error'
  | 'secret_unavailable'
  | 'module_conflict'
  | 'input_missing'
  | 'input_invalid'
>;

export interface ResolutionError {
  readonly code: ResolutionCode;
  readonly module: string;
  /** JSON pointer in that module. */
  readonly path: string;
  /** One sentence that names the module and the place. */
  readonly message: string;
}

const HINTS: Readonly<Record<ResolutionCode, string>> = {
  module_not_supported: "compare the agent's attributes and tags with the module's supports",
  variant_ambiguous: 'add a variant that matches both clauses, or make one clause more specific',
  variant_missing:
    'add a variant for this agent, or one with "when: {}" for all the others; with "if" in place of variants they get none',
  expression_error:
    'change the expression or what it names; for a missing tag or fact, set it or add a default, such as | default: "none"',
  secret_unavailable: 'create the secret, renew it, or change its restriction so that this agent may have it',
  input_missing: 'give the input a value, or a default in the module',
  input_invalid: 'correct the value where it is set; see where it comes from: orch explain NODE MODULE.INPUT',
  module_conflict:
    'keep the resource in one of the places, or make both equal; break a cycle by taking out a dependency',
};

/** Maximum number of listed errors; more are only counted. */
const MAX_DETAILS = 1000;

/** Returns the fault of one or more errors, with code and message of the first. */
function resolutionFault(first: ResolutionError, errors: readonly ResolutionError[]): Fault {
  const listed = errors.slice(0, MAX_DETAILS);
  const more = errors.length > 1 ? ` (and ${errors.length - 1} more)` : '';
  return new Fault(first.code, first.message + more, {
    hint: HINTS[first.code],
    errors: listed.map(({ path, message }): FaultDetail => ({ path, message })),
    data: { mistakes: listed.map(({ code, module, path }) => ({ code, module, path })) },
  });
}

/** Throws the fault of the errors, if any. */
export function throwErrors(errors: readonly ResolutionError[]): void {
  const [first] = errors;
  if (first !== undefined) throw resolutionFault(first, errors);
}
