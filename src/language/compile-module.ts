/** Compiles a module once per revision for the resolution of all agents. */
import { Fault } from '../kernel/fault.js';
import { finish, mapped, type Steps } from '../kernel/steps.js';
import { fileUnix } from '../resources/file-unix.js';
import type { Body, TriggerField } from '../resources/kind.js';
import { type CompiledCheck, compileChecks } from './compile-checks.js';
import { type CompiledTree, compileTree } from './compiled-tree.js';
import { confirmSecs } from './confirm-time.js';
import { MistakeList } from './diagnostic.js';
import { type Scope, scopeOf } from './expression-types.js';
import { type CompiledBody, compileBody, type ModuleTexts } from './fill.js';
import { type Input, type Inputs, NO_INPUTS } from './inputs/input.js';
import { fieldTypes, readInputs, soundInputs } from './inputs/read-inputs.js';
import type { KindSet, KnownKind } from './kind-set.js';
import { locatedOf } from './located.js';
import { type Loop, readLoop } from './loop.js';
import { type Condition, parseCondition, referencesOfCondition } from './parse-condition.js';
import { type Reference, referencesOf } from './parse-expression.js';
import {
  type AttributeClause,
  type KindChoice,
  type ModuleDefinition,
  type ResourceEntry,
  type SingleEntry,
  STANDARD_KINDS,
} from './schema.js';
import { referenceSteps, templateSteps } from './templates/module-templates.js';
import type { TreeLists } from './trees.js';

export interface ModuleSource {
  readonly name: string;
  /** Validated definition. */
  readonly definition: ModuleDefinition;
}

export interface CompiledModule {
  readonly name: string;
  readonly supports: readonly AttributeClause[];
  readonly inputs: Inputs;
  /** Everything that its expressions, conditions and loops name, each once. */
  readonly references: readonly Reference[];
  /** All resources, also those of groups, in declaration order. */
  readonly resources: readonly CompiledResource[];
  /** Entries in declaration order. */
  readonly entries: readonly CompiledEntry[];
  /** True without conditions, loops and directories beside the module, so that each agent has each resource once. */
  readonly isPlain: boolean;
  readonly checks: readonly CompiledCheck[];
  /** Seconds in which the machine has to come back after an apply; null for any time. */
  readonly confirmSecs: number | null;
  /** Returns the place of a JSON pointer for messages, such as `line 5`; absent without the text. */
  readonly placeOf?: (pointer: string) => string;
}

/** A resource, or a group of them. */
export interface CompiledEntry {
  /** The repetition of a group; null for a resource of its own. */
  readonly repetition: Repetition | null;
  /** The resource of its own, or those of the group. */
  readonly members: readonly CompiledResource[];
}

/** When a resource or a group is there, and how often. */
export interface Repetition {
  readonly condition: { readonly condition: Condition; readonly usesElement: boolean } | null;
  readonly loop: Loop | null;
  /** JSON pointer of the entry. */
  readonly path: string;
}

export interface CompiledResource {
  /** Position in `CompiledModule.resources`. */
  readonly position: number;
  readonly id: string | null;
  readonly name: string | null;
  /** JSON pointer of the entry. */
  readonly path: string;
  /** Null for a resource without a condition and a loop of its own. */
  readonly repetition: Repetition | null;
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
  /** The directory beside the module whose files come with the resource; null for none. */
  readonly tree: CompiledTree | null;
  readonly triggers: readonly { readonly field: TriggerField; readonly targets: readonly number[] }[];
}

interface CompileContext {
  readonly module: string;
  readonly kinds: KindSet;
  readonly texts: ModuleTexts;
  readonly trees: TreeLists;
  readonly scope: Scope;
  /** Returns the positions of the resources that an id names: one, or those of a group. */
  positions(id: string, path: string): readonly number[];
}

/** Compiles a module. Throws `invalid_module` for a definition that validation with these kinds would refuse. */
export const compileModule = (source: ModuleSource, kinds: KindSet = STANDARD_KINDS): CompiledModule =>
  finish(compileSteps(source, kinds));

