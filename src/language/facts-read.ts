/** The facts of an agent that a module reads: agents with the same ones get the same resources from it. */

import { labelOf } from './clause.js';
import type { CompiledModule } from './compile-module.js';
import { type AgentFacts, type ReportedFacts, valueOfReference } from './evaluate.js';
import { PACKAGES, type PathReference, pathOf, type Reference, written } from './parse-expression.js';
import { isMap, textOf, type Value, type ValueMap } from './values.js';

const FACTS: ReadonlySet<string> = new Set(['tags', 'attributes', 'facts', 'agent']);
/** Attributes that an agent reports apart from the others, because they have parts. */
const PARTED: ReadonlySet<string> = new Set([
  'interfaces',
  'disks',
  'mounts',
  PACKAGES,
] satisfies (keyof ReportedFacts['parts'])[]);

/** Values of facts by the names that modules write, such as `attributes.memory_mb`; null for an absent one. */
export type ReadFacts = Readonly<Record<string, Value | null>>;

export interface FactsRead {
  /** Returns the values of the facts that the module may read, in a fixed order; null for an absent one. */
  values(agent: AgentFacts): readonly (Value | null)[];
  /** True if some of them are facts that an agent reports beside its attributes. */
  readonly areReported: boolean;
  /** Returns those of them that the agent itself reports. */
  reported(agent: AgentFacts): ReadFacts;
  /** Names of the packages whose versions the module reads. */
  readonly packages: readonly string[];
}

export function factsRead({ supports, resources, checks, references: all }: CompiledModule): FactsRead {
  const references = all.filter(({ from }) => FACTS.has(from));
  const reads = new Map(references.map((reference) => [written(reference), reference]));
  const options = [...resources.flatMap((resource) => resource.options), ...checks];
  const clauses = [...supports, ...options.map(({ when }) => when ?? {})];
  // Whether a check can run depends on the platform.
  const own = checks.length === 0 ? [] : ['platform', 'init_system'];
  const labels = [...new Set([...own, ...clauses.flatMap((clause) => Object.keys(clause))])];
  const reported = [...reads].filter(([, { from }]) => from === 'attributes' || from === 'facts');
  return {
    values: (agent) => [
      ...labels.map((label) => labelOf(agent, label) ?? null),
      ...[...reads.values()].map((read) => valueFor(agent, read)),
    ],
    areReported: references.some(({ from, name }) =>
      from === 'facts' ? true : from === 'attributes' && PARTED.has(name.split('.')[0] ?? ''),
    ),
    reported: (agent) => Object.fromEntries(reported.map(([name, read]) => [name, valueFor(agent, read)])),
    packages: reported.flatMap(([, read]) => ('path' in read && isPackage(read) ? [read.path[1] ?? ''] : [])),
  };
}

const isPackage = ({ from, path }: PathReference): boolean => from === 'attributes' && path[0] === PACKAGES;

const valueFor = (agent: AgentFacts, read: Reference): Value | null =>
  valueOfReference(read, { agent, each: null, inputs: {}, shared: {} }) ?? null;

/** Attributes that selectors, clauses and value sets know: they decide what an agent gets whatever its modules name. */
const LABELS = ['arch', 'distro', 'init_system', 'platform', 'version'] as const;

/** Returns the reported facts on which the resources of an agent depend. */
export const readFactsOf = (modules: readonly { readonly facts: FactsRead }[], agent: AgentFacts): ReadFacts => ({
  ...Object.fromEntries(LABELS.map((label) => [`attributes.${label}`, labelOf(agent, label) ?? null])),
  ...Object.assign({}, ...modules.map(({ facts }) => facts.reported(agent))),
});

/** Returns the agent as it was with other values of its reported facts. */
export function withReadFacts(agent: AgentFacts, facts: ReadFacts): AgentFacts {
  const attributes: Record<string, string> = { ...agent.attributes };
  let parts: ValueMap = (agent.facts?.parts ?? {}) as ValueMap;
  let own: ValueMap = agent.facts?.own ?? {};
  // A fact comes before the parts of it.
  for (const [name, value] of Object.entries(facts).sort(([a], [b]) => (a < b ? -1 : 1))) {
    const [from = ''] = name.split('.', 1);
    const path = pathOf(from, name.slice(from.length + 1));
    const [first = ''] = path;
    if (from === 'facts') own = withValue(own, path, value);
    else if (PARTED.has(first)) parts = withValue(parts, path, value);
    else if (value === null) delete attributes[first];
    else attributes[first] = textOf(value);
  }
  return { ...agent, attributes, facts: { parts: parts as ReportedFacts['parts'], own } };
}

/** Returns a copy with the value at a path; null removes it. */
function withValue(map: ValueMap, [name = '', ...path]: readonly string[], value: Value | null): ValueMap {
  const copy: Record<string, Value> = { ...map };
  const inner = Object.hasOwn(map, name) ? map[name] : undefined;
  if (path.length > 0) {
    if (value === null && inner === undefined) return map;
    copy[name] = withValue(inner !== undefined && isMap(inner) ? inner : {}, path, value);
  } else if (value === null) delete copy[name];
  else copy[name] = value;
  return copy;
}
