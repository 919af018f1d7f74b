/** Checks expressions, conditions and loops against the types of the values they name, whatever the agent is. */
import { DEFAULT, filterType, type TypedArgument } from './filters.js';
import { ATTRIBUTE_NAMES, ATTRIBUTES, VOLATILE_FACTS } from './known-attributes.js';
import { suggestion } from './nearest.js';
import { type Comparison, type Condition, NIL, type Operand } from './parse-condition.js';
import { type Expression, type Literal, type PathReference, type Reference, written } from './parse-expression.js';
import { quoted } from './printable.js';
import {
  BOOLEAN,
  type FieldType,
  holdsSecret,
  isScalar,
  listed,
  NUMBER,
  nounOf,
  TEXT,
  UNKNOWN,
  type ValueType,
} from './values.js';

/** What the names in an expression mean at its place. */
export interface Scope {
  /** Types of the element of the loop around it; null outside of loops. */
  readonly each: { readonly key: ValueType; readonly value: ValueType } | null;
  /** The inputs of the module. */
  readonly inputs: ReadonlyMap<string, FieldType>;
  /** Names that loops and parameters of a template have given; absent outside of templates. */
  readonly locals?: ReadonlyMap<string, FieldType>;
  /** Values that are there because a condition around this asks for them, such as `each.value.port`. */
  readonly present: ReadonlySet<string>;
}

/** Returns the scope outside of loops and conditions. */
export const scopeOf = (inputs: Scope['inputs']): Scope => ({ each: null, inputs, present: new Set() });

/** Type of an expression; `optional` when its value may be missing for some agents or elements. */
export interface Typed {
  readonly type: ValueType;
  readonly optional: boolean;
}

/** Returns the type of an expression, or a message about its first mistake. */
export function typeOfExpression({ reference, filters }: Expression, scope: Scope): Typed | string {
  let typed = typeOfReference(reference, scope);
  if (typeof typed === 'string') return typed;
  for (const { name, given } of filters) {
    const types = given.map((argument) => typeOfArgument(argument, scope));
    const wrong = types.find((type) => typeof type === 'string');
    if (wrong !== undefined) return wrong;
    const type: ValueType | string = filterType(
      name,
      types.filter((one) => typeof one !== 'string'),
      typed.type,
    );
    if (typeof type === 'string') return type;
    typed = { type, optional: typed.optional && name !== DEFAULT };
  }
  return typed;
}

/** Returns the type of a value that is there for certain, or a message about its mistake. */
export function typeOfArgument(argument: Literal | Reference, scope: Scope): TypedArgument | string {
  if ('literal' in argument) return { type: typeOfLiteral(argument), literal: argument.literal };
  const typed = typeOfReference(argument, scope);
  if (typeof typed === 'string') return typed;
  return typed.optional && isTracked(argument) ? absence(argument, typed.type) : { type: typed.type };
}

const typeOfLiteral = ({ literal }: Literal): ValueType =>
  typeof literal === 'string' ? TEXT : typeof literal === 'number' ? NUMBER : BOOLEAN;

function typeOfReference(reference: Reference, { each, inputs, locals, present }: Scope): Typed | string {
  if (!('path' in reference)) {
    const { from } = reference;
    return { type: TEXT, optional: from !== 'agent' && from !== 'secrets' };
  }
  // What a fact of one's own holds is known only on the machine, so its use is checked for each agent.
  if (reference.from === 'facts') return { type: UNKNOWN, optional: true };
  const { from } = reference;
  const name = written(reference);
  let typed: Typed;
  let path: string;
  let fields: readonly string[];
  if (from === 'inputs') {
    if (inputs.size === 0) return `the module has no inputs; declare ${quoted(reference.path[0] ?? '')} below "inputs"`;
    typed = { type: { type: 'map', fields: inputs, of: null, isDeclared: true }, optional: false };
    path = 'inputs';
    fields = reference.path;
  } else if (from === 'attributes') {
    const problem = attributeProblem(reference.path[0] ?? '');
    if (problem !== null) return problem;
    typed = { type: ATTRIBUTES, optional: true };
    path = 'attributes';
    fields = reference.path;
  } else if (from === 'local') {
    const [first = '', ...rest] = reference.path;
    const found = locals?.get(first);
    if (found === undefined) return unknownName(first, locals);
    typed = found;
    path = first;
    fields = rest;
  } else {
    if (each === null) return `"each" is the element of a loop, and no "for_each" is around this`;
    const [first = '', ...rest] = reference.path;
    typed = { type: first === 'key' ? each.key : each.value, optional: false };
    path = `each.${first}`;
    fields = rest;
  }
  for (const field of fields) {
    const { type } = typed;
    if (type.type === 'unknown') return typed;
    if (type.type !== 'map') return `${path} is ${nounOf(type)}, and has no field ${quoted(field)}; write ${path}`;
    if (type.of !== null) {
      typed = { type: type.of, optional: true };
      path += `.${field}`;
      continue;
    }
    const found = type.fields.get(field);
    if (found === undefined) {
      const meant = suggestion(field, type.fields.keys());
      if (meant !== '') return `${path} has no field ${quoted(field)}${meant}`;
      if (type.isDeclared) return `${path} has no field ${quoted(field)}; it has ${listed(type.fields.keys())}`;
      // The only element that had it may have gone.
      return { type: UNKNOWN, optional: !present.has(name) };
    }
    typed = { type: found.type, optional: typed.optional || found.optional };
    path += `.${field}`;
  }
  return present.has(name) ? { ...typed, optional: false } : typed;
}

