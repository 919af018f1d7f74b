/** Expands the conditions and loops of a module for one agent. */
import type { Steps } from '../kernel/steps.js';
import type { CompiledModule, CompiledResource, Repetition } from './compile-module.js';
import { type Element, type Environment, isTrue } from './evaluate.js';
import { elementsOf, type Loop } from './loop.js';
import type { ResolutionError } from './resolution-error.js';
import { MAX_RESOURCES } from './schema.js';
import { type AgentWork, EvaluationError } from './work.js';

/** One time that a resource is there. */
export interface Instance {
  readonly resource: CompiledResource;
  /** Element of the loop around it; null outside of loops. */
  readonly each: Element | null;
  /** The loop around it, which instances of one element share; null outside of loops. */
  readonly loop: Loop | null;
}

interface ExpandContext extends Omit<Environment, 'each' | 'work'> {
  readonly errors: ResolutionError[];
  readonly workOfAgent: AgentWork;
}

/**
 * Returns the instances of all resources of a module in declaration order, those of a group element by element. Steps over
 * some elements of a loop at a time.
 */
export function* expand(module: CompiledModule, expanding: ExpandContext): Steps<readonly Instance[]> {
  if (module.isPlain) return module.resources.map((resource) => ({ resource, each: null, loop: null }));
  const instances: Instance[] = [];
  const context = { ...expanding, work: expanding.workOfAgent.next() };
  for (const { repetition, members } of module.entries) {
    for (const around of yield* repeated(repetition, { each: null, loop: null }, module, context)) {
      for (const resource of members) {
        if (resource.repetition !== null) yield;
        for (const within of yield* repeated(resource.repetition, around, module, context)) {
          instances.push({ resource, ...within });
          if (instances.length > MAX_RESOURCES) {
            context.errors.push(tooMany(module, resource));
            return [];
          }
        }
      }
    }
  }
  return instances;
}

type Turn = Pick<Instance, 'each' | 'loop'>;

/** Elements of a loop whose condition is checked in one step. A condition has up to a hundred comparisons. */
const CHECKED_AT_ONCE = 50;

/** Returns the turns of an entry inside a turn of the group around it. */
function* repeated(
  repetition: Repetition | null,
  around: Turn,
  module: CompiledModule,
  { agent, inputs, shared, work, errors }: ExpandContext & Pick<Environment, 'work'>,
): Steps<readonly Turn[]> {
  if (repetition === null) return [around];
  const { condition, loop, path } = repetition;
  const failed = (at: string, message: string): readonly Turn[] => {
    const place = module.placeOf?.(path) ?? path;
    const text = `module "${module.name}", ${place}: ${at.slice(1)}: ${message}`;
    errors.push({ code: 'expression_error', module: module.name, path: path + at, message: text });
    return [];
  };
  const holds = ({ each }: Turn): boolean =>
    condition === null || isTrue(condition.condition, { agent, each, inputs, shared, work });
  try {
    if (loop === null) return holds(around) ? [around] : [];
    if (condition?.usesElement === false && !holds(around)) return [];
    const elements = elementsOf(loop, { agent, each: null, inputs, shared, work });
    if (typeof elements === 'string') return failed('/for_each', elements);
    const turns = elements.map((each) => ({ each, loop }));
    if (condition?.usesElement !== true) return turns;
    const kept: Turn[] = [];
    for (const [index, turn] of turns.entries()) {
      if (index % CHECKED_AT_ONCE === CHECKED_AT_ONCE - 1) yield;
      if (holds(turn)) kept.push(turn);
    }
    return kept;
  } catch (error) {
    if (!(error instanceof EvaluationError)) throw error;
    return failed('/if', error.message);
  }
}

/** Returns the error of a module with more resources than an agent gets. */
export function tooMany(module: CompiledModule, { path }: CompiledResource): ResolutionError {
  const message = `module "${module.name}": its loops and directories make more than ${MAX_RESOURCES} resources`;
  return { code: 'expression_error', module: module.name, path, message };
}
