/** From the text that somebody uploads to what is stored, or every mistake in it. */
import { createHash } from 'node:crypto';
import type { Warning } from '../../src/contract/modules.js';
import { Fault, type FaultDetail } from '../../src/kernel/fault.js';
import { parseModule } from '../../src/language/parse-module.js';
import type { ModuleDefinition } from '../../src/language/schema.js';

export interface CheckedModule {
  readonly definition: ModuleDefinition;
  /** Hex, of the text in UTF-8. */
  readonly sha256: string;
  readonly warnings: readonly Warning[];
}

/** Throws `invalid_module` with every mistake of the text, and when it has another name than the one given. */
export function checkUpload(name: string, content: string): CheckedModule {
  const { definition, diagnostics, locate } = parseModule(content);
  const found = diagnostics.map(({ severity, path, message, line, column }) => ({
    severity,
    detail: { path, message, line, column },
  }));
  const errors: FaultDetail[] = found.filter(({ severity }) => severity === 'error').map(({ detail }) => detail);
  if (definition !== null && definition.name !== name) {
    const message = `the module is named "${definition.name}", but is uploaded as "${name}"`;
    errors.push({ path: '/name', message, ...locate('/name') });
  }
  if (definition === null || errors.length > 0) throw invalid(name, errors);
  return {
    definition,
    sha256: createHash('sha256').update(content).digest('hex'),
    warnings: found.filter(({ severity }) => severity === 'warning').map(({ detail }) => detail),
  };
}

function invalid(name: string, errors: readonly FaultDetail[]): Fault {
  const [first] = errors;
  const place = first?.line === undefined ? '' : ` (line ${first.line})`;
  const more = errors.length > 1 ? ` and ${errors.length - 1} more` : '';
  const what = first === undefined ? 'it is no module' : `${first.message}${place}${more}`;
  return new Fault('invalid_module', `module "${name}" is not valid: ${what}`, {
    hint: 'check it before the upload: orch module validate FILE',
    errors,
  });
}