/** Returns a message about an attribute that no agent reports, or that changes by itself; null for the others. */
function attributeProblem(name: string): string | null {
  if (VOLATILE_FACTS.includes(name)) {
    return `${name} changes by itself, so an expression cannot use it; "orch facts NODE" shows it`;
  }
  if (ATTRIBUTE_NAMES.includes(name)) return null;
  const meant = suggestion(name, ATTRIBUTE_NAMES);
  const rule = `no agent reports an attribute ${quoted(name)}`;
  if (meant !== '') return `${rule}${meant}`;
  return `${rule}; for a fact of your own write facts.${name}, for a tag tags.${name} (known: ${ATTRIBUTE_NAMES.join(', ')})`;
}

/** Returns the type that a loop over an expression sees: a fact of one's own is a list of texts there, which each agent's is checked to be. */
export const loopedType = ({ reference }: Expression, type: ValueType): ValueType =>
  reference.from === 'facts' && type.type === 'unknown' ? { type: 'list', of: TEXT } : type;

/** Returns true for a value whose presence is known when the module is read. */
const isTracked = (reference: Reference): reference is PathReference =>
  'path' in reference && reference.from !== 'attributes' && reference.from !== 'facts';

function unknownName(name: string, locals: Scope['locals']): string {
  if (name === 'loop') return 'the place in a loop is called forloop here: forloop.index, first, last and length';
  if (name === 'forloop') return '"forloop" is the place in a loop, and no {% for %} is around this';
  if (name === 'item') return 'a loop names its element itself: {% for item in inputs.LIST %}';
  const meant = suggestion(name, [
    ...(locals?.keys() ?? []),
    'inputs',
    'tags',
    'attributes',
    'facts',
    'agent',
    'shared',
    'each',
  ]);
  return `${quoted(name)} names no value; write inputs.NAME, tags.KEY or attributes.KEY, or a name that a loop or a parameter gives${meant}`;
}

/** Returns a message about a field that some elements lack. */
function absence(reference: PathReference, { type }: ValueType): string {
  const { from, path } = reference;
  const name = written(reference);
  if (from === 'local') return `${name} may have no value; add | ${DEFAULT}: …, or ask with {% if ${name} != nil %}`;
  const asks = `ask with if: ${name} != nil`;
  // A filter has no literal for a list or a mapping.
  if (type === 'list' || type === 'map') {
    const empty = `${path.at(-1) ?? ''}: ${type === 'list' ? '[]' : '{}'}`;
    if (from === 'inputs') return `${name} may have no value; give it a default, such as default: [], or ${asks}`;
    return `some elements have no ${quoted(path.at(-1) ?? '')}; give it to each, such as ${empty}, or ${asks}`;
  }
  if (from === 'inputs') return `${name} may have no value; add | ${DEFAULT}: …, or ${asks}`;
  const which = type === 'unknown' ? 'no element has a field' : 'some elements have no';
  return `${which} ${quoted(path.at(-1) ?? '')}; give it to each, add | ${DEFAULT}: …, or ${asks}`;
}

/**
 * Returns a message about an expression that is inserted into a text, or null.
 * @param isAlone true for a field that is the expression and nothing else, which takes any type
 */
export function insertionProblem(expression: Expression, scope: Scope, isAlone: boolean): string | null {
  const type = certainType(expression, scope);
  if (typeof type === 'string') return type;
  if (type.type === 'secret') return null;
  if (holdsSecret(type)) return `this gives ${nounOf(type)} with a secret in it; name the fields that you need`;
  if (isAlone || isScalar(type)) return null;
  const mend =
    type.type === 'list' ? 'end with | join: " ", first or last' : 'name a field of it, or end with | to_json';
  return `this gives ${nounOf(type)}, which cannot be inserted; ${mend}`;
}

/** Returns the type of an expression that has a value, as far as the module tells; else a message about its first mistake. */
export function certainType(expression: Expression, scope: Scope): ValueType | string {
  const typed = typeOfExpression(expression, scope);
  if (typeof typed === 'string') return typed;
  return typed.optional && isTracked(expression.reference) ? absence(expression.reference, typed.type) : typed.type;
}

/** Returns a message about the first wrong type in a condition, or null. */
export function typeProblem(condition: Condition, scope: Scope): string | null {
  switch (condition.type) {
    case 'not':
      return typeProblem(condition.of, scope);
    case 'and':
    case 'or':
      return condition.of.map((part) => typeProblem(part, scope)).find((problem) => problem !== null) ?? null;
    case 'compare':
      return comparisonProblem(condition.left, condition.by, condition.right, scope);
    case 'value':
      return valueProblem(condition.operand, scope);
  }
}

