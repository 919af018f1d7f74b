/** The values that a fleet has: those of value sets, and above them those of assignments. */
import { entriesOf, type GivenValues, type Layer } from './choose.js';
import type { ValueEntry, ValueSet } from './value-set.js';

/** A value set with its name. */
export interface NamedSet {
  readonly name: string;
  readonly set: ValueSet;
}

/** An assignment with the values that it gives the modules of its agents; null for none. */
export interface AssignedValues {
  readonly name: string;
  readonly values: ValueEntry['set'] | null;
}

/** The values of all value sets. */
export interface SetValues {
  readonly layer: Layer;
  readonly rank: readonly string[];
}

export const valuesOfSets = (sets: readonly NamedSet[]): SetValues => ({
  layer: sets.flatMap(({ name, set }) => entriesOf(set, fileOf(name))),
  rank: sets.flatMap(({ set }) => set.rank ?? []),
});

/** Returns the name of the file of a value set, which messages show. */
export const fileOf = (name: string): string => `${name}.values.yaml`;

/** Adds the values of assignments, which are above those of value sets. */
export const withAssignments = ({ layer, rank }: SetValues, assignments: readonly AssignedValues[]): GivenValues => ({
  layers: [layer, assignments.flatMap(layerOf)],
  rank,
});

/** Returns the values of an assignment as an entry for each agent that it matches. */
export const entryOfAssignment = (values: ValueEntry['set']): ValueEntry => ({
  when: {},
  shared: {},
  set: values,
  lines: {},
});

const layerOf = ({ name, values }: AssignedValues): Layer =>
  values === null ? [] : [{ ...entryOfAssignment(values), from: `assignment ${name}` }];
