/** Module files: finds, reads and validates them, and compiles them for resolution. */

import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { ApiClient } from '../../client/api-client.js';
import type { Agent } from '../../contract/agents.js';
import type { Assignment } from '../../contract/assignments.js';
import { Fault, messageOf, systemCodeOf } from '../../kernel/fault.js';
import { type CompiledModule, compileModule } from '../../language/compile-module.js';
import type { Position } from '../../language/diagnostic.js';
import { type Diagnostic, moduleFault, renderDiagnostic } from '../../language/diagnostic.js';
import { type ParsedModule, parseModule } from '../../language/parse-module.js';
import type { ModuleDefinition } from '../../language/schema.js';
import { matches, parseSelector } from '../../language/selector.js';
import { flag } from '../define-command.js';
import { count } from '../format.js';
import { type Line, type Style, styled } from '../outcome.js';
import { plainText } from '../render/paint.js';
import { readFoundFile, readTextFile } from '../text-files.js';

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
function readModule(path: string, source: string): ReadModule {
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

export interface ModuleFile {
  /** Path as typed, or below the typed directory. */
  readonly path: string;
  readonly source: string;
}

export const ENDING = '.orch.yaml';

/**
 * Reads module files. Takes any named file; of a directory, each `*.orch.yaml` at any depth, ordered by path, or with
 * `anyYaml` each `*.yaml` and `*.yml`.
 * Throws `usage` for a path that does not exist or contains no module.
 */
export function readModuleFiles(paths: readonly string[], { anyYaml = false } = {}): readonly ModuleFile[] {
  const files = new Map(paths.flatMap((path) => filesOf(path, anyYaml)));
  return [...files].map(([path, read]) => ({ path, source: read(path) }));
}

type Reader = (path: string) => string;

const YAML = /\.ya?ml$/;

function filesOf(path: string, anyYaml: boolean): readonly (readonly [string, Reader])[] {
  if (!isDirectory(path)) return [[path, readTextFile]];
  const all = filesBelow(path);
  const found = all.filter((file) => (anyYaml ? YAML.test(file) : file.endsWith(ENDING)));
  if (found.length === 0) throw noModules(path, all, anyYaml);
  return found.map((file) => [file, readFoundFile]);
}

function noModules(path: string, files: readonly string[], anyYaml: boolean): Fault {
  if (anyYaml) return new Fault('usage', `${path} holds no file that ends in .yaml or .yml`);
  const other = files.find((file) => YAML.test(file));
  const hint = `name the files themselves, or take every .yaml and .yml file of the directory with --any-yaml where the command has it: ${other}`;
  return new Fault('usage', `${path} holds no file that ends in ${ENDING}`, other === undefined ? {} : { hint });
}

/** Option to take all YAML files of a directory. */
export const anyYamlOption = flag('of a directory, take every *.yaml and *.yml file, not only *.orch.yaml');

/**
 * Returns all files at any depth, ordered by path, without hidden directories. Throws `usage` for
 * a link to a directory: its files would be skipped, and a sync would count them as deleted.
 */
export function filesBelow(directory: string): readonly string[] {
  const entries = readdirSync(directory, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1));
  return entries.flatMap((entry) => {
    const path = join(directory, entry.name);
    if (entry.isDirectory()) return entry.name.startsWith('.') ? [] : filesBelow(path);
    if (entry.isSymbolicLink() && !entry.name.startsWith('.')) refuseHiding(path);
    return [path];
  });
}

function refuseHiding(link: string): void {
  const hint = 'put the directory itself there, or name it beside this one where several may be named';
  if (!existsSync(link)) throw new Fault('usage', `${link} is a link to nothing`, { hint: 'mend it or delete it' });
  if (isDirectory(link)) {
    throw new Fault('usage', `${link} is a link to a directory, and what lies behind it would be left out`, { hint });
  }
}

/** Returns whether a path is a directory. Throws `usage` if it does not exist. */
export function isDirectory(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch (cause) {
    if (systemCodeOf(cause) === 'ENOENT') throw new Fault('usage', `there is no file or directory ${path}`, { cause });
    throw new Fault('usage', `${path} cannot be read: ${messageOf(cause)}`, { cause });
  }
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
}

export const checkFiles = (files: readonly ModuleFile[]): readonly CheckedFile[] =>
  files.map((file) => {
    const parsed = parseModule(file.source);
    const { definition, diagnostics } = parsed;
    return { ...file, name: definition?.name ?? null, valid: definition !== null, diagnostics, parsed };
  });

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

/** Throws `invalid_module` with all errors of all files. */
export function refuseInvalid(checked: readonly CheckedText[]): void {
  const message = summarizeErrors(checked);
  if (message !== null) {
    const bad = checked.filter(({ valid }) => !valid);
    const list = bad.flatMap(diagnosticLines).map(plainText);
    throw new Fault('invalid_module', `${message}:\n${list.join('\n')}`, {
      hint: 'nothing was done',
      errors: bad.flatMap(({ diagnostics }) =>
        diagnostics.map(({ path, message, line, column }) => ({ path, message, line, column })),
      ),
    });
  }
}

/** Returns the valid files. */
export const validFiles = (checked: readonly CheckedFile[]): readonly ValidFile[] =>
  checked.flatMap((file) => {
    const { definition } = file.parsed;
    return definition === null ? [] : [{ ...file, name: definition.name, definition }];
  });

function refuseSameName(files: readonly CheckedFile[]): void {
  for (const [index, { name, path }] of files.entries()) {
    const before = files.slice(0, index).find((other) => other.name === name);
    if (before) throw new Fault('usage', `${before.path} and ${path} both hold the module "${name}"`);
  }
}

/** Current revision of a stored module. */
export type StoredModule = ReadModule & { readonly revision: number };

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
    const { revision, content } = await api.call('getModule', { params: { name }, query: { revision: null }, signal });
    modules.push({ ...readModule(name, content), revision });
  }
  return modules;
}

/** Returns the assignments whose selector matches an agent now. */
export const matchingAssignments = (all: readonly Assignment[], agent: Agent): readonly Assignment[] =>
  all.filter(({ selector }) => matches(parseSelector(selector), agent));
