/** The facts of an agent that a module reads: agents with the same ones get the same resources from it. */

import { labelOf } from './clause.js';
import type { CompiledModule, Repetition } from './compile-module.js';
import { type AgentFacts, valueOfReference } from './evaluate.js';
import { referencesIn } from './expression.js';
import { referencesOfCondition } from './parse-condition.js';
import { type Reference, referencesOf } from './parse-expression.js';
import type { ModuleDefinition } from './schema.js';
import { textOf } from './values.js';

/** Returns the values of the facts that the module may read, in a fixed order; null for an absent one. */
export type FactsRead = (agent: AgentFacts) => readonly (string | null)[];

export function factsRead(
  definition: ModuleDefinition,
  { supports, entries, resources, checks }: CompiledModule,
): FactsRead {
  const repeated = [...entries, ...resources].flatMap(({ repetition }) => referencesOfRepetition(repetition));
  const references = [...referencesIn(definition), ...repeated].filter(
    ({ from }) => from !== 'secrets' && from !== 'each',
  );
  const reads = new Map(references.map((reference) => [`${reference.from}.${reference.name}`, reference]));
  const options = [...resources.flatMap((resource) => resource.options), ...checks];
  const clauses = [...supports, ...options.map(({ when }) => when ?? {})];
  // Whether a check can run depends on the platform.
  const own = checks.length === 0 ? [] : ['platform', 'init_system'];
  const labels = [...new Set([...own, ...clauses.flatMap((clause) => Object.keys(clause))])];
  return (agent) => [
    ...labels.map((label) => labelOf(agent, label) ?? null),
    ...[...reads.values()].map((read) => {
      const value = valueOfReference(read, { agent, each: null });
      return value === undefined ? null : textOf(value);
    }),
  ];
}

/** Returns the values that a condition and a loop name. */
function referencesOfRepetition(repetition: Repetition | null): readonly Reference[] {
  if (repetition === null) return [];
  const { condition, loop } = repetition;
  return [
    ...(condition === null ? [] : referencesOfCondition(condition.condition)),
    ...(loop !== null && 'reference' in loop.source ? referencesOf(loop.source) : []),
  ];
}
