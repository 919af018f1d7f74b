/** Resolves the modules of one agent into one set of resources in the order of application. */

import { findCycles, stableOrder } from '../kernel/order.js';
import { finish, mapped, type Steps } from '../kernel/steps.js';
import type { Span } from '../kernel/tainted.js';
import type { DesiredCheck } from '../resources/checks/check.js';
import type { DesiredResource } from '../resources/desired.js';
import { keyInFamily } from '../resources/resource-key.js';
import { clauseMatches, labelOf, showClause } from './clause.js';
import { realizeChecks, tooManyChecks } from './compile-checks.js';
import { type CompiledModule, compileModule, type ModuleSource } from './compile-module.js';
import type { AgentFacts } from './evaluate.js';
import { expand, tooMany } from './expand.js';
import type { SecretSource } from './filling.js';
import { type GivenValues, inputError, NO_VALUES, valueSteps, valuesFor } from './inputs/choose.js';
import type { KindSet } from './kind-set.js';
import { isAbsent, type MergedSet, merge, type Node } from './merge.js';
import { namesApart, quoted, type ResourceName, shortened } from './printable.js';
import { placeOfRealized, type Realized, realize } from './realize.js';
import { type ResolutionError, throwErrors } from './resolution-error.js';
import { type AttributeClause, MAX_RESOURCES, STANDARD_KINDS } from './schema.js';
import { withTree } from './tree-resources.js';
import { AgentWork } from './work.js';

interface ResolveRequest {
  /** Modules in the order of application. A repeated module counts once, at its first place. */
  readonly modules: readonly ModuleSource[];
  readonly agent: AgentFacts;
  readonly secret: SecretSource;
  /** Values of inputs; none if it is absent. */
  readonly values?: GivenValues;
}

export interface CompiledRequest extends Omit<ResolveRequest, 'modules'> {
  readonly modules: readonly CompiledModule[];
}

export interface Resolution {
  /** Resources in the order of application. Resolutions share bodies, which must not be changed. */
  readonly resources: readonly DesiredResource[];
  /** Health checks, in the order of the modules. */
  readonly checks: readonly DesiredCheck[];
  /** Names of the modules without duplicates. */
  readonly modules: readonly string[];
  readonly warnings: readonly ResolutionWarning[];
}

/** Maximum characters that the expressions of one resolution may produce. */
const MAX_FILLED = 64 * 1024 * 1024;

/**
 * Resolves modules for an agent. Throws a Fault with every mistake in `errors`: `module_not_supported`,
 * `variant_missing`, `variant_ambiguous`, `expression_error`, `secret_unavailable`, `module_conflict`.
 */
export function resolve({ modules, ...rest }: ResolveRequest, kinds: KindSet = STANDARD_KINDS): Resolution {
  return resolveCompiled({ ...rest, modules: modules.map((module) => compileModule(module, kinds)) });
}

/** Resolves compiled modules, as for many agents. */
export const resolveCompiled = (request: CompiledRequest): Resolution => finish(resolveSteps(request));

/** Resolves in steps of at most one resource, and of a part of one with a template. */
export function* resolveSteps({
  modules: named,
  agent,
  secret,
  values = NO_VALUES,
}: CompiledRequest): Steps<Resolution> {
  const seen = new Set<string>();
  const modules = named.filter(({ name }) => !seen.has(name) && seen.add(name));
  throwErrors(modules.flatMap((module) => unsupported(module, agent)));
  const errors: ResolutionError[] = [];
  const own = { agent, secret: once(secret), room: { left: MAX_FILLED }, workOfAgent: new AgentWork(), errors };
  const given = valuesFor(values, agent);
  const realized: Realized[] = [];
  const checks: DesiredCheck[] = [];
  for (const module of modules) {
    const { inputs, shared, problems } = yield* valueSteps(module, given);
    if (problems.length > 0) {
      errors.push(...problems.map((problem) => inputError(module, agent, problem)));
      continue;
    }
    const context = { ...own, inputs, shared, preRendered: new Map() };
    const before = realized.length;
    for (const instance of yield* expand(module, context)) {
      const one = yield* realize(module, instance, context);
      for (const part of one === null ? [] : withTree(one)) realized.push(part);
      yield;
      if (realized.length - before > MAX_RESOURCES) {
        errors.push(tooMany(module, instance.resource));
        break;
      }
    }
    checks.push(...(yield* realizeChecks(module, context)));
  }
  const excess = tooManyChecks(checks);
  if (excess !== null) errors.push(excess);
  throwErrors(errors);
  const merged = yield* merge(realized, errors);
  throwErrors(errors);
  return { ...(yield* sequence(realized, merged)), checks, modules: modules.map(({ name }) => name) };
}

