/** Lists the resources that modules declare on one agent, with their places. */
import { finish } from '../kernel/steps.js';
import { clauseMatches } from './clause.js';
import type { CompiledModule, CompiledOption, CompiledResource } from './compile-module.js';
import type { AgentFacts } from './evaluate.js';
import { expand } from './expand.js';
import type { SecretSource } from './filling.js';
import { type GivenValues, inputError, moduleValues, NO_VALUES, valuesFor } from './inputs/choose.js';
import { type Realized, realize } from './realize.js';
import type { ResolutionError } from './resolution-error.js';
import type { AttributeClause } from './schema.js';
import { withTree } from './tree-resources.js';
import { AgentWork } from './work.js';

/** A resource that one module declares for the agent, before modules are merged. */
export interface Declaration {
  readonly module: string;
  readonly kind: string;
  readonly identity: string;
  readonly id: string | null;
  readonly name: string | null;
  /** Key of the element of the loop that made it; null outside of loops. */
  readonly element: string | null;
  /** JSON pointer of the body in the module. */
  readonly path: string;
  /** Path beside the module, for what comes with the directory that `path` declares; null for everything else. */
  readonly beside: string | null;
  /** Chosen variant; null for a resource without variants. */
  readonly variant: DeclaredVariant | null;
}

export interface DeclaredVariant {
  /** Number of the variant, from 1. */
  readonly number: number;
  readonly of: number;
  readonly when: AttributeClause;
}

interface Declarations {
  readonly declared: readonly Declaration[];
  /** Modules that do not support the agent. */
  readonly unsupported: readonly string[];
  /** Errors of resources that cannot be realized for the agent. */
  readonly errors: readonly ResolutionError[];
}

interface DeclarationsRequest {
  readonly modules: readonly CompiledModule[];
  readonly agent: AgentFacts;
  readonly secret: SecretSource;
  /** Values of inputs; none if it is absent. */
  readonly values?: GivenValues;
}

/** Returns declarations in the order of modules and resources. Collects errors of resources and never throws them. */
export function declarations({ modules, agent, secret, values = NO_VALUES }: DeclarationsRequest): Declarations {
  const errors: ResolutionError[] = [];
  const room = { left: Number.POSITIVE_INFINITY };
  const workOfAgent = new AgentWork();
  const supporting = modules.filter(({ supports }) => supports.some((clause) => clauseMatches(clause, agent)));
  const given = valuesFor(values, agent);
  const declared = supporting.flatMap((module) => {
    const { inputs, shared, problems } = moduleValues(module, given);
    errors.push(...problems.map((problem) => inputError(module, agent, problem)));
    if (problems.length > 0) return [];
    const context = { agent, inputs, shared, secret, room, workOfAgent, preRendered: new Map(), errors };
    return finish(expand(module, context)).flatMap((instance): readonly Declaration[] => {
      const one = finish(realize(module, instance, context));
      if (one === null) return [];
      const { resource, each, option } = one;
      const variant = variantOf(resource, option);
      const place = { element: each?.key ?? null, path: option.path, variant };
      return withTree(one).map((part) => ({
        module: module.name,
        kind: part.option.kind.kind.kind,
        identity: part.identity,
        id: part.id,
        name: part.name,
        ...place,
        beside: placeBeside(one, part),
      }));
    });
  });
  const unsupported = modules.filter((module) => !supporting.includes(module)).map(({ name }) => name);
  return { declared, unsupported, errors };
}

/** Returns the path beside the module of what comes with a directory; null for the directory itself, and without one. */
function placeBeside({ option: { tree }, body: { path } }: Realized, part: Realized): string | null {
  const below = `${String(path)}/`;
  const at = String(part.body.path);
  return tree !== null && at.startsWith(below) ? `${tree.source}/${at.slice(below.length)}` : null;
}

function variantOf({ options }: CompiledResource, option: CompiledOption): DeclaredVariant | null {
  if (option.when === null) return null;
  return { number: options.indexOf(option) + 1, of: options.length, when: option.when };
}
