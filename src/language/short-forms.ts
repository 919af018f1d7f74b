/** Reads the short forms of entries and variants: a kind, or `absent`, in place of `resource`. The result has `resource`. */
import { absenceOf, isAbsence, kindOfAbsence } from '../resources/absence-name.js';
import type { MistakeList } from './diagnostic.js';
import { isEntryKey } from './kind-choice.js';
import { isKind, type KindSet, kindNames } from './kind-set.js';
import type { Located, LocatedMap, LocatedMember } from './located.js';
import { kindsNamed } from './meant-key.js';
import { nearest } from './nearest.js';
import { memberNames } from './shape-schema.js';

export interface Reading {
  readonly kinds: KindSet;
  readonly mistakes: MistakeList;
}

/** Keys that say themselves what an entry makes. */
const MAKING = ['resource', 'absent', 'variants', 'resources'];

/** Reads an entry or a variant in a short form as one with `resource`, and reports what makes the form unclear. */
export function readShortForm(node: Located, path: string, reading: Reading): Located {
  const plain = withIndentedKind(withPlainAbsences(node, path, reading), path, reading);
  if (plain.type !== 'map') return plain;
  const isPlain = MAKING.some((name) => plain.members.has(name));
  return withAbsent(isPlain ? withoutKinds(plain, path, reading) : withKind(plain, reading));
}

/** Reads `absent: {KIND: …}` as a resource of the kind's absence. */
function withAbsent(node: LocatedMap): LocatedMap {
  if (MAKING.some((name) => name !== 'absent' && node.members.has(name))) return node;
  const absent = node.members.get('absent');
  if (absent?.value.type !== 'map' || absent.value.members.size === 0) return node;
  const choices = [...absent.value.members].map(([name, member]) => [absenceOf(name), member] as const);
  return withChoice(node, 'absent', absent.key, { ...absent.value, members: new Map(choices) });
}

/** Reports an absence by its name in reports, which no module writes, and reads it as it is meant. */
function withPlainAbsences(node: Located, path: string, { mistakes }: Reading): Located {
  if (node.type !== 'map') return node;
  const resource = node.members.get('resource')?.value;
  for (const { members } of [node, ...(resource?.type === 'map' ? [resource] : [])]) {
    for (const [name, member] of members) {
      if (!isAbsence(name)) continue;
      mistakes.error('unknown_kind', `an absence is written "absent: {${kindOfAbsence(name)}: …}"`, path, member.key);
      const value: Located = { type: 'map', members: new Map([[kindOfAbsence(name), member]]), ...placeOfKey(member) };
      const kept = [...node.members].filter(([other]) => other !== name && other !== 'resource');
      return { ...node, members: new Map([...kept, ['absent', { key: member.key, value }]]) };
    }
  }
  return node;
}

const placeOfKey = ({ key }: LocatedMember) => ({ start: key.start, end: key.start });

/** Reports kinds beside an empty `resource:`, and reads them below it. */
function withIndentedKind(node: Located, path: string, { kinds, mistakes }: Reading): Located {
  if (node.type !== 'map') return node;
  const resource = node.members.get('resource');
  const beside = kindsOf(node, kinds);
  const [first] = beside;
  if (!resource || !isEmpty(resource) || first === undefined) return node;
  const [name, { key }] = first;
  mistakes.error('misplaced_key', `"${name}" belongs below "resource": indent it by two more spaces`, path, key);
  const kept = [...node.members].filter(([member]) => !isKind(kinds, member) && member !== 'resource');
  const value: Located = { type: 'map', members: new Map(beside), start: key.start, end: key.start };
  return { ...node, members: new Map([...kept, ['resource', { key: resource.key, value }]]) };
}

const isEmpty = ({ value }: LocatedMember): boolean => value.type === 'scalar' && value.raw === '';

const kindsOf = ({ members }: LocatedMap, kinds: KindSet) => [...members].filter(([name]) => isKind(kinds, name));

/** Reports kinds beside a key that says itself what the entry makes, and leaves them out. */
function withoutKinds(node: LocatedMap, path: string, { kinds, mistakes }: Reading): LocatedMap {
  const making = MAKING.find((name) => node.members.has(name));
  const beside = kindsOf(node, kinds);
  if (beside.length === 0) return node;
  for (const [name, { key }] of beside) {
    const mend =
      making === 'resources' ? 'make it an entry of the group, or one beside the group' : 'make two entries of it';
    mistakes.error('resource_ambiguous', `"${name}" cannot stand beside "${making}"; ${mend}`, `${path}/${name}`, key);
  }
  return { ...node, members: new Map([...node.members].filter(([name]) => !isKind(kinds, name))) };
}

/** Reads `package-apt: {name: nginx}` as a resource. Several kinds stay together, so that the resource has too many. */
function withKind(node: LocatedMap, { kinds }: Reading): LocatedMap {
  const named = kindsOf(node, kinds);
  const chosen = named.length > 0 ? named : meantKinds(node, kinds);
  const [first] = chosen;
  if (first === undefined) return node;
  const [name, { key }] = first;
  // A body that is not indented is moved, and reported with the choice.
  const own = new Set(chosen.length === 1 && isEmpty(first[1]) ? memberNames(kinds.get(name)?.schema ?? {}) : []);
  const below = [...node.members].filter(([member]) => own.has(member));
  const moved = new Set([...chosen, ...below].map(([member]) => member));
  const rest = new Map([...node.members].filter(([member]) => member === name || !moved.has(member)));
  const choice: Located = { type: 'map', members: new Map([...chosen, ...below]), start: key.start, end: key.start };
  return withChoice({ ...node, members: rest }, name, key, choice);
}

/** Returns the one key with a body that is meant as a kind, such as `package: {name: nginx}`. */
function meantKinds({ members }: LocatedMap, kinds: KindSet) {
  const names = kindNames(kinds);
  const found = [...members].filter(
    ([name, { value }]) =>
      value.type === 'map' && !isEntryKey(name) && (nearest(name, names) ?? kindsNamed(name, names)[0]) !== undefined,
  );
  return found.length === 1 ? found : [];
}

/** Puts a choice in place of a key, as `resource`. */
function withChoice(node: LocatedMap, name: string, key: LocatedMember['key'], value: Located): LocatedMap {
  const members = [...node.members].map(([member, one]) =>
    member === name ? (['resource', { key, value }] as const) : ([member, one] as const),
  );
  return { ...node, members: new Map(members) };
}
