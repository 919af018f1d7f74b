/** Reads the one key below `resource`: its kind and its body, with all their mistakes. */
import { escapePointer } from '../kernel/validator.js';
import { isAbsence, kindOfAbsence } from '../resources/absence-name.js';
import { type Body, TRIGGER_FIELDS, type TriggerField } from '../resources/kind.js';
import { checkShape } from './check-shape.js';
import { MistakeList } from './diagnostic.js';
import { hasExpression } from './expression.js';
import { absenceNames, type KindSet, type KnownKind, kindNames, settledBody } from './kind-set.js';
import {
  dataOf,
  type Located,
  type LocatedMap,
  type LocatedMember,
  type Named,
  namedItems,
  placeAt,
  scalarAt,
} from './located.js';
import { kindsNamed } from './meant-key.js';
import { nearest, suggestion } from './nearest.js';
import { quoted } from './printable.js';
import type { AttributeClause } from './schema.js';
import { memberNames, type ShapeSchema, shapeOf } from './shape-schema.js';

/** One possible resource of an entry. */
export interface OutlineOption {
  /** Clause of the variant; null for an entry without variants. */
  readonly when: AttributeClause | null;
  readonly kind: KnownKind;
  /** JSON pointer of the body. */
  readonly path: string;
  readonly node: LocatedMap;
  /** Body without its wrong members; null when the rest is no valid body. */
  readonly body: Body | null;
  readonly triggers: readonly { readonly field: TriggerField; readonly ids: readonly Named[] }[];
}

interface ChoiceContext {
  readonly kinds: KindSet;
  readonly mistakes: MistakeList;
  /** JSON pointer of the value of `resource`. */
  readonly path: string;
  readonly when: AttributeClause | null;
  /** Unknown key that the file has in place of the kind. */
  readonly writtenAs?: string;
}

/** Reads the value of `resource` and reports its mistakes. Returns null without a body of a known kind. */
export function readKindChoice(node: Located, context: ChoiceContext): OutlineOption | null {
  const { kinds, mistakes, path } = context;
  if (node.type !== 'map') {
    const message = `"resource" must be a mapping with one resource kind, such as ${kindNames(kinds)[0]}`;
    mistakes.error('wrong_type', message, path, node);
    return null;
  }
  const outdented = withIndentedBody(node, context);
  if (outdented !== null) return readKindChoice(outdented, context);
  const known = [...node.members].filter(([name]) => kinds.has(name));
  const strangers: (readonly [string, LocatedMember])[] = [];
  for (const [name, member] of node.members) {
    if (kinds.has(name)) continue;
    const at = `${path}/${escapePointer(name)}`;
    const advice = besideResource(name) ?? besideItsKind(name, known, kinds);
    if (advice === null) {
      mistakes.error('unknown_kind', unknownKind(name, kinds), at, member.key);
      strangers.push([name, member]);
    } else mistakes.error('misplaced_key', advice, at, member.key);
  }
  if (node.members.size === 0) {
    mistakes.error('kind_missing', `a resource needs one kind: ${kindNames(kinds).join(', ')}`, path, node);
  }
  const [first, second] = known;
  if (first && second) reportSecondKind(first[0], second, context);
  const options = known.map(([name, member]) => readBody(name, member, context));
  const [stranger] = strangers;
  if (options.length === 0 && stranger && strangers.length === 1) return readAsMeant(stranger, context);
  return options.length === 1 ? (options[0] ?? null) : null;
}

/** Returns a message about a field that stands beside the only kind of its resource; null for other names. */
function besideItsKind(
  name: string,
  known: readonly (readonly [string, LocatedMember])[],
  kinds: KindSet,
): string | null {
  const [[kind] = [''], ...others] = known;
  const schema = kinds.get(kind)?.kind.schema ?? kinds.get(kindOfAbsence(kind))?.kind.schema;
  if (schema === undefined || others.length > 0 || !memberNames(schema).includes(name)) return null;
  return `${quoted(name)} is a field of ${quoted(kind)} and belongs in its body`;
}

/**
 * Moves members that stand beside their kind into its body, the most common mistake in indentation. Returns null for other
 * mappings.
 */
