/** Explains the values of an agent's inputs: which document gave each one, and what it beat. */
import type { ExplainedInput, ExplainedModule } from '../../../src/contract/values.js';
import type { CompiledModule } from '../../../src/language/compile-module.js';
import { chooseInput, type GivenValues, moduleValues, valuesFor } from '../../../src/language/inputs/choose.js';
import type { Input } from '../../../src/language/inputs/input.js';
import type { Value } from '../../../src/language/values.js';
import type { Queryable } from '../../database/schema.js';
import { factsOf } from '../applies/desired-set.js';
import type { CurrentAssignments } from '../assignments/assignment-store.js';
import type { CurrentModules } from '../modules/current-modules.js';
import type { AgentWithInputs } from '../runs/agent-gate.js';
import type { CurrentValues } from './current-values.js';

interface ExplainOptions {
  readonly assignments: CurrentAssignments;
  readonly current: CurrentModules;
  readonly values: CurrentValues;
}

/** Returns the values of the modules that assignments give the agent, or of one module. Throws `module_not_found`. */
export async function explainValues(
  db: Queryable,
  { assignments: all, current, values }: ExplainOptions,
  { inputs }: AgentWithInputs,
  only: string | null,
): Promise<ExplainedModule[]> {
  const assignments = await all.matching(db, inputs);
  const given = [...new Set(assignments.flatMap(({ modules }) => modules))];
  const names = only === null ? await current.present(db, given, inputs.modules) : [only];
  const modules = await current.find(db, names, { revision: inputs.modules });
  const facts = factsOf(inputs.row, inputs.tags);
  const concerned = valuesFor(await values.of(db, inputs, assignments), facts);
  return modules.map(({ name, compiled }) => ({
    module: name,
    inputs: [...compiled.inputs].map(([input, declared]) => explained(compiled, input, declared, concerned)),
  }));
}

function explained(module: CompiledModule, name: string, input: Input, given: GivenValues): ExplainedInput {
  const { problems } = moduleValues(module, given);
  const problem = problems.find((one) => one.input === name)?.message ?? null;
  const chosen = chooseInput(module.name, name, input, given);
  const used = 'message' in chosen ? [] : chosen.used;
  const value: Value | null = 'message' in chosen ? null : (chosen.value ?? null);
  return {
    name,
    value,
    is_default: value !== null && used.length === 0,
    candidates: chosen.candidates.map((candidate) => ({
      value: candidate.value,
      from: candidate.from,
      when: { ...candidate.when },
      used: used.includes(candidate),
    })),
    problem,
  };
}
