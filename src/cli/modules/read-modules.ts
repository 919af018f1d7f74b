/** Module files that are valid, prepared for resolution, with the places of everything in them. */
import { type CompiledModule, compileModule } from '../../language/compile-module.js';
import { moduleFault } from '../../language/module-fault.js';
import { type ParsedModule, parseModule } from '../../language/parse-module.js';
import type { ModuleDefinition } from '../../language/schema.js';
import type { Position } from '../../language/text-lines.js';
import { requireValid, type ValidFile } from './check-files.js';
import { readModuleFiles } from './module-files.js';

export interface ReadModule {
  readonly name: string;
  /** The file, or what stands for it. */
  readonly path: string;
  readonly definition: ModuleDefinition;
  readonly compiled: CompiledModule;
  /** Warnings of validation. */
  readonly diagnostics: ParsedModule['diagnostics'];
  locate(pointer: string): Position;
}

/** Throws `usage` for paths, `invalid_module` with every mistake of every file. */
export const readModules = (paths: readonly string[]): readonly ReadModule[] =>
  requireValid(readModuleFiles(paths)).map(prepareFile);

export const prepareFile = ({ path, parsed, definition }: ValidFile): ReadModule => prepare(path, parsed, definition);

/** A text that the orchestrator has accepted. Throws `invalid_module` when this version does not. */
export function readModule(path: string, source: string): ReadModule {
  const parsed = parseModule(source);
  if (parsed.definition !== null) return prepare(path, parsed, parsed.definition);
  throw moduleFault(path, parsed.diagnostics);
}

function prepare(path: string, { diagnostics, locate }: ParsedModule, definition: ModuleDefinition): ReadModule {
  const { name } = definition;
  const placeOf = (pointer: string): string => {
    const { line, column } = locate(pointer);
    return `${path}:${line}:${column}`;
  };
  const compiled = { ...compileModule({ name, definition }), placeOf };
  return { name, path, definition, compiled, diagnostics, locate };
}
