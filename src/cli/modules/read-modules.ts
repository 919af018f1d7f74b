/** Modules of files and of the orchestrator: validates them, and compiles them for resolution. */
import type { ApiClient } from '../../client/api-client.js';
import type { Agent } from '../../contract/agents.js';
import type { Assignment } from '../../contract/assignments.js';
import { Fault } from '../../kernel/fault.js';
import type { AgentLabels } from '../../language/clause.js';
import { type CompiledModule, compileModule } from '../../language/compile-module.js';
import type { Position } from '../../language/diagnostic.js';
import { type Diagnostic, moduleFault, renderDiagnostic } from '../../language/diagnostic.js';
import { type FileBeside, type FileDigests, type FindFile, isTextPath } from '../../language/files-beside.js';
import { type ParsedModule, parseModule } from '../../language/parse-module.js';
import type { ModuleDefinition } from '../../language/schema.js';
import { matches, scopedSelector } from '../../language/selector.js';
import { MAX_SOURCE_BYTES } from '../../resources/host.js';
import { count } from '../format.js';
import { type Line, type Style, styled } from '../outcome.js';
import { plainText } from '../render/paint.js';
import { filesBeside } from './files-beside.js';
import { type ModuleFile, readModuleFiles, refuseSameName } from './find-modules.js';

export interface ReadModule {
  readonly name: string;
  /** Path of the file; the module's name for a stored module. */
  readonly path: string;
  readonly definition: ModuleDefinition;
  readonly compiled: CompiledModule;
  /** Warnings of validation. */
  readonly diagnostics: ParsedModule['diagnostics'];
  locate(pointer: string): Position;
}

/** Reads and compiles module files. Throws `usage` for paths, `invalid_module` with all errors of all files. */
export const readModules = (paths: readonly string[]): readonly ReadModule[] =>
  requireValid(readModuleFiles(paths)).map(prepareFile);

export const prepareFile = ({ path, parsed, definition }: ValidFile): ReadModule => prepare(path, parsed, definition);

