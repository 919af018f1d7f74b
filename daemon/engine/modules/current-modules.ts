/** Prepares stored modules and modules sent with a request for resolution, and caches the result by content hash. */
import { NO_REVISION } from '../../../src/contract/run-targets.js';
import { Fault, type FaultDetail, isFault } from '../../../src/kernel/fault.js';
import { fewOf } from '../../../src/kernel/few-of.js';
import type { JsonObject } from '../../../src/kernel/json.js';
import { type CompiledModule, compileSteps } from '../../../src/language/compile-module.js';
import type { Position } from '../../../src/language/diagnostic.js';
import { type FactsRead, factsRead } from '../../../src/language/facts-read.js';
import type { FileDigests } from '../../../src/language/files-beside.js';
import { type CompiledRequest, type Resolution, resolveSteps } from '../../../src/language/resolve.js';
import type { ModuleDefinition } from '../../../src/language/schema.js';
import { secretsInValue } from '../../../src/language/values.js';
import type { Queryable } from '../../database/schema.js';
import { inSlices } from '../slices.js';
import type { ModuleFiles } from './module-files.js';
import { findModuleHeads, findModuleRevision, findModuleText, type ModuleHead } from './module-store.js';
import type { ModuleText, Source } from './source-store.js';
import { checkUpload, digestOf, requireName, type TextParser } from './text-parser.js';

interface Prepared {
  readonly definition: ModuleDefinition;
  readonly compiled: CompiledModule;
  /** Names of the secrets that the module may need. */
  readonly secrets: ReadonlySet<string>;
  readonly facts: FactsRead;
  /** Positions that were looked up so far, by JSON pointer. */
  readonly positions: Map<string, Position>;
}

export interface CurrentModule extends Omit<Prepared, 'positions'> {
  readonly name: string;
  /** `digestOf` the module. */
  readonly sha256: string;
  /** The stored revision; null for a module that came with the request. */
  readonly stored: ModuleHead | null;
}

/** A module that came with a request: it replaces the stored module of that name, and is not stored. */
export interface SentModule extends CurrentModule {
  readonly stored: null;
  readonly content: string;
  /** SHA-256 of the stored revision that it was made from, null for none; absent if the request does not say. */
  readonly replaces?: string | null;
}

/** Returns the texts of a request as sources. One that does not say what it was made from replaces what is stored now. */
export async function sourcesOf(db: Queryable, sent: readonly SentModule[]): Promise<readonly (Source & ModuleText)[]> {
  const heads = new Map(
    (
      await findModuleHeads(
        db,
        sent.map(({ name }) => name),
      )
    ).map((head) => [head.name, head]),
  );
  return sent.map(({ name, sha256, content, definition, replaces = heads.get(name)?.sha256 ?? null }) => ({
    name,
    sha256,
    content,
    definition,
    replaces,
  }));
}

/** Returns the suffix of an event's summary and its metadata (SHA-256 of the texts) for modules that came with a request. */
export function sentNote(sent: readonly Pick<SentModule, 'name' | 'sha256'>[]): {
  readonly suffix: string;
  readonly metadata: JsonObject;
} {
  if (sent.length === 0) return { suffix: '', metadata: {} };
  return {
    suffix: ` (${fewOf(sent.map(({ name }) => name))} as sent with the request, not stored)`,
    metadata: { sent: Object.fromEntries(sent.map(({ name, sha256 }) => [name, sha256])) },
  };
}

/** A module's text with the name that it is sent under. */
interface ModuleSource {
  readonly name: string;
  readonly content: string;
  /** Files beside it; null or absent for none. */
  readonly files?: FileDigests | null | undefined;
  /** SHA-256 of the stored revision that it was made from, or `NO_REVISION`; null or absent if the request does not say. */
  readonly replaces?: string | null | undefined;
}

/** Current revisions of modules by name, as of one revision of all modules. */
interface HeldHeads {
  /** Value of `MODULES_REVISION`. */
  readonly revision: string | null;
  readonly heads: Map<string, ModuleHead>;
}

/** Maximum number of cached contents; the least recently used is evicted first. */
const CACHE_SIZE = 256;

export class CurrentModules {
  private readonly parser: TextParser;
  private readonly files: Pick<ModuleFiles, 'attach'>;
  private readonly prepared = new Map<string, Prepared>();
  private held: HeldHeads = { revision: null, heads: new Map() };

  constructor({ parser, files }: { readonly parser: TextParser; readonly files: Pick<ModuleFiles, 'attach'> }) {
    this.parser = parser;
    this.files = files;
  }

