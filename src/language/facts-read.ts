/** The facts of an agent that a module reads: agents with the same ones get the same resources from it. */

import { labelOf } from './clause.js';
import type { CompiledModule } from './compile-module.js';
import { type AgentFacts, valueOfReference } from './evaluate.js';
import { textOf } from './values.js';

const FACTS: ReadonlySet<string> = new Set(['tags', 'attributes', 'agent']);

/** Returns the values of the facts that the module may read, in a fixed order; null for an absent one. */
export type FactsRead = (agent: AgentFacts) => readonly (string | null)[];

export function factsRead({ supports, resources, checks, references: all }: CompiledModule): FactsRead {
  const references = all.filter(({ from }) => FACTS.has(from));
  const reads = new Map(references.map((reference) => [`${reference.from}.${reference.name}`, reference]));
  const options = [...resources.flatMap((resource) => resource.options), ...checks];
  const clauses = [...supports, ...options.map(({ when }) => when ?? {})];
  // Whether a check can run depends on the platform.
  const own = checks.length === 0 ? [] : ['platform', 'init_system'];
  const labels = [...new Set([...own, ...clauses.flatMap((clause) => Object.keys(clause))])];
  return (agent) => [
    ...labels.map((label) => labelOf(agent, label) ?? null),
    ...[...reads.values()].map((read) => {
      const value = valueOfReference(read, { agent, each: null, inputs: {}, shared: {} });
      return value === undefined ? null : textOf(value);
    }),
  ];
}
