/** Renders once for an agent the parts of a template that are equal for all elements of a loop. */
import { MAX_CONTENT_BYTES } from '../../resources/host.js';
import { type Environment, evaluate, isTrue, Missing } from '../evaluate.js';
import { type Condition, referencesOfCondition } from '../parse-condition.js';
import { type Expression, type Reference, referencesOf } from '../parse-expression.js';
import { textOf } from '../values.js';
import { EvaluationError, Work } from '../work.js';
import type { Branch, CompiledTemplate, Part } from './template.js';

/** Maximum work, in characters: a quarter of that of a resource. A template with more is rendered as it is. */
const MAX_WORK = 250_000;

/** Names that have other values, or none, outside of the element or the loop of a template. */
const VARYING: ReadonlySet<Reference['from']> = new Set(['each', 'local', 'secrets']);

/** What no element changes, by expression and condition: the same for all agents. */
const fixed = new WeakMap<object, boolean>();

function isFixed<T extends object>(written: T, referencesIn: (written: T) => readonly Reference[]): boolean {
  const known = fixed.get(written);
  if (known !== undefined) return known;
  const found = referencesIn(written).every(({ from }) => !VARYING.has(from));
  fixed.set(written, found);
  return found;
}

/** Returns a template that gives the same text for each element, and the same messages. */
export function preRender(template: CompiledTemplate, { agent, inputs, shared }: Environment): CompiledTemplate {
  const environment = { agent, inputs, shared, each: null, work: new Work(MAX_WORK) };
  const room = { left: MAX_CONTENT_BYTES };
  try {
    return { ...template, parts: partsOf(template.parts, environment, room) };
  } catch (error) {
    if (error instanceof EvaluationError) return template;
    throw error;
  }
}

interface Room {
  /** Characters that the values may still have. */
  left: number;
}

/** Throws `EvaluationError` when the work or the room is used up. */
function partsOf(parts: readonly Part[], environment: Environment, room: Room): readonly Part[] {
  environment.work.step(parts.length);
  const rendered: Part[] = [];
  const add = (part: Part): void => {
    const last = rendered.at(-1);
    if (part.type !== 'text' || last?.type !== 'text') rendered.push(part);
    else rendered[rendered.length - 1] = { type: 'text', text: last.text + part.text };
  };
  const inside = (nested: readonly Part[]) => partsOf(nested, environment, room);
  for (const part of parts) {
    switch (part.type) {
      case 'text':
      case 'render':
        add(part);
        break;
      case 'print': {
        const text = textFor(part.expression, environment);
        room.left -= text?.length ?? 0;
        if (room.left < 0) throw new EvaluationError('the values are too long');
        add(text === null ? part : { type: 'text', text });
        break;
      }
      case 'for':
        add({ ...part, parts: inside(part.parts), otherwise: inside(part.otherwise) });
        break;
      case 'if':
        for (const one of branchesOf(part, environment, inside)) add(one);
    }
  }
  return rendered;
}

type ConditionPart = Extract<Part, { readonly type: 'if' }>;

/** Returns the parts of the branch that is taken, or the condition without branches that are not. */
function branchesOf(
  { branches, otherwise }: ConditionPart,
  environment: Environment,
  inside: (parts: readonly Part[]) => readonly Part[],
): readonly Part[] {
  const open: Branch[] = [];
  for (const { offset, condition, parts } of branches) {
    const rest = reduced(condition, environment);
    if (rest === false) continue;
    if (rest === true && open.length === 0) return inside(parts);
    open.push({ offset, condition: rest === true ? condition : rest, parts: inside(parts) });
  }
  return open.length === 0 ? inside(otherwise) : [{ type: 'if', branches: open, otherwise: inside(otherwise) }];
}

/** Returns whether a condition holds, or what of it varies. A mistake in a part that varies is still reported. */
function reduced(condition: Condition, environment: Environment): Condition | boolean {
  if (isFixed(condition, referencesOfCondition))
    return attempt(() => isTrue(condition, environment), environment) ?? condition;
  if (condition.type !== 'and' && condition.type !== 'or') return condition;
  const decisive = condition.type === 'or';
  const open: Condition[] = [];
  for (const part of condition.of) {
    const rest = reduced(part, environment);
    if (rest === !decisive) continue;
    if (rest === decisive && open.length === 0) return decisive;
    open.push(typeof rest === 'boolean' ? part : rest);
  }
  const [only] = open;
  return open.length === 1 && only !== undefined ? only : { type: condition.type, of: open };
}

/** Returns the text of a value; null if it varies, is a secret, or is reported as a mistake where it is printed. */
function textFor(expression: Expression, environment: Environment): string | null {
  if (!isFixed(expression, referencesOf)) return null;
  const value = attempt(() => evaluate(expression, environment), environment);
  return value === null || value instanceof Missing || typeof value === 'object' ? null : textOf(value);
}

/** Returns null for a mistake, which counts only where the part is rendered. */
function attempt<T>(run: () => T, { work }: Environment): T | null {
  try {
    return run();
  } catch (error) {
    if (error instanceof EvaluationError && work.left >= 0) return null;
    throw error;
  }
}