/** Compiles a stored module. Throws `invalid_module` if this version of orch rejects it. */
function readModule(path: string, source: string, findFile: FindFile): ReadModule {
  const parsed = parseModule(source, findFile);
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

/** A file with its diagnostics. */
export interface CheckedText extends ModuleFile {
  readonly valid: boolean;
  readonly diagnostics: readonly Diagnostic[];
}

export interface CheckedFile extends CheckedText {
  /** Name of the module; null if unreadable. */
  readonly name: string | null;
  readonly parsed: ParsedModule;
}

/** A file with a valid module. */
interface ValidFile extends CheckedFile {
  readonly name: string;
  readonly definition: ModuleDefinition;
  readonly files: FileDigests | undefined;
}

export const checkFiles = (files: readonly ModuleFile[]): readonly CheckedFile[] =>
  files.map((file) => checkText(file, filesBeside(file.path)));

/** @param findFile finds the files beside the module */
export function checkText(file: ModuleFile, findFile: FindFile): CheckedFile {
  const parsed = parseModule(file.source, findFile);
  const { definition, diagnostics } = parsed;
  return { ...file, name: definition?.name ?? null, valid: definition !== null, diagnostics, parsed };
}

/** Renders diagnostics, each with its line and a marker below it. */
export const diagnosticLines = ({ path, source, diagnostics }: CheckedText): readonly Line[] =>
  diagnostics.flatMap((diagnostic) => {
    const [head = '', ...excerpt] = renderDiagnostic(diagnostic, { file: path, source }).split('\n');
    const style: Style = diagnostic.severity === 'error' ? 'bad' : 'warn';
    return [styled(style, head), ...excerpt];
  });

/** Summarises the errors of files in one sentence; null if all files are valid. */
export function summarizeErrors(files: readonly CheckedText[]): string | null {
  const bad = files.filter(({ valid }) => !valid);
  if (bad.length === 0) return null;
  const errors = bad.flatMap(({ diagnostics }) => diagnostics).filter(({ severity }) => severity === 'error').length;
  return `${count(errors, 'error')} in ${bad.length === 1 ? (bad[0]?.path ?? '') : count(bad.length, 'file')}`;
}

/** Returns the modules of files. Throws `invalid_module` with all errors of all files, and `usage` for duplicate names. */
export function requireValid(files: readonly ModuleFile[]): readonly ValidFile[] {
  const checked = checkFiles(files);
  refuseInvalid(checked);
  refuseSameName(checked);
  return validFiles(checked);
}

/** Throws a fault with all errors of all files. @param code `invalid_values` when all files are value sets */
export function refuseInvalid(
  checked: readonly CheckedText[],
  code: 'invalid_module' | 'invalid_values' = 'invalid_module',
): void {
  const message = summarizeErrors(checked);
  if (message !== null) {
    const bad = checked.filter(({ valid }) => !valid);
    const list = bad.flatMap(diagnosticLines).map(plainText);
    throw new Fault(code, `${message}:\n${list.join('\n')}`, {
      hint: 'nothing was done',
      errors: bad
        .flatMap(({ diagnostics }) => diagnostics)
        .filter(({ severity }) => severity === 'error')
        .map(({ path, message, line, column }) => ({ path, message, line, column })),
    });
  }
}

/** Returns the valid files. */
export const validFiles = (checked: readonly CheckedFile[]): readonly ValidFile[] =>
  checked.flatMap((file) => {
    const { definition } = file.parsed;
    return definition === null ? [] : [{ ...file, name: definition.name, definition, files: definition.files }];
  });

/** Current revision of a stored module. */
export type StoredModule = ReadModule & { readonly revision: number };

/** Text that one agent has on trial; no revision has it. */
export type TriedModule = ReadModule & { readonly revision: null };

/** Reads the named modules from the orchestrator, in their order. Skips those that do not exist. */
export async function storedModules(
  api: ApiClient,
  names: Iterable<string>,
  signal: AbortSignal,
): Promise<readonly StoredModule[]> {
  const present = new Set((await api.call('listModules', { signal })).map(({ name }) => name));
  const modules: StoredModule[] = [];
  for (const name of new Set(names)) {
    if (!present.has(name)) continue;
    const { revision, content, files } = await api.call('getModule', {
      params: { name },
      query: { revision: null },
      signal,
    });
    modules.push({ ...readModule(name, content, await storedFiles(api, files, signal)), revision });
  }
  return modules;
}

/** Reads the modules that an agent has on trial; none for an agent without a trial. Older orchestrators know no trials. */
export async function triedModules(
  api: ApiClient,
  { node_id, trial = null }: Pick<Agent, 'node_id' | 'trial'>,
  signal: AbortSignal,
): Promise<readonly TriedModule[]> {
  if (trial === null) return [];
  const { modules } = await api.call('getTrial', { params: { node_id }, signal });
  const tried: TriedModule[] = [];
  for (const { module, content, files } of modules) {
    tried.push({ ...readModule(module, content, await storedFiles(api, files, signal)), revision: null });
  }
  return tried;
}

/** Returns a function that finds the files beside a stored module. Of their contents, only those that the parser needs are read. */
export async function storedFiles(api: ApiClient, files: FileDigests = {}, signal: AbortSignal): Promise<FindFile> {
  const found = new Map<string, FileBeside>();
  for (const [path, sha256] of Object.entries(files)) {
    const { size, data } = await api.call('getFile', {
      params: { sha256 },
      query: { offset: isTextPath(path) ? 0 : MAX_SOURCE_BYTES },
      signal,
    });
    const text = isTextPath(path) ? { text: Buffer.from(data, 'base64').toString('utf8') } : {};
    found.set(path, { sha256, size, ...text });
  }
  return (path) => found.get(path) ?? 'is not stored with the module';
}

/** Replaces each module by the one that the agent has on trial under its name. */
export const withTried = <Module extends ReadModule>(
  modules: readonly Module[],
  tried: readonly TriedModule[],
): readonly (Module | TriedModule)[] => {
  const names = new Set(modules.map(({ name }) => name));
  return [
    ...modules.map((module) => tried.find(({ name }) => name === module.name) ?? module),
    ...tried.filter(({ name }) => !names.has(name)),
  ];
};

/** Returns the assignments that match an agent now, each within its scope. */
export const matchingAssignments = (all: readonly Assignment[], agent: AgentLabels): readonly Assignment[] =>
  all.filter(({ selector, scope }) => matches(scopedSelector(selector, scope), agent));
