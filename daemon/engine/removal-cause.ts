/** Why a managed resource is no longer desired. */
import { hasExpression } from '../../src/language/expression.js';
import type { ModuleDefinition } from '../../src/language/schema.js';
import { CATALOGUE } from '../../src/resources/catalogue.js';

/** What somebody did, and when, in words. */
export interface Deed {
  readonly who: string;
  /** RFC 3339. */
  readonly when: string;
}

/** What the store tells about the module of a removal. */
export type ModuleFacts =
  /** It is not in the store any more. */
  | { readonly state: 'deleted'; readonly deed: Deed | null }
  /** It is there and not part of this apply; why no assignment brings it any more, as far as that is known. */
  | { readonly state: 'not_named'; readonly cause: string | null }
  | {
      readonly state: 'named';
      readonly revision: number;
      readonly uploaded: Deed;
      /** Unix milliseconds. */
      readonly uploadedAt: number;
      readonly definition: ModuleDefinition;
    };

export interface RemovedResource {
  readonly module: string;
  readonly kind: string;
  readonly identity: string;
  readonly id: string | null;
  /** The apply that last put it there. */
  readonly operation_id: string;
  readonly applied_at: number;
  /** 1 when its module was only named in a request. */
  readonly ad_hoc: number;
}

/** One clause for a message. `tagChange` is the last change of the agent's tags since the resource was applied. */
export function removalCause(resource: RemovedResource, facts: ModuleFacts, tagChange: Deed | null): string {
  const { module } = resource;
  switch (facts.state) {
    case 'deleted':
      return `module ${module} was deleted${by(facts.deed)}`;
    case 'not_named':
      return resource.ad_hoc === 1
        ? `module ${module} was only named in operation ${resource.operation_id}`
        : (facts.cause ?? `no assignment names module ${module} for this agent any more`);
    case 'named':
      return causeWithinModule(resource, facts, tagChange);
  }
}

function causeWithinModule(
  resource: RemovedResource,
  { revision, uploaded, uploadedAt, definition }: Extract<ModuleFacts, { state: 'named' }>,
  tagChange: Deed | null,
): string {
  const { module } = resource;
  const declared = declarationOf(resource, definition);
  if (declared === 'none' || (declared === 'perhaps' && uploadedAt > resource.applied_at)) {
    return `revision ${revision} of module ${module}, uploaded${by(uploaded)}, does not declare it`;
  }
  if (tagChange !== null) return `the tags of the agent were changed${by(tagChange)}`;
  return declared === 'literal'
    ? `no variant of it in module ${module} matches the agent any more`
    : `an attribute of the agent that module ${module} uses has changed`;
}

const by = (deed: Deed | null): string => (deed === null ? '' : ` by ${deed.who} at ${deed.when}`);

/** Whether a definition declares a resource: under this very identity, perhaps under one with expressions, or not. */
function declarationOf(
  { kind, identity, id }: RemovedResource,
  definition: ModuleDefinition,
): 'literal' | 'perhaps' | 'none' {
  let found: 'perhaps' | 'none' = 'none';
  for (const entry of definition.resources ?? []) {
    const choices = entry.resource ? [entry.resource] : (entry.variants ?? []).map((variant) => variant.resource);
    for (const [name, body] of choices.flatMap((choice) => Object.entries(choice))) {
      const candidate = CATALOGUE.get(name);
      if (candidate === undefined || candidate.family !== CATALOGUE.get(kind)?.family) continue;
      const written = candidate.identity(body, entry.id ?? null);
      if (written === identity || (id !== null && entry.id === id)) return 'literal';
      if (hasExpression(written)) found = 'perhaps';
    }
  }
  return found;
}
