/** What one agent is to be: the modules that apply to it, resolved into one ordered set of resources. */
import { finish, type Steps } from '../kernel/steps.js';
import type { DesiredResource } from '../resources/desired.js';
import { clauseMatches, labelOf, showClause } from './clause.js';
import { type CompiledModule, compileModule, type ModuleSource } from './compile-module.js';
import type { AgentFacts, SecretSource } from './fill.js';
import type { KindSet } from './kind-set.js';
import { merge } from './merge.js';
import { shortened } from './printable.js';
import { type Realized, realize } from './realize.js';
import { type ResolutionError, throwErrors } from './resolution-error.js';
import { type AttributeClause, STANDARD_KINDS } from './schema.js';
import { type ResolutionWarning, sequence } from './sequence.js';

export interface ResolveRequest {
  /** In the order of application; a module that is named again counts once, at its first place. */
  readonly modules: readonly ModuleSource[];
  readonly agent: AgentFacts;
  readonly secret: SecretSource;
}

export interface CompiledRequest extends Omit<ResolveRequest, 'modules'> {
  readonly modules: readonly CompiledModule[];
}

export interface Resolution {
  /** In the order of application. Bodies are shared between resolutions and must not be changed. */
  readonly resources: readonly DesiredResource[];
  /** The names of the modules, each once. */
  readonly modules: readonly string[];
  readonly warnings: readonly ResolutionWarning[];
}

/** Most characters that the expressions of one resolution may add up to. */
const MAX_FILLED = 64 * 1024 * 1024;

/**
 * Resolves modules for an agent. Throws a Fault with every mistake in `errors`: `module_not_supported`,
 * `variant_missing`, `variant_ambiguous`, `expression_error`, `secret_unavailable`, `module_conflict`.
 */
export function resolve({ modules, ...rest }: ResolveRequest, kinds: KindSet = STANDARD_KINDS): Resolution {
  return resolveCompiled({ ...rest, modules: modules.map((module) => compileModule(module, kinds)) });
}

/** The same for modules that are compiled already, as for many agents. */
export const resolveCompiled = (request: CompiledRequest): Resolution => finish(resolveSteps(request));

/** The same in steps, one for each resource at most. */
export function* resolveSteps({ modules: named, agent, secret }: CompiledRequest): Steps<Resolution> {
  const seen = new Set<string>();
  const modules = named.filter(({ name }) => !seen.has(name) && seen.add(name));
  throwErrors(modules.flatMap((module) => unsupported(module, agent)));
  const errors: ResolutionError[] = [];
  const context = { agent, secret: once(secret), room: { left: MAX_FILLED }, errors };
  const realized: Realized[] = [];
  for (const module of modules) {
    for (const resource of module.resources) {
      const one = realize(module, resource, context);
      if (one !== null) realized.push(one);
      yield;
    }
  }
  throwErrors(errors);
  const merged = yield* merge(realized, errors);
  throwErrors(errors);
  return { ...(yield* sequence(realized, merged)), modules: modules.map(({ name }) => name) };
}

/** A module with more clauses than this is explained by the first ones. */
const EXPLAINED = 5;

function unsupported({ name, supports }: CompiledModule, agent: AgentFacts): readonly ResolutionError[] {
  if (supports.some((clause) => clauseMatches(clause, agent))) return [];
  const reasons = supports.slice(0, EXPLAINED).map((clause) => mismatchOf(clause, agent));
  if (supports.length > EXPLAINED) reasons.push('and so on');
  const why = reasons.length === 0 ? 'its supports is empty' : reasons.join('; ');
  const message = `module "${name}" does not support agent "${agent.name}": ${why}`;
  return [{ code: 'module_not_supported', module: name, path: '/supports', message }];
}

/** The first key of a clause that the agent does not meet. */
function mismatchOf(clause: AttributeClause, agent: AgentFacts): string {
  const key = Object.keys(clause).find((wanted) => labelOf(agent, wanted) !== clause[wanted]) ?? '';
  const have = labelOf(agent, key);
  const found = have === undefined ? `no ${shortened(key)}` : showClause({ [key]: have });
  return `it needs ${showClause({ [key]: clause[key] ?? '' })}, and the agent has ${found}`;
}

/** Asks for each secret only once. */
function once(secret: SecretSource): SecretSource {
  const known = new Map<string, ReturnType<SecretSource>>();
  return (name) => {
    const found = known.get(name);
    if (found !== undefined) return found;
    const value = secret(name);
    known.set(name, value);
    return value;
  };
}