/** Compiles in steps of one resource. Throws as `compileModule` does. */
export function* compileSteps(
  { name, definition }: ModuleSource,
  kinds: KindSet = STANDARD_KINDS,
): Steps<CompiledModule> {
  const written = membersOf(definition);
  const positions = positionsById(written);
  const inputs = yield* compileInputs(name, definition);
  const context: CompileContext = {
    module: name,
    kinds,
    scope: scopeOf(fieldTypes(inputs)),
    texts: { ...(yield* templateSteps(definition)), files: definition.files ?? {} },
    trees: definition.trees ?? {},
    positions(id, path) {
      const found = positions.get(id);
      if (found === undefined) throw invalid(name, path, `names "${id}", which no resource has as its id`);
      return found;
    },
  };
  const resources = yield* mapped(written, (member, position) => compileMember(member, position, context));
  let next = 0;
  const entries = (definition.resources ?? []).map((entry, index): CompiledEntry => {
    const first = next;
    next += entry.resources?.length ?? 1;
    const repetition = entry.resources === undefined ? null : compileRepetition(entry, `/resources/${index}`, context);
    return { repetition, members: resources.slice(first, next) };
  });
  const repetitions = [...entries, ...resources].map(({ repetition }) => repetition);
  const named = yield* mapped(repetitions, referencesOfRepetition);
  const references = [...(yield* referenceSteps(definition, context.texts)), ...named.flat()];
  return {
    name,
    supports: definition.supports ?? [],
    inputs,
    references: unique(references),
    confirmSecs: definition.confirm == null ? null : confirmSecs(definition.confirm),
    resources,
    entries,
    isPlain:
      repetitions.every((repetition) => repetition === null) &&
      resources.every(({ options }) => options.every(({ tree }) => tree === null)),
    checks: compileChecks(definition.verify ?? []),
  };
}

/** An agent's resolution goes through them, and a long template names the same few many times. */
const unique = (references: readonly Reference[]): readonly Reference[] => [
  ...new Map(references.map((reference) => [`${reference.from} ${reference.name}`, reference])).values(),
];

/** Returns the values that a condition and a loop name. */
function referencesOfRepetition(repetition: Repetition | null): readonly Reference[] {
  if (repetition === null) return [];
  const { condition, loop } = repetition;
  return [
    ...(condition === null ? [] : referencesOfCondition(condition.condition)),
    ...(loop !== null && 'reference' in loop.source ? referencesOf(loop.source) : []),
  ];
}

/** Compiles the inputs in steps of one, because each may have a default of thousands of parts. */
function* compileInputs(name: string, { inputs }: ModuleDefinition): Steps<Inputs> {
  if (inputs === undefined) return NO_INPUTS;
  const mistakes = new MistakeList();
  const read = new Map<string, Input | null>();
  for (const [input, declared] of Object.entries(inputs)) {
    const located = locatedOf({ [input]: declared });
    yield;
    for (const [one, found] of readInputs(located, mistakes)) read.set(one, found);
    yield;
  }
  const [first] = mistakes.found;
  if (first !== undefined) throw invalid(name, first.path, first.message);
  return soundInputs(read);
}

/** A resource as it is written. */
export interface WrittenMember {
  readonly entry: SingleEntry;
  /** The group that holds it; null for none. */
  readonly group: ResourceEntry | null;
  /** JSON pointer. */
  readonly path: string;
}

/** A resource of an entry, or of a variant of it. */
interface WrittenChoice {
  readonly choice: KindChoice;
  /** Clause of the variant; null for an entry without variants. */
  readonly when: AttributeClause | null;
  /** JSON pointer inside the entry. */
  readonly at: string;
}

