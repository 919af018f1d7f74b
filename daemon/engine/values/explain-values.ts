/** Explains the values of an agent's inputs: which document gave each one, and what it beat. */
import type { ExplainedInput, ExplainedModule } from '../../../src/contract/values.js';
import { mapped, type Steps } from '../../../src/kernel/steps.js';
import type { CompiledModule } from '../../../src/language/compile-module.js';
import type { AgentFacts } from '../../../src/language/evaluate.js';
import {
  chooseInput,
  type GivenValues,
  NO_VALUES,
  valueSteps,
  valuesFor,
} from '../../../src/language/inputs/choose.js';
import type { Input } from '../../../src/language/inputs/input.js';
import { withOneOff } from '../../../src/language/inputs/one-off-values.js';
import type { Value } from '../../../src/language/values.js';
import type { Queryable } from '../../database/schema.js';
import type { AgentInputs } from '../agent-inputs.js';
import { factsOf } from '../applies/desired-set.js';
import type { CurrentAssignments } from '../assignments/assignment-store.js';
import type { CurrentModules } from '../modules/current-modules.js';
import { findOperation } from '../operations/operation-store.js';
import type { AgentWithInputs } from '../runs/agent-gate.js';
import { inSlices } from '../slices.js';
import type { CurrentValues } from './current-values.js';
import { findOneOffValues } from './one-off-store.js';

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
  const applied = await appliedValues(db, inputs, facts);
  return inSlices(
    (function* (): Steps<ExplainedModule[]> {
      const found: ExplainedModule[] = [];
      for (const { name, compiled } of modules) {
        const { problems } = yield* valueSteps(compiled, concerned);
        const explain = ([input, declared]: readonly [string, Input]): ExplainedInput => ({
          ...explained(compiled, input, declared, concerned),
          problem: problems.find((one) => one.input === input)?.message ?? null,
          ...applied(compiled, input, declared),
        });
        found.push({ module: name, inputs: yield* mapped([...compiled.inputs], explain) });
      }
      return found;
    })(),
  );
}

/** Returns the member of an input for the value that the last apply of the agent brought with it. */
type Applied = (module: CompiledModule, name: string, input: Input) => Pick<ExplainedInput, 'applied'>;

async function appliedValues(db: Queryable, { row, valueInputs }: AgentInputs, facts: AgentFacts): Promise<Applied> {
  const { state_operation_id: operation_id } = row;
  const operation = operation_id === null || valueInputs.length === 0 ? null : await findOperation(db, operation_id);
  const own = operation === null ? null : await findOneOffValues(db, operation.values_sha256);
  if (operation_id === null || own === null) return () => ({});
  const given = valuesFor(withOneOff(NO_VALUES, own.read), facts);
  return (module, name, input) => {
    if (!valueInputs.includes(`${module.name}.${name}`)) return {};
    const last = chooseInput(module.name, name, input, given).candidates.at(-1);
    return last === undefined ? {} : { applied: { value: last.value, from: last.from, operation_id } };
  };
}

function explained(
  module: CompiledModule,
  name: string,
  input: Input,
  given: GivenValues,
): Omit<ExplainedInput, 'problem'> {
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
  };
}