function withIndentedBody(node: LocatedMap, { kinds, mistakes, path }: ChoiceContext): LocatedMap | null {
  const [[name, { key, value }] = ['', { key: node, value: node }], ...others] = node.members;
  const kind = kinds.get(name);
  const isEmpty = value.type === 'scalar' && value.value === null && value.raw === '';
  const [first] = others;
  if (kind === undefined || !isEmpty || first === undefined) return null;
  const own = new Set(memberNames(kind.schema));
  if (!others.some(([member]) => own.has(member)) || others.some(([member]) => kinds.has(member))) return null;
  const keys = others.map(([member]) => quoted(member));
  const shown = keys.length > 3 ? [...keys.slice(0, 3), '…'] : keys;
  const message = `${shown.join(', ')} ${keys.length === 1 ? 'belongs' : 'belong'} below "${name}": indent ${keys.length === 1 ? 'it' : 'them'} by two more spaces`;
  mistakes.error('misplaced_key', message, `${path}/${escapePointer(first[0])}`, first[1].key);
  const { start } = first[1].key;
  const body: LocatedMap = { type: 'map', members: new Map(others), start, end: start };
  return { ...node, members: new Map([[name, { key, value: body }]]) };
}

/** Reads the body of an unknown kind as that of the best matching kind, so that its own mistakes are also reported. */
function readAsMeant([name, member]: readonly [string, LocatedMember], context: ChoiceContext): OutlineOption | null {
  const names = kindNames(context.kinds);
  const close = nearest(name, names);
  const candidates = close === null ? kindsNamed(name, names) : [close];
  const readings = candidates.map((kind) => {
    const mistakes = new MistakeList();
    return { mistakes, option: readBody(kind, member, { ...context, mistakes, writtenAs: name }) };
  });
  const fewest = Math.min(...readings.map(({ mistakes }) => mistakes.found.length));
  const best = readings.find(({ mistakes }) => mistakes.found.length === fewest);
  context.mistakes.addAll(best?.mistakes.found ?? []);
  return best?.option ?? null;
}

function unknownKind(name: string, kinds: KindSet): string {
  if (isAbsence(name)) {
    return `"absent" is not possible for ${quoted(kindOfAbsence(name))}; it takes ${absenceNames(kinds).join(', ')}${suggestion(kindOfAbsence(name), absenceNames(kinds))}`;
  }
  const message = `unknown resource kind ${quoted(name)}`;
  const meant = suggestion(name, kindNames(kinds));
  if (meant !== '') return message + meant;
  const related = kindsNamed(name, kindNames(kinds));
  if (related.length > 0) return `${message}; did you mean ${related.join(' or ')}?`;
  return `${message}; known: ${kindNames(kinds).join(', ')}`;
}

function reportSecondKind(first: string, [second, { key }]: [string, LocatedMember], context: ChoiceContext): void {
  const message = `a resource has exactly one kind, but this one has ${quoted(kindOfAbsence(first))} and ${quoted(kindOfAbsence(second))}; give each an entry of its own`;
  context.mistakes.error('kind_ambiguous', message, `${context.path}/${second}`, key);
}

function readBody(name: string, { value: node }: LocatedMember, context: ChoiceContext): OutlineOption | null {
  const kind = context.kinds.get(name);
  if (kind === undefined) return null;
  const path = `${context.path}/${escapePointer(context.writtenAs ?? name)}`;
  const mistakes = new MistakeList();
  checkShape(kind.kind.schema, node, {
    mistakes,
    path,
    label: isAbsence(name) ? `an absent ${kindOfAbsence(name)}` : `"${name}"`,
    expressions: true,
    fixed: new Set(kind.triggers),
    elsewhere: besideResource,
  });
  if (node.type !== 'map') {
    context.mistakes.addAll(mistakes.found);
    return null;
  }
  const broken = new Set(mistakes.found.map((mistake) => firstToken(mistake.path.slice(path.length))));
  const members = [...node.members].filter(([member]) => !broken.has(escapePointer(member)));
  const body = Object.fromEntries(members.map(([member, { value }]) => [member, dataOf(value)]));
  const sound = kind.written.check(body);
  const known = settledBody(kind, body);
  // A member without its quotes is there, so that no message asks for it.
  const meant = broken.size === 0 ? known : settledBody(kind, withPlainTexts(kind, body, node));
  const settled = sound ? kind.kind.check(meant).filter(isSettled(node)) : [];
  // The compiled schema also finds mistakes that `checkShape` does not know.
  const missed = sound
    ? []
    : kind.resolved.problems(known).filter((one) => !broken.has(firstToken(one.path)) && isSettled(node)(one));
  reportProblems([...settled, ...missed], node, { mistakes, path });
  const required = new Set(shapeOf(kind.kind.schema).required);
  context.mistakes.addAll(mistakes.found);
  return {
    when: context.when,
    kind,
    path,
    node,
    // With a mistake in a required member, the identity is unknown.
    body: sound && !settled.some(({ path: at }) => required.has(firstToken(at))) ? known : null,
    triggers: kind.triggers.map((field) => ({
      field,
      ids: namedItems(node.members.get(field)?.value, `${path}/${field}`),
    })),
  };
}

