/** The refusal of a module, for the CLI and the orchestrator alike. */
import { Fault } from '../kernel/fault.js';
import type { Diagnostic } from './diagnostic.js';

/** `invalid_module` with every error and its place; `label` names the module or its file. Warnings are left out. */
export function moduleFault(label: string, diagnostics: readonly Diagnostic[]): Fault {
  const errors = diagnostics.filter(({ severity }) => severity === 'error');
  const [first] = errors;
  const more = errors.length > 1 ? ` (and ${errors.length - 1} more)` : '';
  const what = first === undefined ? 'it is no module' : `line ${first.line}: ${first.message}${more}`;
  return new Fault('invalid_module', `${label}: ${what}`, {
    hint: 'check the file with "orch module validate"',
    errors: errors.map(({ path, message, line, column }) => ({ path, message, line, column })),
  });
}
