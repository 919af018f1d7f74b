/** Evaluates expressions and conditions that `expression-types.ts` accepts, for one agent and one element of a loop. */
import type { PartedAttributes } from '../kernel/facts.js';
import { type AgentLabels, ownMember } from './clause.js';
import { truthProblem, typesProblem } from './expression-types.js';
import { applyFilter, DEFAULT, filterType } from './filters.js';
import { attributeOf } from './known-attributes.js';
import { type Condition, NIL, type Operand } from './parse-condition.js';
import { type Expression, type Literal, type Reference, written } from './parse-expression.js';
import { inferType, isList, isMap, nounOf, type Value, type ValueMap, type ValueType, workOn } from './values.js';
import { EvaluationError, type Work } from './work.js';

export interface AgentFacts extends AgentLabels {
  readonly node_id: string;
  readonly name: string;
  /** Facts beside the attributes; absent when no module reads them, or the agent has reported none. */
  readonly facts?: ReportedFacts | undefined;
}

export interface ReportedFacts {
  readonly parts: PartedAttributes;
  /** Facts of one's own, by name. */
  readonly own: ValueMap;
}

/** An element of a loop. */
export interface Element {
  readonly key: string;
  readonly value: Value;
}

/** What expressions see. */
export interface Environment {
  readonly agent: AgentFacts;
  /** Null outside of loops. */
  readonly each: Element | null;
  /** Values of the module's inputs. */
  readonly inputs: ValueMap;
  /** Values for all modules. */
  readonly shared: Readonly<Record<string, string>>;
  /** Names that loops and parameters of a template have given; absent outside of templates. */
  readonly locals?: ValueMap;
  readonly work: Work;
}

/** What references see. */
type Names = Omit<Environment, 'work'>;

/** Stands for the value of an expression that has none. */
export class Missing {
  /** The name that has no value. */
  readonly reference: Reference;

  constructor(reference: Reference) {
    this.reference = reference;
  }
}

/** Returns the value of a reference that is no secret; undefined if it has none. */
export function valueOfReference(reference: Reference, names: Names): Value | undefined {
  switch (reference.from) {
    case 'secrets':
      return undefined;
    case 'agent':
      return names.agent[reference.name];
    case 'each':
      return names.each === null ? undefined : inElement(names.each, reference.path);
    case 'inputs':
      return inside(names.inputs, reference.path);
    case 'local':
      return names.locals === undefined ? undefined : inside(names.locals, reference.path);
    case 'shared':
      return ownMember(names.shared, reference.name);
    case 'attributes':
      return inAttributes(names.agent, reference.path);
    case 'facts':
      return names.agent.facts === undefined ? undefined : inside(names.agent.facts.own, reference.path);
    default:
      return ownMember(names.agent[reference.from], reference.name);
  }
}

function inAttributes({ attributes, facts }: AgentFacts, path: readonly string[]): Value | undefined {
  const value = attributeOf(attributes, facts?.parts, path[0] ?? '');
  return value === undefined ? undefined : inside(value, path, 1);
}

const inElement = ({ key, value }: Element, path: readonly string[]): Value | undefined =>
  path[0] === 'key' ? key : inside(value, path, 1);

/** Returns the value at a path, of which the names before `from` do not count. */
function inside(value: Value, path: readonly string[], from = 0): Value | undefined {
  let found: Value | undefined = value;
  for (let at = from; at < path.length; at += 1) {
    const field = path[at] ?? '';
    found = found !== undefined && isMap(found) && Object.hasOwn(found, field) ? found[field] : undefined;
  }
  return found;
}

/** Evaluates an expression without secrets. Throws `EvaluationError`. */
export function evaluate({ reference, filters }: Expression, environment: Environment): Value | Missing {
  let value = valueOfReference(reference, environment);
  if (filters.length === 0) return value ?? new Missing(reference);
  let missing = reference;
  let isUnchecked = reference.from === 'facts';
  for (const { name, given } of filters) {
    if (name === DEFAULT ? value !== undefined : value === undefined) continue;
    const values: Value[] = given.length === 0 ? NOTHING : [];
    for (const argument of given) {
      isUnchecked ||= 'from' in argument && argument.from === 'facts';
      const found = valueOfArgument(argument, environment);
      if (found === undefined) {
        if (name !== DEFAULT && 'from' in argument) return new Missing(argument);
        if ('from' in argument) missing = argument;
      } else values.push(found);
    }
    if (isUnchecked && name !== DEFAULT) checkFilter(name, value as Value, values, { given, reference });
    if (name === DEFAULT) value = values[0];
    else value = applyFilter(name, value as Value, values, environment.work);
  }
  return value ?? new Missing(missing);
}