/** Returns the body with the members whose text would be valid in quotes. */
function withPlainTexts(kind: KnownKind, body: Readonly<Record<string, unknown>>, { members }: LocatedMap) {
  let meant = body;
  for (const [member, { value }] of members) {
    if (Object.hasOwn(body, member) || value.type !== 'scalar' || typeof value.value === 'string') continue;
    const candidate = { ...meant, [member]: value.raw };
    if (kind.written.check(candidate)) meant = candidate;
  }
  return meant;
}

/** Returns the first member in a JSON pointer. */
const firstToken = (pointer: string): string => pointer.split('/')[1] ?? '';

/** Returns true for a problem outside expressions, which are checked after filling. */
const isSettled =
  (body: LocatedMap) =>
  (problem: { readonly path: string }): boolean => {
    const value = scalarAt(body, problem.path)?.value;
    return typeof value !== 'string' || !hasExpression(value);
  };

function reportProblems(
  problems: readonly { readonly path: string; readonly message: string }[],
  body: LocatedMap,
  { mistakes, path }: { readonly mistakes: MistakeList; readonly path: string },
): void {
  for (const problem of problems) {
    // Messages of the compiled schema begin with the verb.
    const subject = problem.message.startsWith('must ') ? `${quoted(problem.path.split('/').at(-1) ?? '')} ` : '';
    mistakes.error('invalid_value', subject + problem.message, path + problem.path, placeAt(body, problem.path));
  }
}

const BESIDE_RESOURCE: ReadonlySet<string> = new Set([
  ...['id', 'name', 'depends_on', 'resource', 'absent', 'variants', 'when', 'if', 'for_each'],
]);

/** True for a key that stands beside a kind. */
export const isEntryKey = (key: string): boolean => BESIDE_RESOURCE.has(key);

/** Returns advice for a key of an entry that stands inside a body or in place of a kind; null for other keys. */
const besideResource = (key: string): string | null =>
  key === 'absent'
    ? '"absent" stands in place of "resource": absent: {KIND: …}'
    : BESIDE_RESOURCE.has(key)
      ? `"${key}" belongs into the entry, not into the body of its kind`
      : null;

const BESIDE_VARIANTS: ReadonlySet<string> = new Set(['id', 'name', 'depends_on', 'if', 'for_each', 'key']);

/** Returns a function with advice for a key of an entry or variant that belongs elsewhere; null for other keys. */
export const belowResource =
  (kinds: KindSet) =>
  (key: string, { properties = {} }: ShapeSchema): string | null => {
    const has = (name: string) => Object.hasOwn(properties, name);
    if (!has('resource')) return null;
    if (key === 'resources') return 'a group of resources cannot hold another group';
    if (!BESIDE_RESOURCE.has(key) && kindsNamed(key, kindNames(kinds)).length > 0) {
      return `"${key}" is no key of a resource; write its kind, such as ${kindsNamed(key, kindNames(kinds))[0]}`;
    }
    if (has('when')) return BESIDE_VARIANTS.has(key) ? `"${key}" belongs beside "variants", not below it` : null;
    if (key === 'when') {
      return '"when" belongs into an entry of "variants", beside its "resource"; a condition for the whole of this is written with "if"';
    }
    const isTrigger = TRIGGER_FIELDS.some((field) => field === key);
    return isTrigger ? `"${key}" belongs into the body of a resource that can have it` : null;
  };