function typeOfOperand(operand: Exclude<Operand, typeof NIL>, scope: Scope): Typed | string {
  if ('literal' in operand) return { type: typeOfLiteral(operand), optional: false };
  if (operand.reference.from === 'secrets')
    return 'a condition cannot depend on a secret, because its outcome is shown';
  return typeOfExpression(operand, scope);
}

function valueProblem(operand: Operand, scope: Scope): string | null {
  if (operand === NIL) return '"nil" is no condition; compare with it, such as tags.KEY != nil';
  const typed = typeOfOperand(operand, scope);
  return typeof typed === 'string' ? typed : truthProblem(typed);
}

/** Returns a message about a type that is not true or false, or null. */
export function truthProblem({ type, optional }: Typed): string | null {
  if (type.type === 'boolean' || type.type === 'unknown') return null;
  const how =
    type.type === 'text'
      ? 'compare it, such as with == "…"'
      : type.type === 'list'
        ? 'look into it with contains'
        : type.type === 'number'
          ? 'compare it, such as with > 0'
          : null;
  const mends = [...(how === null ? [] : [how]), ...(optional ? ['ask whether it is there with != nil'] : [])];
  const mend = mends.length === 0 ? '' : `; ${mends.join(', or ')}`;
  return `a condition is true or false, and this is ${nounOf(type)}${mend}`;
}

/** Returns the inputs, the fields of the element and the names of a template that are there when a condition holds, or does not. */
export function presentFields(condition: Condition, holds = true): readonly string[] {
  switch (condition.type) {
    case 'not':
      return presentFields(condition.of, !holds);
    case 'and':
    case 'or':
      return (condition.type === 'and') === holds ? condition.of.flatMap((part) => presentFields(part, holds)) : [];
    case 'value':
      return holds ? fieldOf(condition.operand) : [];
    case 'compare': {
      const { left, by, right } = condition;
      // A missing value is never equal, and has no order.
      const isThere = right === NIL ? (by === '!=') === holds : holds ? by !== '!=' : by === '!=';
      return isThere ? [...fieldOf(left), ...fieldOf(right)] : [];
    }
  }
}

function fieldOf(operand: Operand): readonly string[] {
  if (operand === NIL || 'literal' in operand || !isTracked(operand.reference)) return [];
  return operand.filters.some((filter) => filter.name === DEFAULT) ? [] : [written(operand.reference)];
}

const ORDERED: readonly Comparison[] = ['<', '<=', '>', '>='];

function comparisonProblem(left: Operand, by: Comparison, right: Operand, scope: Scope): string | null {
  if (left === NIL) return `"nil" stands after "${by}"; turn the comparison around`;
  const first = typeOfOperand(left, scope);
  if (typeof first === 'string') return first;
  if (right === NIL) {
    return by === '==' || by === '!=' ? null : `"nil" can be compared only with == and !=`;
  }
  const second = typeOfOperand(right, scope);
  if (typeof second === 'string') return second;
  return typesProblem(first.type, by, second.type, 'literal' in right ? right : null);
}

/** Returns a message about types that cannot be compared, or null. @param literal what stands on the right, if it is a literal */
export function typesProblem(a: ValueType, by: Comparison, b: ValueType, literal: Literal | null): string | null {
  if (a.type === 'unknown' || b.type === 'unknown') return null;
  if (by === 'contains') return containsProblem(a, b);
  if (!isScalar(a) || !isScalar(b)) return `${nounOf(isScalar(a) ? b : a)} cannot be compared with "${by}"`;
  if (a.type !== b.type) {
    const mend = literal === null ? '' : literalMend(a, literal);
    return `"${by}" compares ${nounOf(a)} with ${nounOf(b)}, which are never equal${mend}`;
  }
  if (!ORDERED.includes(by) || a.type === 'number') return null;
  const mend = a.type === 'text' ? '; for versions, write VALUE | at_least_version: "12.4"' : '';
  return `"${by}" compares numbers, and this is ${nounOf(a)}${mend}`;
}

/** Returns how a literal is written to be compared with a type, as the end of a message. */
function literalMend(type: ValueType, { literal }: Literal): string {
  if (type.type === 'text') return `; write ${JSON.stringify(String(literal))}`;
  return type.type === 'number' && /^\d{1,15}$/.test(String(literal)) ? `; write ${literal}, without quotes` : '';
}

function containsProblem(a: ValueType, b: ValueType): string | null {
  if (a.type === 'list' ? a.of.type === b.type || a.of.type === 'unknown' : a.type === 'text' && b.type === 'text')
    return null;
  if (a.type !== 'list' && a.type !== 'text') return `"contains" asks a text or a list, and this is ${nounOf(a)}`;
  return `"contains" looks for ${nounOf(a.type === 'list' ? a.of : a)} here, and this is ${nounOf(b)}`;
}
