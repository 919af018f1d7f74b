/** The current revisions of modules, prepared for resolution once for each content. */
import { Fault } from '../../src/kernel/fault.js';
import { type CompiledModule, compileModule } from '../../src/language/compile-module.js';
import { parseModule } from '../../src/language/parse-module.js';
import type { ModuleDefinition } from '../../src/language/schema.js';
import { secretNames } from '../../src/language/secret-names.js';
import type { Position } from '../../src/language/text-lines.js';
import { findModuleHeads, findModuleRevision, type ModuleHead } from '../store/modules.js';
import type { Queryable } from '../store/queryable.js';

interface Prepared {
  readonly definition: ModuleDefinition;
  readonly compiled: CompiledModule;
  /** Names of the secrets that it may need. */
  readonly secrets: ReadonlySet<string>;
  /** Places that were asked for, by JSON pointer. */
  readonly positions: Map<string, Position>;
}

export interface CurrentModule extends ModuleHead, Omit<Prepared, 'positions'> {}

/** Contents kept at a time; the least recently used goes first. */
const CACHE_SIZE = 256;

export class CurrentModules {
  private readonly prepared = new Map<string, Prepared>();

  /** In the order of the names. Throws `module_not_found` for the first that is not there. */
  async find(db: Queryable, names: readonly string[]): Promise<readonly CurrentModule[]> {
    const heads = new Map((await findModuleHeads(db, names)).map((head) => [head.name, head]));
    const modules: CurrentModule[] = [];
    for (const name of names) {
      const head = heads.get(name);
      if (head === undefined) throw moduleNotFound(name);
      modules.push({ ...head, ...(this.recall(head.sha256) ?? (await this.prepare(db, head))) });
    }
    return modules;
  }

  /** Where a JSON pointer into the definition stands in the text that was uploaded. */
  async locate(db: Queryable, module: ModuleHead, pointer: string): Promise<Position> {
    const positions = this.prepared.get(module.sha256)?.positions ?? new Map<string, Position>();
    const known = positions.get(pointer);
    if (known !== undefined) return known;
    const row = await findModuleRevision(db, module.name, module.revision);
    const position = row === null ? { line: 1, column: 1 } : parseModule(row.content).locate(pointer);
    positions.set(pointer, position);
    return position;
  }

  private recall(sha256: string): Prepared | undefined {
    const known = this.prepared.get(sha256);
    if (known !== undefined) this.keep(sha256, known);
    return known;
  }

  private async prepare(db: Queryable, { name, revision, sha256 }: ModuleHead): Promise<Prepared> {
    const row = await findModuleRevision(db, name, revision);
    if (row === null) throw moduleNotFound(name);
    const definition: ModuleDefinition = JSON.parse(row.definition_json);
    const compiled = compileModule({ name, definition });
    const prepared = { definition, compiled, secrets: secretNames(definition), positions: new Map() };
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

export function moduleNotFound(name: string, revision?: number): Fault {
  const which = revision === undefined ? '' : ` with revision ${revision}`;
  return new Fault('module_not_found', `there is no module "${name}"${which}`, {
    hint: 'see what there is: orch module list',
    data: { module: name },
  });
}