/** Returns the resource of an entry, or those of its variants. */
export const choicesOf = ({ resource, variants }: SingleEntry): readonly WrittenChoice[] =>
  resource === undefined
    ? (variants ?? []).flatMap(({ resource: choice, when }, index) =>
        choice === undefined ? [] : [{ choice, when, at: `/variants/${index}/resource` }],
      )
    : [{ choice: resource, when: null, at: '/resource' }];

/** Returns all resources of a module, also those of groups, in declaration order. */
export const membersOf = ({ resources }: Pick<ModuleDefinition, 'resources'>): readonly WrittenMember[] =>
  (resources ?? []).flatMap((entry, index): readonly WrittenMember[] => {
    const path = `/resources/${index}`;
    if (entry.resources === undefined) return [{ entry, group: null, path }];
    return entry.resources.map((member, at) => ({
      entry: member,
      group: entry,
      path: `${path}/resources/${at}`,
    }));
  });

/** Returns the positions that each id names: that of a resource, or those of the resources of a group. */
export function positionsById(members: readonly WrittenMember[]): ReadonlyMap<string, readonly number[]> {
  const positions = new Map<string, number[]>();
  for (const [position, { entry, group }] of members.entries()) {
    for (const id of [entry.id, group?.id]) {
      if (id == null) continue;
      const found = positions.get(id);
      if (found === undefined) positions.set(id, [position]);
      else found.push(position);
    }
  }
  return positions;
}

function compileMember(
  { entry, group, path }: WrittenMember,
  position: number,
  context: CompileContext,
): CompiledResource {
  const options = choicesOf(entry).map(({ choice, when, at }) =>
    compileOption(choice, when, { ...context, path: path + at }),
  );
  const before = [...(group?.depends_on ?? []), ...(entry.depends_on ?? [])];
  return {
    position,
    id: entry.id ?? null,
    name: entry.name ?? null,
    path,
    repetition: compileRepetition(entry, path, context),
    dependsOn: before.flatMap((id) => context.positions(id, `${path}/depends_on`)),
    options,
  };
}

/** Compiles condition and loop; null without both. */
function compileRepetition(
  { if: condition, for_each: loop, key }: SingleEntry,
  path: string,
  { module, scope }: CompileContext,
): Repetition | null {
  if (condition === undefined && loop === undefined) return null;
  const parsed = condition === undefined ? null : parseCondition(String(condition));
  if (typeof parsed === 'string') throw invalid(module, `${path}/if`, parsed);
  const read = loop === undefined ? null : readLoop(loop, key ?? null, scope);
  if (read !== null && 'message' in read) throw invalid(module, `${path}/for_each`, read.message);
  const usesElement = parsed !== null && referencesOfCondition(parsed).some(({ from }) => from === 'each');
  return {
    condition: parsed === null ? null : { condition: parsed, usesElement },
    loop: read === null ? null : read.loop,
    path,
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
    body: compileBody(body, kind, context.texts),
    tree: treeOf(kind, body, { ...context, path }),
    triggers: kind.triggers.flatMap((field) => {
      const ids = body[field];
      if (!Array.isArray(ids) || ids.length === 0) return [];
      return [{ field, targets: ids.flatMap((id) => context.positions(String(id), `${path}/${field}`)) }];
    }),
  };
}

/** Returns the directory beside the module that a body takes; null for none. */
function treeOf(
  { treed }: KnownKind,
  { source }: Body,
  { module, kinds, texts, trees, path }: CompileContext & { readonly path: string },
): CompiledTree | null {
  if (!treed || source == null) return null;
  const fileKind = kinds.get(fileUnix.kind);
  const name = String(source);
  const tree = fileKind && compileTree(name, trees[name], { files: texts.files, fileKind });
  if (!tree) throw invalid(module, `${path}/source`, `names the directory "${name}", which did not come with it`);
  return tree;
}

const invalid = (module: string, path: string, what: string): Fault =>
  new Fault('invalid_module', `module "${module}": ${path} ${what}`, {
    hint: 'upload the module again with a version of orch that accepts it',
    errors: [{ path, message: what }],
  });
