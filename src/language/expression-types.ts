/** Checks expressions, conditions and loops against the types of the values they name, whatever the agent is. */
import { DEFAULT, filterType, type TypedArgument } from './filters.js';
import { suggestion } from './nearest.js';
import {
  type Comparison,
  type Condition,
  LASTING_ATTRIBUTES,
  NIL,
  type Operand,
  referencesOfCondition,
} from './parse-condition.js';
import type { Expression, Literal, Reference } from './parse-expression.js';
import { quoted } from './printable.js';
import { BOOLEAN, isScalar, NUMBER, nounOf, TEXT, UNKNOWN, type ValueType } from './values.js';

/** What the names in an expression mean at its place. */
export interface Scope {
  /** Types of the element of the loop around it; null outside of loops. */
  readonly each: { readonly key: ValueType; readonly value: ValueType } | null;
  /** Names of the element's fields that are there because a condition around this asks for them, such as `value.port`. */
  readonly present: ReadonlySet<string>;
}

/** The scope outside of loops. */
export const OUTSIDE_OF_LOOPS: Scope = { each: null, present: new Set() };

/** Type of an expression; `optional` when its value may be missing for some agents or elements. */
interface Typed {
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

function typeOfArgument(argument: Literal | Reference, scope: Scope): TypedArgument | string {
  if ('literal' in argument) return { type: typeOfLiteral(argument), literal: argument.literal };
  const typed = typeOfReference(argument, scope);
  if (typeof typed === 'string') return typed;
  return typed.optional && argument.from === 'each' ? absence(argument, typed.type) : { type: typed.type };
}

const typeOfLiteral = ({ literal }: Literal): ValueType =>
  typeof literal === 'string' ? TEXT : typeof literal === 'number' ? NUMBER : BOOLEAN;

function typeOfReference(reference: Reference, { each, present }: Scope): Typed | string {
  if (reference.from !== 'each')
    return { type: TEXT, optional: reference.from === 'tags' || reference.from === 'attributes' };
  if (each === null) return `"each" is the element of a loop, and no "for_each" is around this`;
  const [first, ...fields] = reference.path;
  let typed: Typed = { type: first === 'key' ? each.key : each.value, optional: false };
  let path = `each.${first}`;
  for (const field of fields) {
    const { type } = typed;
    if (type.type === 'unknown') return typed;
    if (type.type !== 'map') return `${path} is ${nounOf(type)}, and has no field ${quoted(field)}; write ${path}`;
    const found = type.fields.get(field);
    if (found === undefined) {
      const meant = suggestion(field, type.fields.keys());
      if (meant !== '') return `${path} has no field ${quoted(field)}${meant}`;
      // The only element that had it may have gone.
      return { type: UNKNOWN, optional: !present.has(reference.name) };
    }
    typed = { type: found.type, optional: typed.optional || found.optional };
    path += `.${field}`;
  }
  return present.has(reference.name) ? { ...typed, optional: false } : typed;
}

/** Returns a message about a field that some elements lack. */
function absence({ name, path }: Extract<Reference, { from: 'each' }>, { type }: ValueType): string {
  const which = type === 'unknown' ? 'no element has a field' : 'some elements have no';
  return `${which} ${quoted(path.at(-1) ?? '')}; give it to each, add | ${DEFAULT}: …, or ask with if: each.${name} != nil`;
}

/**
 * Returns a message about an expression that is inserted into a text, or null.
 * @param isAlone true for a field that is the expression and nothing else, which takes any type
 */
export function insertionProblem(expression: Expression, scope: Scope, isAlone: boolean): string | null {
  const typed = typeOfExpression(expression, scope);
  if (typeof typed === 'string') return typed;
  if (typed.optional && expression.reference.from === 'each') {
    return absence(expression.reference, typed.type);
  }
  if (isAlone || isScalar(typed.type)) return null;
  const mend =
    typed.type.type === 'list' ? 'end with | join: " ", first or last' : 'name a field of it, or end with | to_json';
  return `this gives ${nounOf(typed.type)}, which cannot be inserted; ${mend}`;
}

/** Returns a message about an attribute that changes without an operator, or null. Its change would remove resources. */
export function changingAttribute(references: readonly Reference[]): string | null {
  const found = references.find(({ from, name }) => from === 'attributes' && !LASTING_ATTRIBUTES.has(name));
  if (found === undefined) return null;
  return `attributes.${found.name} can change without an operator, which would remove resources; use a tag, or one of ${[...LASTING_ATTRIBUTES].join(', ')}`;
}

/** Returns a message about the first mistake of a condition, or null. */
export const conditionProblem = (condition: Condition, scope: Scope): string | null =>
  changingAttribute(referencesOfCondition(condition)) ?? typeProblem(condition, scope);

function typeProblem(condition: Condition, scope: Scope): string | null {
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
  if (typeof typed === 'string') return typed;
  if (typed.type.type !== 'boolean' && typed.type.type !== 'unknown') {
    return `a condition is true or false, and this is ${nounOf(typed.type)}; compare it, such as with == "…", or ask whether it is there with != nil`;
  }
  return null;
}

/** Returns the fields of the element that are there when a condition holds. */
export function presentFields(condition: Condition): readonly string[] {
  switch (condition.type) {
    case 'and':
      return condition.of.flatMap(presentFields);
    case 'value':
      return fieldOf(condition.operand);
    case 'compare': {
      const { left, by, right } = condition;
      const isThere = right === NIL ? by === '!=' : by !== '!=';
      return isThere ? [...fieldOf(left), ...fieldOf(right)] : [];
    }
    default:
      return [];
  }
}

function fieldOf(operand: Operand): readonly string[] {
  if (operand === NIL || 'literal' in operand || operand.reference.from !== 'each') return [];
  return operand.filters.some(({ name }) => name === DEFAULT) ? [] : [operand.reference.name];
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
  const [a, b] = [first.type, second.type];
  if (a.type === 'unknown' || b.type === 'unknown') return null;
  if (by === 'contains') return containsProblem(a, b);
  if (!isScalar(a) || !isScalar(b)) return `${nounOf(isScalar(a) ? b : a)} cannot be compared with "${by}"`;
  if (a.type !== b.type) {
    const mend = a.type === 'text' && 'literal' in right ? `; write ${JSON.stringify(String(right.literal))}` : '';
    return `"${by}" compares ${nounOf(a)} with ${nounOf(b)}, which are never equal${mend}`;
  }
  if (!ORDERED.includes(by) || a.type === 'number') return null;
  const mend = a.type === 'text' ? '; for versions, write VALUE | at_least_version: "12.4"' : '';
  return `"${by}" compares numbers, and this is ${nounOf(a)}${mend}`;
}

function containsProblem(a: ValueType, b: ValueType): string | null {
  if (a.type === 'list' ? a.of.type === b.type || a.of.type === 'unknown' : a.type === 'text' && b.type === 'text')
    return null;
  if (a.type !== 'list' && a.type !== 'text') return `"contains" asks a text or a list, and this is ${nounOf(a)}`;
  return `"contains" looks for ${nounOf(a.type === 'list' ? a.of : a)} here, and this is ${nounOf(b)}`;
}