/** Throws `EvaluationError` unless a filter takes a value and arguments whose types only this agent has. */
function checkFilter(
  name: string,
  value: Value,
  values: readonly Value[],
  { given, reference }: { readonly given: readonly (Literal | Reference)[]; readonly reference: Reference },
): void {
  const types = given.map((argument, index) =>
    'literal' in argument
      ? { type: typeOf(argument.literal, reference), literal: argument.literal }
      : { type: typeOf(values[index] ?? '', argument) },
  );
  const found = filterType(name, types, typeOf(value, reference));
  if (typeof found === 'string') throw new EvaluationError(`${written(reference)}: ${found}`);
}

/** Returns the type of a value that only this agent has. Throws `EvaluationError` for a list of different types. */
function typeOf(value: Value, reference: Reference): ValueType {
  const type = inferType(value);
  if ('problem' in type) throw new EvaluationError(`${written(reference)}: ${type.problem.message}`);
  return type;
}

/** Throws `EvaluationError` unless a fact of one's own is a list of texts, or an empty text for none. */
export function textsOfFact(reference: Reference, value: Value): void {
  if (value === '' || (isList(value) && value.every((element) => typeof element === 'string'))) return;
  const found = isList(value) ? 'a list with other elements' : nounOf(typeOf(value, reference));
  throw new EvaluationError(
    `a loop over a fact of your own goes over a list of texts, and ${written(reference)} is ${found}`,
  );
}

const NOTHING: Value[] = [];

const valueOfArgument = (argument: Literal | Reference, environment: Environment): Value | undefined =>
  'literal' in argument ? argument.literal : valueOfReference(argument, environment);

/** Evaluates a condition. A missing value is not true, equals only `nil`, and is neither smaller nor greater. Throws `EvaluationError`. */
export function isTrue(condition: Condition, environment: Environment): boolean {
  switch (condition.type) {
    case 'not':
      return !isTrue(condition.of, environment);
    case 'and':
      return condition.of.every((part) => isTrue(part, environment));
    case 'or':
      return condition.of.some((part) => isTrue(part, environment));
    case 'value':
      environment.work.compare(true, true);
      return isTrueValue(condition.operand, environment);
    case 'compare': {
      const left = valueOfOperand(condition.left, environment);
      const right = valueOfOperand(condition.right, environment);
      environment.work.compare(left, right);
      checkComparison(condition, left, right);
      if (condition.by === '==') return left === right && (left !== undefined || condition.right === NIL);
      if (condition.by === '!=') return left !== right || (left === undefined && condition.right !== NIL);
      if (left === undefined || right === undefined) return false;
      if (condition.by === 'contains') environment.work.read(workOn(left));
      return compare(left, condition.by, right);
    }
  }
}

const isOfFact = (operand: Operand): operand is Expression =>
  operand !== NIL && 'reference' in operand && operand.reference.from === 'facts';

function isTrueValue(operand: Operand, environment: Environment): boolean {
  const value = valueOfOperand(operand, environment);
  if (value === undefined || !isOfFact(operand)) return value === true;
  const { reference } = operand;
  const problem = truthProblem({ type: typeOf(value, reference), optional: false });
  if (problem !== null) throw new EvaluationError(`${written(reference)}: ${problem}`);
  return value === true;
}

/** Throws `EvaluationError` for values that cannot be compared, of which one is a fact of one's own. */
function checkComparison(
  { left, by, right }: Extract<Condition, { readonly type: 'compare' }>,
  a: Value | undefined,
  b: Value | undefined,
): void {
  const operand = isOfFact(left) ? left : right;
  if (a === undefined || b === undefined || !isOfFact(operand)) return;
  const { reference } = operand;
  const literal = right !== NIL && 'literal' in right ? right : null;
  const problem = typesProblem(typeOf(a, reference), by, typeOf(b, reference), literal);
  if (problem !== null) throw new EvaluationError(`${written(reference)}: ${problem}`);
}

function valueOfOperand(operand: Operand, environment: Environment): Value | undefined {
  if (operand === NIL) return undefined;
  if ('literal' in operand) return operand.literal;
  const value = evaluate(operand, environment);
  return value instanceof Missing ? undefined : value;
}

function compare(left: Value, by: string, right: Value): boolean {
  if (by === 'contains') {
    if (isList(left)) return left.includes(right);
    return typeof left === 'string' && typeof right === 'string' && left.includes(right);
  }
  if (typeof left !== 'number' || typeof right !== 'number') return false;
  if (by === '<') return left < right;
  if (by === '<=') return left <= right;
  return by === '>' ? left > right : left >= right;
}
