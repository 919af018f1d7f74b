/** Module files: finds and reads them, without the parser. */
import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { Fault, messageOf, systemCodeOf } from '../../kernel/fault.js';
import { flag } from '../options.js';
import { readFoundFile, readTextFile } from '../text-files.js';

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

/** Throws `usage` for files that hold modules of the same name. */
export function refuseSameName(files: readonly { readonly name: string | null; readonly path: string }[]): void {
  for (const [index, { name, path }] of files.entries()) {
    const before = files.slice(0, index).find((other) => other.name === name);
    if (before) throw new Fault('usage', `${before.path} and ${path} both hold the module "${name}"`);
  }
}
