/** The outline of a module for rules across its parts. It leaves broken parts out. */
import { canonicalJson } from '../kernel/json.js';
import type { MistakeList, Place } from './diagnostic.js';
import { presentFields, type Scope, scopeOf } from './expression-types.js';
import type { Input } from './inputs/input.js';
import { fieldTypes, readInputs } from './inputs/read-inputs.js';
import { type OutlineOption, readKindChoice } from './kind-choice.js';
import type { KindSet } from './kind-set.js';
import {
  clauseOf,
  dataOf,
  items,
  type Located,
  type LocatedMap,
  member,
  type Named,
  named,
  namedItems,
  scalarAt,
} from './located.js';
import { readLoop } from './loop.js';
import { type Condition, parseCondition } from './parse-condition.js';
import type { AttributeClause } from './schema.js';
import { TEXT, UNKNOWN } from './values.js';

/** When a resource or a group is there, and how often. */
interface OutlineRepetition {
  /** What expressions in it may name. */
  readonly scope: Scope;
  /** Text that is the same for entries of one loop, or of loops over the same; null outside of loops. */
  readonly loop: string | null;
  /** True for what some agents do not have because of a condition. */
  readonly isConditional: boolean;
}

/** A group of resources. */
export interface OutlineGroup extends OutlineRepetition {
  readonly path: string;
  readonly node: LocatedMap;
  readonly id: Named | null;
  readonly dependsOn: readonly Named[];
}

/** A resource, also one of a group. */
export interface OutlineEntry extends OutlineRepetition {
  /** The group that holds it; null for none. */
  readonly group: OutlineGroup | null;
  readonly path: string;
  readonly node: LocatedMap;
  readonly id: Named | null;
  readonly dependsOn: readonly Named[];
  readonly options: readonly OutlineOption[];
  /** Null without a list of variants. */
  readonly variants:
    | readonly { readonly when: AttributeClause; readonly path: string; readonly node: Located }[]
    | null;
}

interface OutlineClause extends Place {
  readonly clause: AttributeClause;
  readonly path: string;
}

export interface OutlineTemplate {
  readonly id: Named | null;
  readonly node: LocatedMap;
  readonly path: string;
  /** True for one with an engine. */
  readonly isRendered: boolean;
}

export interface Outline {
  readonly root: Located;
  /** Inputs of the module; null for one with a mistake of its own. */
  readonly inputs: ReadonlyMap<string, Input | null>;
  /** Names that expressions outside of loops and conditions may use. */
  readonly scope: Scope;
  readonly supports: readonly OutlineClause[];
  /** All resources, also those of groups. */
  readonly entries: readonly OutlineEntry[];
  readonly groups: readonly OutlineGroup[];
  readonly templates: readonly OutlineTemplate[];
  /** Entries of `verify`. */
  readonly checks: readonly { readonly node: LocatedMap; readonly path: string }[];
}

/** Reads the outline and reports every mistake inside bodies. */
export function readOutline(root: Located, kinds: KindSet, mistakes: MistakeList): Outline {
  const inputs = readInputs(member(root, 'inputs'), mistakes);
  const scope = scopeOf(fieldTypes(inputs));
  const groups: OutlineGroup[] = [];
  const entries = items(member(root, 'resources')).flatMap((node, index): readonly OutlineEntry[] => {
    const path = `/resources/${index}`;
    if (node.type !== 'map') return [];
    if (!node.members.has('resources')) return [readEntry(node, path, { kinds, mistakes, scope, group: null })];
    const group: OutlineGroup = { path, node, ...namesOf(node, path), ...repetitionOf(node, null, scope) };
    groups.push(group);
    return items(member(node, 'resources')).flatMap((inner, at) =>
      inner.type === 'map' ? [readEntry(inner, `${path}/resources/${at}`, { kinds, mistakes, scope, group })] : [],
    );
  });
  return {
    root,
    inputs,
    scope,
    supports: items(member(root, 'supports')).flatMap((node, index) => {
      const clause = clauseOf(node);
      return clause === null ? [] : [{ clause, path: `/supports/${index}`, start: node.start, end: node.end }];
    }),
    entries,
    groups,
    templates: items(member(root, 'templates')).flatMap((node, index) => {
      const path = `/templates/${index}`;
      if (node.type !== 'map') return [];
      return [{ id: named(member(node, 'id'), `${path}/id`), node, path, isRendered: node.members.has('engine') }];
    }),
    checks: items(member(root, 'verify')).flatMap((node, index) =>
      node.type === 'map' ? [{ node, path: `/verify/${index}` }] : [],
    ),
  };
}

