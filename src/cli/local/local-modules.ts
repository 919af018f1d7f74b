/** The modules of a local run: kept ones, and parsed ones that are kept for later runs. The parser is loaded only if needed. */
import { type CompiledModule, compileModule } from '../../language/compile-module.js';
import type { Diagnostic, Position } from '../../language/diagnostic.js';
import type { FileDigests } from '../../language/files-beside.js';
import { type ModuleFile, refuseSameName } from '../modules/find-modules.js';
import { findKept, keepModules } from './kept-modules.js';

export interface LocalModule extends ModuleFile {
  readonly name: string;
  /** Files beside the module; absent for none. */
  readonly files: FileDigests | undefined;
  readonly compiled: CompiledModule;
  /** Warnings of validation; none for a kept module. */
  readonly diagnostics: readonly Diagnostic[];
  /** Returns the place of a JSON pointer; null for a kept module, whose text is not parsed. */
  readonly locate: ((pointer: string) => Position) | null;
}

/** Compiles module files. Throws `usage` for equal names, `invalid_module` with all errors of all files. */
export async function localModules(dataDir: string, files: readonly ModuleFile[]): Promise<readonly LocalModule[]> {
  const kept = new Map(files.map((file) => [file, findKept(dataDir, file)]));
  const missing = files.filter((file) => kept.get(file) === null);
  const parsed = missing.length === 0 ? [] : await parse(missing);
  const read = files.map((file): LocalModule => {
    const definition = kept.get(file);
    if (definition === undefined || definition === null) return parsedAt(parsed, file.path);
    const { name, files: beside } = definition;
    const compiled = compileModule({ name, definition });
    return { ...file, name, files: beside, compiled, diagnostics: [], locate: null };
  });
  refuseSameName(read);
  // Each run says the warnings of a module, so one with warnings is parsed each time.
  keepModules(
    dataDir,
    parsed.filter(({ diagnostics }) => diagnostics.length === 0),
  );
  return read;
}

/** Returns the modules with their places: parses those that were kept. */
export async function allParsed(modules: readonly LocalModule[]): Promise<readonly LocalModule[]> {
  const kept = modules.filter(({ locate }) => locate === null);
  if (kept.length === 0) return modules;
  const parsed = await parse(kept);
  return modules.map((module) => (module.locate === null ? parsedAt(parsed, module.path) : module));
}

async function parse(files: readonly ModuleFile[]) {
  const { prepareFile, requireValid } = await import('../modules/read-modules.js');
  return requireValid(files).map((file) => ({ ...prepareFile(file), source: file.source, files: file.files }));
}

function parsedAt<T extends { readonly path: string }>(modules: readonly T[], path: string): T {
  const found = modules.find((module) => module.path === path);
  if (found === undefined) throw new Error(`${path} was not parsed`);
  return found;
}