  /**
   * Returns modules in the order of `names`; sent modules replace stored ones. Throws `module_not_found` for the first missing
   * one.
   * @param revision that of all modules, which the caller has read
   */
  async find(
    db: Queryable,
    names: readonly string[],
    { sent = [], revision }: { readonly sent?: readonly SentModule[]; readonly revision: string | null },
  ): Promise<readonly CurrentModule[]> {
    const own = new Map(sent.map((module) => [module.name, module]));
    const wanted = names.filter((name) => !own.has(name));
    const heads = await this.heads(db, wanted, revision);
    const modules: CurrentModule[] = [];
    for (const name of names) {
      const head = heads.get(name);
      const found = own.get(name) ?? (head === undefined ? null : await this.stored(db, head));
      if (found === null) throw moduleNotFound(name);
      modules.push(found);
    }
    return modules;
  }

  /** Returns those of the modules that exist. @param revision as for `find` */
  async present(db: Queryable, names: readonly string[], revision: string | null): Promise<readonly string[]> {
    const heads = await this.heads(db, names, revision);
    return names.filter((name) => heads.has(name));
  }

  /** Returns at least the current revisions of the modules. Reads them only if the revision of all modules has changed. */
  private async heads(
    db: Queryable,
    names: readonly string[],
    revision: string | null,
  ): Promise<ReadonlyMap<string, ModuleHead>> {
    if (this.held.revision !== revision) this.held = { revision, heads: new Map() };
    const { heads } = this.held;
    if (names.every((name) => heads.has(name))) return heads;
    // Later than `revision`, so what is kept for it is never older than it.
    for (const head of await findModuleHeads(db, names)) heads.set(head.name, head);
    return heads;
  }

  /**
   * Parses texts that came with a request. Throws `invalid_module` with every mistake of the first invalid text, `file_not_found`,
   * or `invalid_body` for a duplicate name.
   */
  async read(sources: readonly ModuleSource[], operatorId: string): Promise<readonly SentModule[]> {
    const modules = new Map<string, SentModule>();
    for (const { name, content, files, replaces } of sources) {
      if (modules.has(name)) throw new Fault('invalid_body', `/sources has the module "${name}" twice`);
      const sha256 = digestOf(content, files ?? {});
      const { positions: _, ...prepared } =
        this.cached(sha256) ?? (await this.parse(name, content, files ?? {}, operatorId));
      requireName(name, prepared.definition);
      const base = replaces == null ? {} : { replaces: replaces === NO_REVISION ? null : replaces };
      modules.set(name, { name, sha256, stored: null, content, ...base, ...prepared });
    }
    return [...modules.values()];
  }

  /** Returns modules whose checked texts are stored beside the modules. */
  async revive(texts: readonly (Source & ModuleText)[]): Promise<readonly SentModule[]> {
    const modules: SentModule[] = [];
    for (const { name, sha256, content, definition, replaces } of texts) {
      const { positions: _, ...prepared } = this.cached(sha256) ?? (await this.prepare(sha256, definition));
      modules.push({ name, sha256, stored: null, content, replaces, ...prepared });
    }
    return modules;
  }

  /** Returns the positions of JSON pointers in the text of the module. */
  async locate(
    db: Queryable,
    module: CurrentModule | SentModule,
    pointers: readonly string[],
  ): Promise<ReadonlyMap<string, Position>> {
    const positions = this.prepared.get(module.sha256)?.positions ?? new Map<string, Position>();
    const missing = pointers.filter((pointer) => !positions.has(pointer));
    const text = missing.length === 0 ? null : await textOf(db, module);
    const found = text === null ? [] : await this.parser.locate(text, missing);
    for (const [index, pointer] of missing.entries()) positions.set(pointer, found[index] ?? { line: 1, column: 1 });
    return positions;
  }

  private async stored(db: Queryable, head: ModuleHead): Promise<CurrentModule> {
    const { name, sha256 } = head;
    const { positions: _, ...prepared } = this.cached(sha256) ?? (await this.load(db, head));
    return { name, sha256, stored: head, ...prepared };
  }

  private cached(sha256: string): Prepared | undefined {
    const known = this.prepared.get(sha256);
    if (known !== undefined) this.keep(sha256, known);
    return known;
  }

  private async load(db: Queryable, { name, revision, sha256 }: ModuleHead): Promise<Prepared> {
    const row = await findModuleRevision(db, name, revision);
    if (row === null) throw moduleNotFound(name);
    return this.prepare(sha256, row.definition);
  }

  private async parse(name: string, content: string, digests: FileDigests, operatorId: string): Promise<Prepared> {
    const files = await this.files.attach(digests);
    const { definition, sha256 } = await checkUpload(this.parser, { name, content, files, operatorId });
    return this.prepare(sha256, definition);
  }