/** Maximum number of clauses in an explanation. */
const EXPLAINED = 5;

function unsupported({ name, supports }: CompiledModule, agent: AgentFacts): readonly ResolutionError[] {
  if (supports.some((clause) => clauseMatches(clause, agent))) return [];
  const reasons = supports.slice(0, EXPLAINED).map((clause) => mismatchOf(clause, agent));
  if (supports.length > EXPLAINED) reasons.push('and so on');
  const why = reasons.length === 0 ? 'its supports is empty' : reasons.join('; ');
  const message = `module "${name}" does not support agent "${agent.name}": ${why}`;
  return [{ code: 'module_not_supported', module: name, path: '/supports', message }];
}

/** Describes the first key of a clause that the agent does not match. */
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

/** A warning, which does not stop the resolution; `path` is a JSON pointer in the module. */
interface ResolutionWarning {
  readonly module: string;
  readonly path: string;
  readonly message: string;
}

interface Sequence {
  readonly resources: readonly DesiredResource[];
  readonly warnings: readonly ResolutionWarning[];
}

/** Positions of the nodes that precede a node. */
interface Links {
  readonly after: Set<number>;
  readonly triggers: Map<string, Set<number>>;
}

/** Orders and links the set. Throws `module_conflict` for a dependency cycle across modules. */
function* sequence(realized: readonly Realized[], merged: MergedSet): Steps<Sequence> {
  const { nodes } = merged;
  const links = yield* linksOf(realized, merged);
  const dependencies = yield* mapped(links, ({ after }) => [...after]);
  const order = stableOrder(dependencies) ?? failWithCycle(nodes, dependencies);
  const turns: number[] = [];
  for (const [turn, node] of order.entries()) turns[node] = turn;
  const turnOf = (node: number): number => turns[node] ?? -1;
  const warnings: ResolutionWarning[] = [];
  const resources = yield* mapped(order, (position) => {
    const [node, link] = [nodes[position], links[position]];
    if (node === undefined || link === undefined) throw new Error(`position ${position} of the order has no resource`);
    for (const holder of holdersOf(node, merged)) {
      const held = nodes[holder];
      if (turnOf(holder) < turnOf(position)) link.after.add(holder);
      else if (holder !== position && held !== undefined) warnings.push(declaredTooEarly(node, held));
    }
    return desiredOf(node, link, turnOf);
  });
  return { resources, warnings };
}

/** Collects dependencies and triggers of all places that declare a node. */
function* linksOf(realized: readonly Realized[], { nodes, positions, byKey }: MergedSet): Steps<readonly Links[]> {
  const links = nodes.map((): Links => ({ after: new Set(), triggers: new Map() }));
  let first = 0;
  let instances = noInstances;
  for (const [index, one] of realized.entries()) {
    if (realized[first]?.module !== one.module || index === 0) {
      first = index;
      instances = instancesFrom(realized, first);
    }
    const position = positions[index] ?? -1;
    const link = links[position];
    if (link === undefined) continue;
    const add = (set: Set<number>, target: number) => {
      for (const other of instances(target, one)) {
        const node = positions[other] ?? -1;
        if (node !== position) set.add(node);
      }
    };
    for (const target of one.resource.dependsOn) add(link.after, target);
    for (const { field, targets } of one.option.triggers) {
      const set = link.triggers.get(field) ?? new Set();
      link.triggers.set(field, set);
      for (const target of targets) {
        add(link.after, target);
        add(set, target);
      }
    }
    yield;
  }
  orderAbsences({ nodes, byKey }, links);
  return links;
}