interface Reading {
  readonly kinds: KindSet;
  readonly mistakes: MistakeList;
  readonly group: OutlineGroup | null;
  /** That of the module. */
  readonly scope: Scope;
}

const namesOf = (node: LocatedMap, path: string) => ({
  id: named(member(node, 'id'), `${path}/id`),
  dependsOn: namedItems(member(node, 'depends_on'), `${path}/depends_on`),
});

/** Returns the loop of an entry or a group, and the types of its elements; null without one. */
function loopOf(node: LocatedMap, scope: Scope): { readonly loop: string; readonly each: Scope['each'] } | null {
  const source = member(node, 'for_each');
  if (source === undefined) return null;
  const key = scalarAt(node, '/key')?.value;
  const data = dataOf(source);
  const read = readLoop(data, typeof key === 'string' ? key : null, scope);
  // A loop with a mistake of its own admits every field.
  return { each: 'message' in read ? ANY : read.types, loop: canonicalJson(data) };
}

const ANY = { key: TEXT, value: UNKNOWN };

/** Returns the condition of an entry or a group; null for none, or for one with a mistake. */
function conditionOf(node: LocatedMap): Condition | null {
  const source = scalarAt(node, '/if')?.value;
  const parsed = typeof source === 'string' ? parseCondition(source) : null;
  return typeof parsed === 'string' ? null : parsed;
}

/** Returns what an entry has of its own and of its group: the loop, and what its conditions promise. */
function repetitionOf(node: LocatedMap, group: OutlineRepetition | null, scope: Scope): OutlineRepetition {
  const own = loopOf(node, scope);
  const condition = conditionOf(node);
  return {
    loop: own?.loop ?? group?.loop ?? null,
    scope: {
      each: own?.each ?? group?.scope.each ?? null,
      inputs: scope.inputs,
      present: new Set([...(group?.scope.present ?? []), ...(condition === null ? [] : presentFields(condition))]),
    },
    isConditional: node.members.has('if') || group?.isConditional === true,
  };
}

function readEntry(node: LocatedMap, path: string, reading: Reading): OutlineEntry {
  const { group } = reading;
  const resource = member(node, 'resource');
  const listed = member(node, 'variants');
  const variants = items(listed).flatMap((variant, index) => {
    const at = `${path}/variants/${index}`;
    const when = clauseOf(member(variant, 'when'));
    const choice = member(variant, 'resource');
    const option = choice && readKindChoice(choice, { ...reading, path: `${at}/resource`, when });
    return [{ when, path: at, node: variant, option: option ?? null }];
  });
  const universal = resource && readKindChoice(resource, { ...reading, path: `${path}/resource`, when: null });
  return {
    group,
    ...repetitionOf(node, group, reading.scope),
    path,
    node,
    ...namesOf(node, path),
    options: [universal ?? null, ...variants.map(({ option, when }) => (when === null ? null : option))].filter(
      (option) => option !== null,
    ),
    variants:
      listed === undefined
        ? null
        : variants.flatMap(({ when, path: at, node: place }) =>
            when === null ? [] : [{ when, path: at, node: place }],
          ),
  };
}

/** Input of a rule across a module. */
export interface RuleContext {
  readonly outline: Outline;
  readonly mistakes: MistakeList;
  /** Returns the line of a place, from 1. */
  lineOf(place: Place): number;
}