  private async prepare(sha256: string, definition: ModuleDefinition): Promise<Prepared> {
    const compiled = await inSlices(compileSteps({ name: definition.name, definition }));
    const facts = factsRead(compiled);
    const secrets = secretsOf(compiled);
    const prepared = { definition, compiled, secrets, facts, positions: new Map() };
    this.keep(sha256, prepared);
    return prepared;
  }

  private keep(sha256: string, prepared: Prepared): void {
    this.prepared.delete(sha256);
    this.prepared.set(sha256, prepared);
    const [oldest] = this.prepared.keys();
    if (this.prepared.size > CACHE_SIZE && oldest !== undefined) this.prepared.delete(oldest);
  }
}

/** Returns the names of the secrets that a module may need without values from outside. */
const secretsOf = ({ references, inputs }: CompiledModule): ReadonlySet<string> =>
  new Set([
    ...references.flatMap(({ from, name }) => (from === 'secrets' ? [name] : [])),
    ...[...inputs.values()].flatMap(({ standard }) => (standard === undefined ? [] : secretsInValue(standard.value))),
  ]);

async function textOf(db: Queryable, module: CurrentModule | SentModule): Promise<string | null> {
  if ('content' in module) return module.content;
  const { name, stored } = module;
  return stored === null ? null : findModuleText(db, name, stored.revision);
}

export function moduleNotFound(name: string, revision?: number): Fault {
  const which = revision === undefined ? '' : ` with revision ${revision}`;
  return new Fault('module_not_found', `there is no module "${name}"${which}`, {
    hint: 'see what there is: orch module list',
    data: { module: name },
  });
}

/** Returns the positions of JSON pointers in the text of a module. */
type Locate = (module: CurrentModule, pointers: readonly string[]) => Promise<ReadonlyMap<string, Position>>;

type Request = Omit<CompiledRequest, 'modules'> & { readonly modules: readonly CurrentModule[] };

/** Resolves the modules. Throws the faults of `resolve`, with lines and columns. */
export async function resolveLocated({ modules, ...rest }: Request, locate: Locate): Promise<Resolution> {
  try {
    return await inSlices(resolveSteps({ ...rest, modules: modules.map(({ compiled }) => compiled) }));
  } catch (error) {
    if (!isFault(error) || mistakesOf(error).length === 0) throw error;
    // Resolves a second time, because messages name positions: texts are parsed for positions only when there is a mistake.
    const located = await withPlaces(modules, mistakesOf(error), locate);
    try {
      return await inSlices(resolveSteps({ ...rest, modules: located.map(({ compiled }) => compiled) }));
    } catch (again) {
      throw isFault(again) ? withLines(again, located) : again;
    }
  }
}

interface Mistake {
  readonly code: string;
  readonly module: string;
  /** JSON pointer. */
  readonly path: string;
}

const mistakesOf = ({ data }: Fault): readonly Mistake[] => (Array.isArray(data?.mistakes) ? data.mistakes : []);

interface Located extends Pick<CurrentModule, 'name' | 'compiled'> {
  readonly positions: ReadonlyMap<string, Position> | null;
}

/** Adds positions to the modules that a mistake may name. */
async function withPlaces(
  modules: readonly CurrentModule[],
  mistakes: readonly Mistake[],
  locate: Locate,
): Promise<readonly Located[]> {
  const isConflict = mistakes.some(({ code }) => code === 'module_conflict');
  const located: Located[] = [];
  for (const module of modules) {
    const own = mistakes.filter((mistake) => mistake.module === module.name);
    if (own.length === 0 && !isConflict) {
      located.push({ ...module, positions: null });
      continue;
    }
    const { resources, entries } = module.compiled;
    const groups = entries.flatMap(({ repetition }) => (repetition === null ? [] : [repetition.path]));
    const pointers = [...resources.map(({ path }) => path), ...groups, ...own.map(({ path }) => path)];
    const positions = await locate(module, pointers);
    const placeOf = (pointer: string): string => `line ${positions.get(pointer)?.line ?? 1}`;
    located.push({ name: module.name, compiled: { ...module.compiled, placeOf }, positions });
  }
  return located;
}

function withLines(fault: Fault, modules: readonly Located[]): Fault {
  const { code, message, hint, errors = [], data = {}, cause } = fault;
  const mistakes = mistakesOf(fault);
  const placed = errors.map((error, index): FaultDetail => {
    const module = modules.find(({ name }) => name === mistakes[index]?.module);
    return { ...error, ...module?.positions?.get(error.path) };
  });
  return new Fault(code, message, { ...(hint === undefined ? {} : { hint }), errors: placed, data, cause });
}
