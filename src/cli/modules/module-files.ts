/** Finds the module files that paths mean. */
import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { Fault, messageOf, systemCodeOf } from '../../kernel/fault.js';
import { flag } from '../option.js';
import { readFoundFile, readTextFile } from '../read-text.js';

export interface ModuleFile {
  /** As the person wrote it, or below what they wrote. */
  readonly path: string;
  readonly source: string;
}

export const ENDING = '.orch.yaml';

/**
 * A file is taken whatever its name; of a directory, every `*.orch.yaml` at any depth, in the order of their paths, or with
 * `anyYaml` every `*.yaml` and `*.yml`.
 * Throws `usage` for a path that is not there or holds no module.
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

/** Takes other files of a directory too; for commands that take modules as they come. */
export const anyYamlOption = flag('of a directory, take every *.yaml and *.yml file, not only *.orch.yaml');

/**
 * Every file at any depth, in the order of their paths. Hidden directories are nobody's place for modules. Throws `usage` for
 * a link to a directory: what lies behind it would be left out, and so count as given up.
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

/** Throws `usage` for a path that is not there. */
export function isDirectory(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch (cause) {
    if (systemCodeOf(cause) === 'ENOENT') throw new Fault('usage', `there is no file or directory ${path}`, { cause });
    throw new Fault('usage', `${path} cannot be read: ${messageOf(cause)}`, { cause });
  }
}
