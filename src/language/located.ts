/** Located data: values of a YAML text with their places in it, and lenient access to them. */
import type { Place } from './diagnostic.js';
import type { AttributeClause } from './schema.js';

export interface LocatedMap extends Place {
  readonly type: 'map';
  readonly members: ReadonlyMap<string, LocatedMember>;
}

export interface LocatedMember {
  readonly key: Place;
  readonly value: Located;
}

export interface LocatedList extends Place {
  readonly type: 'list';
  readonly items: readonly Located[];
}

export interface LocatedScalar extends Place {
  readonly type: 'scalar';
  readonly value: string | number | boolean | null;
  /** Source text with its quotes; empty for an absent value. */
  readonly raw: string;
}

export type Located = LocatedMap | LocatedList | LocatedScalar;

export const NOWHERE: Place = { start: 0, end: 0 };

/** Converts data without a source text. */
export function locatedOf(value: unknown): Located {
  if (Array.isArray(value)) return { type: 'list', items: value.map(locatedOf), ...NOWHERE };
  if (typeof value !== 'object' || value === null) {
    return { type: 'scalar', value: isPlain(value) ? value : null, raw: String(value), ...NOWHERE };
  }
  const members = Object.entries(value).map(
    ([name, member]) => [name, { key: NOWHERE, value: locatedOf(member) }] as const,
  );
  return { type: 'map', members: new Map(members), ...NOWHERE };
}

export const isPlain = (value: unknown): value is string | number | boolean | null =>
  value === null || typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean';

/** Returns the data without places. */
export function dataOf(node: Located): unknown {
  switch (node.type) {
    case 'scalar':
      return node.value;
    case 'list':
      return node.items.map(dataOf);
    case 'map':
      return Object.fromEntries([...node.members].map(([name, member]) => [name, dataOf(member.value)]));
  }
}

/** Returns the place of a JSON pointer, or of its nearest existing ancestor. */
export const placeAt = (root: Located, pointer: string): Place => walk(root, pointer).node;

/** Returns the scalar at a JSON pointer, or undefined. */
export function scalarAt(root: Located, pointer: string): LocatedScalar | undefined {
  const { node, found } = walk(root, pointer);
  return found && node.type === 'scalar' ? node : undefined;
}

function walk(root: Located, pointer: string): { readonly node: Located; readonly found: boolean } {
  let node = root;
  for (const token of pointer.split('/').slice(1)) {
    const next = childOf(node, token.replaceAll('~1', '/').replaceAll('~0', '~'));
    if (next === undefined) return { node, found: false };
    node = next;
  }
  return { node, found: true };
}

function childOf(node: Located, name: string): Located | undefined {
  if (node.type === 'map') return node.members.get(name)?.value;
  return node.type === 'list' && /^\d+$/.test(name) ? node.items[Number(name)] : undefined;
}

/** A text with its place. */
export interface Named extends Place {
  readonly text: string;
  readonly path: string;
}

/** Returns a member's value, or undefined. */
export const member = (node: Located | undefined, name: string): Located | undefined =>
  node?.type === 'map' ? node.members.get(name)?.value : undefined;

export const items = (node: Located | undefined): readonly Located[] => (node?.type === 'list' ? node.items : []);

export function named(node: Located | undefined, path: string): Named | null {
  if (node?.type !== 'scalar' || typeof node.value !== 'string' || node.value === '') return null;
  return { text: node.value, path, start: node.start, end: node.end };
}

export const namedItems = (node: Located | undefined, path: string): readonly Named[] =>
  items(node).flatMap((item, index) => named(item, `${path}/${index}`) ?? []);

/** Returns a clause whose values are all texts; null otherwise, so that no rule uses a partial clause. */
export function clauseOf(node: Located | undefined): AttributeClause | null {
  if (node?.type !== 'map') return null;
  const clause: [string, string][] = [];
  for (const [key, { value }] of node.members) {
    if (value.type !== 'scalar' || typeof value.value !== 'string') return null;
    clause.push([key, value.value]);
  }
  return Object.fromEntries(clause);
}
