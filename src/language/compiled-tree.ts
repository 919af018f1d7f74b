/** Directories beside a module, prepared once for all agents: the bodies of the files and directories that come from them. */
import type { Body } from '../resources/kind.js';
import { parseMode } from '../resources/unix/unix-permissions.js';
import type { FileDigests } from './files-beside.js';
import type { KnownKind } from './kind-set.js';
import { readList, type TreeEntry } from './trees.js';

/** A directory beside a module. */
export interface CompiledTree {
  /** Path in the module. */
  readonly source: string;
  readonly entries: readonly (TreeEntry & { readonly sha256: string | null })[];
  readonly fileKind: KnownKind;
  /** The bodies of the entries by that of their directory, which agents share. */
  readonly bodies: WeakMap<Body, TreeBodies>;
}

interface TreeBodies {
  /** Body of the directory itself, as agents take it. */
  readonly own: Body;
  readonly entries: readonly { readonly kind: 'file' | 'directory'; readonly body: Body }[];
}

/** Modes of files for which a module gives none; those of programs follow. */
const FILE_MODE = '0644';

/** Prepares a directory beside a module. Returns null when the definition has no sound list of it. */
export function compileTree(
  source: string,
  list: string | undefined,
  { files, fileKind }: { readonly files: FileDigests; readonly fileKind: KnownKind },
): CompiledTree | null {
  const entries = list === undefined ? null : readList(list);
  if (entries === null) return null;
  const digested = entries.map((entry) => ({ ...entry, sha256: files[`${source}/${entry.path}`] ?? null }));
  if (digested.some(({ type, sha256 }) => type !== 'directory' && sha256 === null)) return null;
  return { source, entries: digested, fileKind, bodies: new WeakMap() };
}

/** Returns the bodies for that of a directory. */
export function bodiesFor(tree: CompiledTree, body: Body): TreeBodies {
  const known = tree.bodies.get(body);
  if (known !== undefined) return known;
  const made = bodiesOf(tree, body);
  tree.bodies.set(body, made);
  return made;
}

function bodiesOf({ source, entries }: CompiledTree, body: Body): TreeBodies {
  const { source: _, file_mode: fileMode, ...own } = body;
  const { path, parents: __, mode, ...shared } = own;
  const { purge: ___, ...owners } = shared;
  const modeOfFile = typeof fileMode === 'string' ? fileMode : FILE_MODE;
  const modeOfProgram = runnable(modeOfFile);
  return {
    own,
    entries: entries.map(({ type, path: name, sha256 }) => {
      const at = `${String(path)}/${name}`;
      if (type === 'directory') {
        return { kind: 'directory', body: { path: at, ...shared, ...(mode !== undefined && { mode }) } };
      }
      const content = { source: `${source}/${name}`, sha256 };
      return {
        kind: 'file',
        body: { path: at, ...content, ...owners, mode: type === 'program' ? modeOfProgram : modeOfFile },
      };
    }),
  };
}

/** Returns a mode that also lets all those run a file who may read it. */
function runnable(mode: string): string {
  const bits = parseMode(mode);
  return (bits | ((bits & 0o444) >> 2)).toString(8).padStart(mode.length, '0');
}
