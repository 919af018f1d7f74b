/** Checks whether modules are compatible on an agent, by resolving those that support it. */
import { Fault } from '../../kernel/fault.js';
import { maskOf } from '../../kernel/tainted.js';
import { clauseMatches } from '../../language/clause.js';
import type { AgentFacts } from '../../language/evaluate.js';
import type { SecretSource } from '../../language/filling.js';
import type { GivenValues } from '../../language/inputs/choose.js';
import { resolveCompiled } from '../../language/resolve.js';
import type { ReadModule } from './read-modules.js';

export interface Conflict {
  readonly code: string;
  /** Path of the file. */
  readonly path: string;
  readonly module: string;
  readonly line: number;
  readonly column: number;
  readonly message: string;
}

export interface CheckedAgent {
  readonly node_id: string;
  readonly name: string;
  /** Names of the modules that support the agent. */
  readonly modules: readonly string[];
  readonly errors: readonly Conflict[];
  readonly warnings: readonly Conflict[];
}

/** Resolves the modules that support an agent, and returns the conflicts. Secrets count as present. */
export function checkTogether(agent: AgentFacts, modules: readonly ReadModule[], values: GivenValues): CheckedAgent {
  const supporting = modules.filter(({ compiled }) => compiled.supports.some((clause) => clauseMatches(clause, agent)));
  const { node_id, name } = agent;
  const checked = { node_id, name, modules: supporting.map((module) => module.name) };
  try {
    const compiled = supporting.map((module) => module.compiled);
    const { warnings } = resolveCompiled({ modules: compiled, agent, secret: unknownSecrets, values });
    const located = warnings.map((warning) => placed(supporting, { code: 'warning', ...warning }));
    return { ...checked, errors: [], warnings: located };
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

/** Returns the errors of a resolution, each with its module. */
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

/** Source of unknown secrets: a mark stands for each value. */
export const unknownSecrets: SecretSource = (secret) => ({ value: maskOf({ secret, tag: '' }), tag: '0000' });
