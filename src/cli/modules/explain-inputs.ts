/** Explains the values of an agent's inputs, as `orch explain` shows them. */
import type { ApiClient } from '../../client/api-client.js';
import type { Agent } from '../../contract/agents.js';
import type { ExplainedInput } from '../../contract/values.js';
import { isFault } from '../../kernel/fault.js';
import { isModuleName } from '../../kernel/ids.js';
import { showClause } from '../../language/clause.js';
import { fieldsOf, headed, type Line, stackOf, styled, type View } from '../outcome.js';

/** An input with its module. */
export interface InputOfModule extends ExplainedInput {
  readonly module: string;
}

/** Returns the inputs that a word names: `MODULE.INPUT`, or all of `MODULE`. Returns none for other words and older orchestrators. */
export async function inputsNamed(
  api: ApiClient,
  { node_id }: Agent,
  word: string,
  signal: AbortSignal,
): Promise<readonly InputOfModule[]> {
  const dot = word.lastIndexOf('.');
  // The name of a module may have dots.
  const whole = isModuleName(word) ? await inputsOf(api, node_id, word, signal) : [];
  if (whole.length > 0 || dot < 1) return whole;
  const module = word.slice(0, dot);
  const all = isModuleName(module) ? await inputsOf(api, node_id, module, signal) : [];
  return all.filter(({ name }) => name === word.slice(dot + 1));
}

async function inputsOf(
  api: ApiClient,
  node_id: string,
  module: string,
  signal: AbortSignal,
): Promise<readonly InputOfModule[]> {
  try {
    const { modules } = await api.call('explainValues', { params: { node_id }, query: { module }, signal });
    return modules.flatMap(({ module: name, inputs }) => inputs.map((input) => ({ ...input, module: name })));
  } catch (error) {
    if (isFault(error, 'module_not_found', 'not_found', 'agent_not_approved')) return [];
    throw error;
  }
}

export const inputsView = (agent: string, inputs: readonly InputOfModule[]): View =>
  stackOf(inputs.map((input) => headed(`input ${input.module}.${input.name} on ${agent}`, fieldsOf(rowsOf(input)))));

type Row = readonly [string, Line];

function rowsOf({ value, is_default, candidates, problem, applied }: ExplainedInput): readonly Row[] {
  const shown = value === null ? styled('dim', 'none') : JSON.stringify(value);
  const own =
    applied == null ? '' : `${JSON.stringify(applied.value)}, by ${applied.from} of operation ${applied.operation_id}`;
  return [
    ...(own === '' ? [] : [['Applied', styled('warn', own)] as Row]),
    problem === null ? ['Value', shown] : ['Problem', styled('bad', problem)],
    ...(is_default ? [['From', 'the default of the module'] as Row] : []),
    ...candidates.toReversed().map((candidate): Row => {
      const { from, when, used } = candidate;
      // An assignment has no clause: it is for the agents that it matches.
      const clause = from.startsWith('assignment ') ? '' : ` (${showClause(when)})`;
      const text = `${from}${clause}: ${JSON.stringify(candidate.value)}`;
      if (problem !== null) return ['Given', text];
      return used ? ['From', text] : ['Beaten', styled('dim', text)];
    }),
  ];
}
