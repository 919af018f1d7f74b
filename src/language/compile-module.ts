/** Compiles a module once per revision for the resolution of all agents. */
import { Fault } from '../kernel/fault.js';
import { finish, mapped, type Steps } from '../kernel/steps.js';
import type { TriggerField } from '../resources/kind.js';
import { type CompiledCheck, compileChecks } from './compile-checks.js';
import { confirmSecs } from './confirm-time.js';
import { type CompiledBody, compileBody } from './fill.js';
import type { KindSet, KnownKind } from './kind-set.js';
import {
  type AttributeClause,
  type KindChoice,
  type ModuleDefinition,
  type ResourceEntry,
  STANDARD_KINDS,
} from './schema.js';

export interface ModuleSource {
  readonly name: string;
  /** Validated definition. */
  readonly definition: ModuleDefinition;
}

export interface CompiledModule {
  readonly name: string;
  readonly supports: readonly AttributeClause[];
  readonly resources: readonly CompiledResource[];
  readonly checks: readonly CompiledCheck[];
  /** Seconds in which the machine has to come back after an apply; null for any time. */
  readonly confirmSecs: number | null;
  /** Returns the place of a JSON pointer for messages, such as `line 5`; absent without the text. */
  readonly placeOf?: (pointer: string) => string;
}

export interface CompiledResource {
  readonly id: string | null;
  readonly name: string | null;
  /** JSON pointer of the entry. */
  readonly path: string;
  /** Positions of resources in the module. */
  readonly dependsOn: readonly number[];
  /** One option without `when`, or the variants. */
  readonly options: readonly CompiledOption[];
}

export interface CompiledOption {
  readonly when: AttributeClause | null;
  /** Number of keys in `when`. */
  readonly keys: number;
  readonly kind: KnownKind;
  /** JSON pointer of the body. */
  readonly path: string;
  readonly body: CompiledBody;
  readonly triggers: readonly { readonly field: TriggerField; readonly targets: readonly number[] }[];
}

interface CompileContext {
  readonly module: string;
  readonly kinds: KindSet;
  readonly templates: ReadonlyMap<string, string>;
  /** Returns the position of the resource with an id. */
  position(id: string, path: string): number;
}

/** Compiles a module. Throws `invalid_module` for a definition that validation with these kinds would refuse. */
export const compileModule = (source: ModuleSource, kinds: KindSet = STANDARD_KINDS): CompiledModule =>
  finish(compileSteps(source, kinds));

/** Compiles in steps of one resource. Throws as `compileModule` does. */
export function* compileSteps(
  { name, definition }: ModuleSource,
  kinds: KindSet = STANDARD_KINDS,
): Steps<CompiledModule> {
  const entries = definition.resources ?? [];
  const positions = new Map(entries.flatMap(({ id }, index) => (id == null ? [] : [[id, index] as const])));
  const context: CompileContext = {
    module: name,
    kinds,
    templates: new Map((definition.templates ?? []).map(({ id, content }) => [id, content])),
    position(id, path) {
      const position = positions.get(id);
      if (position === undefined) throw invalid(name, path, `names "${id}", which no resource has as its id`);
      return position;
    },
  };
  return {
    name,
    supports: definition.supports ?? [],
    confirmSecs: definition.confirm == null ? null : confirmSecs(definition.confirm),
    resources: yield* mapped(entries, (entry, index) => compileEntry(entry, `/resources/${index}`, context)),
    checks: compileChecks(definition.verify ?? []),
  };
}

function compileEntry(entry: ResourceEntry, path: string, context: CompileContext): CompiledResource {
  const { resource, variants } = entry;
  const options =
    resource === undefined
      ? (variants ?? []).map((variant, index) =>
          compileOption(variant.resource, variant.when, { ...context, path: `${path}/variants/${index}/resource` }),
        )
      : [compileOption(resource, null, { ...context, path: `${path}/resource` })];
  return {
    id: entry.id ?? null,
    name: entry.name ?? null,
    path,
    dependsOn: (entry.depends_on ?? []).map((id) => context.position(id, `${path}/depends_on`)),
    options,
  };
}

function compileOption(
  choice: KindChoice,
  when: AttributeClause | null,
  context: CompileContext & { readonly path: string },
): CompiledOption {
  const [[name, body] = ['', {}]] = Object.entries(choice);
  const kind = context.kinds.get(name);
  if (kind === undefined) throw invalid(context.module, context.path, `has the unknown kind "${name}"`);
  const path = `${context.path}/${name}`;
  return {
    when,
    keys: when === null ? 0 : Object.keys(when).length,
    kind,
    path,
    body: compileBody(body, kind, context.templates),
    triggers: kind.triggers.flatMap((field) => {
      const ids = body[field];
      if (!Array.isArray(ids) || ids.length === 0) return [];
      return [{ field, targets: ids.map((id) => context.position(String(id), `${path}/${field}`)) }];
    }),
  };
}

const invalid = (module: string, path: string, what: string): Fault =>
  new Fault('invalid_module', `module "${module}": ${path} ${what}`, {
    hint: 'upload the module again with a version of orch that accepts it',
    errors: [{ path, message: what }],
  });
