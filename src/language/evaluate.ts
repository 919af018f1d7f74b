/** Evaluates expressions and conditions that `expression-types.ts` accepts, for one agent and one element of a loop. */
import { type AgentLabels, ownMember } from './clause.js';
import { applyFilter, DEFAULT } from './filters.js';
import { type Condition, NIL, type Operand } from './parse-condition.js';
import type { Expression, Literal, Reference } from './parse-expression.js';
import { isList, isMap, lengthOf, type Value, type ValueMap } from './values.js';
import type { Work } from './work.js';

export interface AgentFacts extends AgentLabels {
  readonly node_id: string;
  readonly name: string;
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

/** Value of an expression, or the reference that has none. */
type Evaluated = { readonly value: Value } | { readonly missing: Reference };

/** Returns the value of a reference that is no secret; undefined if it has none. */
export function valueOfReference(
  reference: Reference,
  { agent, each, inputs, shared, locals }: Names,
): Value | undefined {
  switch (reference.from) {
    case 'secrets':
      return undefined;
    case 'agent':
      return agent[reference.name];
    case 'each':
      return each === null ? undefined : inElement(each, reference.path);
    case 'inputs':
      return inside(inputs, reference.path);
    case 'local':
      return locals === undefined ? undefined : inside(locals, reference.path);
    case 'shared':
      return ownMember(shared, reference.name);
    default:
      return ownMember(agent[reference.from], reference.name);
  }
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
export function evaluate({ reference, filters }: Expression, environment: Environment): Evaluated {
  let value = valueOfReference(reference, environment);
  let missing = reference;
  for (const { name, given } of filters) {
    if (name === DEFAULT ? value !== undefined : value === undefined) continue;
    const values: Value[] = given.length === 0 ? NOTHING : [];
    for (const argument of given) {
      const found = valueOfArgument(argument, environment);
      if (found === undefined) {
        if (name !== DEFAULT && 'from' in argument) return { missing: argument };
        if ('from' in argument) missing = argument;
      } else values.push(found);
    }
    if (name === DEFAULT) value = values[0];
    else value = applyFilter(name, value as Value, values, environment.work);
  }
  return value === undefined ? { missing } : { value };
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
      return valueOfOperand(condition.operand, environment) === true;
    case 'compare': {
      const left = valueOfOperand(condition.left, environment);
      const right = valueOfOperand(condition.right, environment);
      if (condition.by === '==') return left === right && (left !== undefined || condition.right === NIL);
      if (condition.by === '!=') return left !== right || (left === undefined && condition.right !== NIL);
      if (left === undefined || right === undefined) return false;
      if (condition.by === 'contains') environment.work.read(lengthOf(left));
      return compare(left, condition.by, right);
    }
  }
}

function valueOfOperand(operand: Operand, environment: Environment): Value | undefined {
  if (operand === NIL) return undefined;
  if ('literal' in operand) return operand.literal;
  const evaluated = evaluate(operand, environment);
  return 'value' in evaluated ? evaluated.value : undefined;
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
