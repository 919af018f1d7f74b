/** Whether modules go together on an agent: what resolution says of those that support it. */
import { Fault } from '../../kernel/fault.js';
import { maskOf } from '../../kernel/tainted.js';
import { clauseMatches } from '../../language/clause.js';
import type { AgentFacts, SecretSource } from '../../language/fill.js';
import { resolveCompiled } from '../../language/resolve.js';
import type { ReadModule } from './read-modules.js';

export interface Conflict {
  readonly code: string;
  /** The file. */
  readonly path: string;
  readonly module: string;
  readonly line: number;
  readonly column: number;
  readonly message: string;
}

export interface CheckedAgent {
  readonly node_id: string;
  readonly name: string;
  /** The modules that support the agent, in their order. */
  readonly modules: readonly string[];
  readonly errors: readonly Conflict[];
  readonly warnings: readonly Conflict[];
}

/** Secrets count as present: a mark stands for each value. */
export function checkTogether(agent: AgentFacts, modules: readonly ReadModule[]): CheckedAgent {
  const supporting = modules.filter(({ compiled }) => compiled.supports.some((clause) => clauseMatches(clause, agent)));
  const { node_id, name } = agent;
  const checked = { node_id, name, modules: supporting.map((module) => module.name) };
  try {
    const compiled = supporting.map((module) => module.compiled);
    const { warnings } = resolveCompiled({ modules: compiled, agent, secret: unknownSecrets });
    const told = warnings.map((warning) => placed(supporting, { code: 'warning', ...warning }));
    return { ...checked, errors: [], warnings: told };
  } catch (error) {
    if (!(error instanceof Fault) || !isResolution(error)) throw error;
    return { ...checked, errors: conflictsOf(error).map((one) => placed(supporting, one)), warnings: [] };
  }
}

interface Mistake {
  readonly code: string;
  readonly module: string;
  /** JSON pointer. */
  readonly path: string;
  readonly message: string;
}

const isResolution = ({ data }: Fault): boolean => Array.isArray(data?.mistakes);

/** The errors of a resolution with the module that each is in. */
function conflictsOf({ code, message, errors = [], data }: Fault): readonly Mistake[] {
  const mistakes: readonly unknown[] = Array.isArray(data?.mistakes) ? data.mistakes : [];
  return errors.map((error, index): Mistake => {
    const mistake = mistakes[index];
    const module = isModuleMistake(mistake) ? mistake.module : '';
    const own = isModuleMistake(mistake) ? mistake.code : code;
    return { code: own, module, path: error.path, message: error.message || message };
  });
}

const isModuleMistake = (value: unknown): value is { readonly code: string; readonly module: string } =>
  typeof value === 'object' &&
  value !== null &&
  'module' in value &&
  typeof value.module === 'string' &&
  'code' in value &&
  typeof value.code === 'string';

function placed(modules: readonly ReadModule[], { code, module, path: pointer, message }: Mistake): Conflict {
  const source = modules.find(({ name }) => name === module);
  const { line, column } = source?.locate(pointer) ?? { line: 1, column: 1 };
  return { code, module, path: source?.path ?? module, line, column, message };
}

/** Secrets whose values this program does not have: a mark stands for each. */
export const unknownSecrets: SecretSource = (secret) => ({ value: maskOf({ secret, tag: '' }), tag: '0000' });
