/** Finds the module files that paths mean. */
import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { Fault, messageOf, systemCodeOf } from '../../kernel/fault.js';
import { readFoundFile, readTextFile } from '../read-text.js';

export interface ModuleFile {
  /** As the person wrote it, or below what they wrote. */
  readonly path: string;
  readonly source: string;
}

export const ENDING = '.orch.yaml';

/**
 * A file is taken whatever its name; of a directory, every `*.orch.yaml` at any depth, in the order of their paths.
 * Throws `usage` for a path that is not there or holds no module.
 */
export function readModuleFiles(paths: readonly string[]): readonly ModuleFile[] {
  const files = new Map(paths.flatMap(filesOf));
  return [...files].map(([path, read]) => ({ path, source: read(path) }));
}

type Reader = (path: string) => string;

function filesOf(path: string): readonly (readonly [string, Reader])[] {
  if (!isDirectory(path)) return [[path, readTextFile]];
  const found = filesBelow(path).filter((file) => file.endsWith(ENDING));
  if (found.length === 0) throw new Fault('usage', `${path} holds no file that ends in ${ENDING}`);
  return found.map((file) => [file, readFoundFile]);
}

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
