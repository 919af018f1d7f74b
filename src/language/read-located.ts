/** Lenient reading of located data: what is not there or of another type reads as nothing. */
import type { Located } from './located.js';
import type { Place } from './mistake.js';
import type { AttributeClause } from './schema.js';

/** A text with its place. */
export interface Named extends Place {
  readonly text: string;
  readonly path: string;
}

/** A member's value; undefined when there is none. */
export const member = (node: Located | undefined, name: string): Located | undefined =>
  node?.type === 'map' ? node.members.get(name)?.value : undefined;

export const items = (node: Located | undefined): readonly Located[] => (node?.type === 'list' ? node.items : []);

export function named(node: Located | undefined, path: string): Named | null {
  if (node?.type !== 'scalar' || typeof node.value !== 'string' || node.value === '') return null;
  return { text: node.value, path, start: node.start, end: node.end };
}

export const namedItems = (node: Located | undefined, path: string): readonly Named[] =>
  items(node).flatMap((item, index) => named(item, `${path}/${index}`) ?? []);

/** A clause of which every value is a text; null when it is none, so that no rule builds on half of it. */
export function clauseOf(node: Located | undefined): AttributeClause | null {
  if (node?.type !== 'map') return null;
  const clause: [string, string][] = [];
  for (const [key, { value }] of node.members) {
    if (value.type !== 'scalar' || typeof value.value !== 'string') return null;
    clause.push([key, value.value]);
  }
  return Object.fromEntries(clause);
}