/** Puts what is absent behind absences that need it, such as a directory behind the files in it. */
function orderAbsences({ nodes, byKey }: Pick<MergedSet, 'nodes' | 'byKey'>, links: readonly Links[]): void {
  for (const [position, { first }] of nodes.entries()) {
    const kind = first.option.kind.kind.absenceOf;
    if (kind === undefined) continue;
    const needed = [...kind.requires(first.body), ...(kind.above?.(first.body) ?? [])];
    for (const { family, identity } of needed) {
      const holder = byKey.get(keyInFamily(family, identity, first.module.name));
      const node = holder === undefined ? undefined : nodes[holder];
      if (holder !== undefined && holder !== position && node && isAbsent(node)) links[holder]?.after.add(position);
    }
  }
}

/** Returns the positions among the realized resources of the instances of a resource that another one of its module means. */
type Instances = (resource: number, from: Realized) => readonly number[];

const noInstances: Instances = () => [];

/** @param first position of the first realized resource of a module */
function instancesFrom(realized: readonly Realized[], first: number): Instances {
  const module = realized[first]?.module;
  // Each agent has each resource of a plain module once.
  if (module === undefined || module.isPlain) return (resource) => [first + resource];
  const all = new Map<number, number[]>();
  for (let at = first; realized[at]?.module === module; at += 1) {
    const { position } = (realized[at] as Realized).resource;
    const known = all.get(position);
    if (known === undefined) all.set(position, [at]);
    else known.push(at);
  }
  return (resource, { loop, each }) => {
    const found = all.get(resource) ?? [];
    const [some] = found;
    if (loop === null || some === undefined || realized[some]?.loop !== loop) return found;
    return found.filter((at) => realized[at]?.each?.key === each?.key);
  };
}

/** Returns the declared nodes that a node's kind requires first. */
function holdersOf({ first }: Node, { byKey }: MergedSet): readonly number[] {
  const required = first.option.kind.kind.requires(first.body);
  return required.flatMap(({ family, identity }) => byKey.get(keyInFamily(family, identity, first.module.name)) ?? []);
}

const nameOf = ({ option, identity }: Realized): ResourceName => ({ kind: option.kind.kind.kind, identity });

function declaredTooEarly({ first }: Node, holder: Node): ResolutionWarning {
  const where = ` of ${placeOfRealized(holder.first)}`;
  const [early, late] = namesApart(nameOf(first), nameOf(holder.first));
  const message = `${early} is declared before ${late}${where}, which has to be there first`;
  return { module: first.module.name, path: first.option.path, message };
}

function desiredOf(
  { first, taint }: Node,
  { after, triggers }: Links,
  turnOf: (node: number) => number,
): DesiredResource {
  const sorted = (set: ReadonlySet<number>): number[] => [...set].map(turnOf).sort((a, b) => a - b);
  const { module, id, name, option, identity, body } = first;
  return {
    module: module.name,
    kind: option.kind.kind.kind,
    identity,
    id,
    name,
    body,
    ...(taint.size > 0 && { taint: mutableTaint(taint) }),
    after: after.size === 0 ? [] : sorted(after),
    ...(triggers.size > 0 && {
      triggers: Object.fromEntries([...triggers].map(([field, set]) => [field, sorted(set)])),
    }),
  };
}

const mutableTaint = (taint: ReadonlyMap<string, readonly Span[]>): Record<string, Span[]> =>
  Object.fromEntries([...taint].map(([path, spans]) => [path, [...spans]]));

/** Throws `module_conflict`. A single module has no cycle, so this one comes from resources that modules share. */
function failWithCycle(nodes: readonly Node[], dependencies: readonly (readonly number[])[]): never {
  const errors = findCycles(dependencies).map((cycle): ResolutionError => {
    const places = cycle.flatMap((position) => nodes[position]?.places ?? []);
    const names = [...cycle, cycle[0] ?? 0].map((position) => quoted(nodes[position]?.first.identity ?? ''));
    const modules = [...new Set(places.map(({ module }) => `"${module.name}"`))];
    return {
      code: 'module_conflict',
      module: places[0]?.module.name ?? '',
      path: places[0]?.resource.path ?? '',
      message: `modules ${modules.join(' and ')} together make a dependency cycle: ${names.join(' -> ')}`,
    };
  });
  throwErrors(errors);
  throw new Error('an order without a cycle was not found');
}
