/** The outline of a module for rules across its parts. It leaves broken parts out. */
import type { MistakeList, Place } from './diagnostic.js';
import { type OutlineOption, readKindChoice } from './kind-choice.js';
import type { KindSet } from './kind-set.js';
import { clauseOf, items, type Located, type LocatedMap, member, type Named, named, namedItems } from './located.js';
import type { AttributeClause } from './schema.js';

export interface OutlineEntry {
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

export interface Outline {
  readonly root: Located;
  readonly supports: readonly OutlineClause[];
  readonly entries: readonly OutlineEntry[];
  readonly templates: readonly { readonly id: Named | null; readonly node: LocatedMap; readonly path: string }[];
  /** Entries of `verify`. */
  readonly checks: readonly { readonly node: LocatedMap; readonly path: string }[];
}

/** Reads the outline and reports every mistake inside bodies. */
export function readOutline(root: Located, kinds: KindSet, mistakes: MistakeList): Outline {
  return {
    root,
    supports: items(member(root, 'supports')).flatMap((node, index) => {
      const clause = clauseOf(node);
      return clause === null ? [] : [{ clause, path: `/supports/${index}`, start: node.start, end: node.end }];
    }),
    entries: items(member(root, 'resources')).flatMap((node, index) =>
      node.type === 'map' ? [readEntry(node, `/resources/${index}`, { kinds, mistakes })] : [],
    ),
    templates: items(member(root, 'templates')).flatMap((node, index) => {
      const path = `/templates/${index}`;
      return node.type === 'map' ? [{ id: named(member(node, 'id'), `${path}/id`), node, path }] : [];
    }),
    checks: items(member(root, 'verify')).flatMap((node, index) =>
      node.type === 'map' ? [{ node, path: `/verify/${index}` }] : [],
    ),
  };
}

interface Reading {
  readonly kinds: KindSet;
  readonly mistakes: MistakeList;
}

function readEntry(node: LocatedMap, path: string, reading: Reading): OutlineEntry {
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
    path,
    node,
    id: named(member(node, 'id'), `${path}/id`),
    dependsOn: namedItems(member(node, 'depends_on'), `${path}/depends_on`),
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
