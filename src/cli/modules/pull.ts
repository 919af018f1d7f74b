/** Writes stored modules to files, with the files beside them, as they were published. */
import { createHash } from 'node:crypto';
import { lstatSync, mkdirSync, realpathSync } from 'node:fs';
import { dirname, join, sep } from 'node:path';
import type { ApiClient } from '../../client/api-client.js';
import { replaceFile } from '../../disk/durable.js';
import { readRegularFile } from '../../identity/private-file.js';
import { Fault, messageOf, systemCodeOf } from '../../kernel/fault.js';
import { problemOfPath } from '../../language/files-beside.js';
import { isListPath, readList } from '../../language/trees.js';
import { MAX_SOURCE_BYTES } from '../../resources/host.js';
import type { Context } from '../context.js';

export interface PullOptions {
  readonly names: readonly string[];
  /** Directory that gets the files; it is made where it is missing. */
  readonly out: string;
  /** Null for the current revisions. */
  readonly revision: number | null;
}

export interface Pulled {
  readonly name: string;
  readonly revision: number;
  /** Path of the module's file. */
  readonly path: string;
  /** False if everything was there already. */
  readonly changed: boolean;
}

/** A file of a module. */
interface Wanted {
  /** Relative to the directory, with `/`. */
  readonly path: string;
  /** In hex. */
  readonly sha256: string;
  /** The content, unless it is still to be downloaded. */
  readonly content: Buffer | null;
  readonly isProgram: boolean;
}

/** Writes nothing if a file is there with other content. Throws `usage`, which names it. */
export async function pullModules(
  context: Context,
  api: ApiClient,
  { names, out, revision }: PullOptions,
): Promise<readonly Pulled[]> {
  const wanted = new Map<string, Wanted>();
  const directories = new Set<string>();
  const pulled: (Omit<Pulled, 'changed'> & { readonly paths: readonly string[] })[] = [];
  for (const name of new Set(names)) {
    const stored = await api.call('getModule', { params: { name }, query: { revision }, signal: context.signal });
    const path = `${stored.name}.orch.yaml`;
    const content = Buffer.from(stored.content);
    const beside = await filesOf(context, api, stored.files ?? {});
    const files = [...beside.files, { path, sha256: hashOf(content), content, isProgram: false }];
    for (const file of files) {
      const other = wanted.get(file.path);
      if (other !== undefined && other.sha256 !== file.sha256) {
        throw new Fault('usage', `the modules have different files ${file.path}`, {
          hint: 'pull each into a directory of its own: --out DIR',
        });
      }
      wanted.set(file.path, file);
    }
    for (const directory of beside.directories) directories.add(directory);
    pulled.push({
      name: stored.name,
      revision: stored.revision,
      path: join(out, path),
      paths: files.map((file) => file.path),
    });
  }
  explained(out, () => mkdirSync(out, { recursive: true }));
  const root = realpathSync(out);
  const missing = new Set([...wanted.values()].filter((file) => !isThere(root, file)).map(({ path }) => path));
  for (const path of directories) explained(path, () => makeDirectory(root, path));
  for (const file of wanted.values()) {
    if (!missing.has(file.path)) continue;
    const content = file.content ?? (await download(context, api, file));
    explained(file.path, () => {
      makeDirectory(root, dirname(file.path));
      replaceFile(join(root, file.path), content, { mode: (file.isProgram ? 0o777 : 0o666) & ~process.umask() });
    });
  }
  return pulled.map(({ paths, ...module }) => ({ ...module, changed: paths.some((path) => missing.has(path)) }));
}

/** Returns the files beside a module, and the directories that it takes as a whole. */
async function filesOf(
  context: Context,
  api: ApiClient,
  digests: Readonly<Record<string, string>>,
): Promise<{ readonly files: readonly Wanted[]; readonly directories: readonly string[] }> {
  const directories: string[] = [];
  const programs = new Set<string>();
  for (const [path, sha256] of Object.entries(digests)) {
    if (!isListPath(path)) continue;
    const directory = requirePlain(path.slice(0, -1));
    directories.push(directory);
    const entries = readList((await download(context, api, { path, sha256 })).toString());
    if (entries === null) throw damaged(path);
    for (const entry of entries) {
      const inside = requirePlain(`${directory}/${entry.path}`);
      if (entry.type === 'directory') directories.push(inside);
      if (entry.type === 'program') programs.add(inside);
    }
  }
  const files = Object.entries(digests)
    .filter(([path]) => !isListPath(path))
    .map(([path, sha256]) => ({
      path: requirePlain(path),
      sha256,
      content: null,
      isProgram: programs.has(path),
    }));
  return { files, directories };
}

/** Returns a path that stays below the directory. The orchestrator could name any. */
function requirePlain(path: string): string {
  const problem = problemOfPath(path);
  if (problem === null) return path;
  throw new Fault('usage', `the module has a file ${JSON.stringify(path)}, whose path ${problem}`);
}

/** Downloads a file. Throws `file_damaged` unless it has its hash. */
async function download(
  { signal }: Context,
  api: ApiClient,
  { path, sha256 }: Pick<Wanted, 'path' | 'sha256'>,
): Promise<Buffer> {
  const parts: Buffer[] = [];
  for (let offset = 0, size = 1; offset < size; ) {
    const part = await api.call('getFile', { params: { sha256 }, query: { offset }, signal });
    const bytes = Buffer.from(part.data, 'base64');
    size = Math.min(part.size, MAX_SOURCE_BYTES + 1);
    offset += bytes.length;
    parts.push(bytes);
    if (bytes.length === 0) break;
  }
  const content = Buffer.concat(parts);
  if (hashOf(content) !== sha256) throw damaged(path);
  return content;
}

const damaged = (path: string): Fault =>
  new Fault('file_damaged', `the orchestrator has another file ${path} than it says`);

/** True for a file with the same content. Throws `usage` for anything else in its place. */
function isThere(root: string, { path, sha256, isProgram }: Wanted): boolean {
  const place = join(root, path);
  const stats = explained(path, () => lstatSync(place, { throwIfNoEntry: false }));
  if (stats === undefined) return false;
  const isSame = stats.isFile() && explained(path, () => hashOf(readRegularFile(place, MAX_SOURCE_BYTES))) === sha256;
  if (!isSame) {
    throw new Fault('usage', `${path} is already there with other content, so nothing was written`, {
      hint: 'see the difference: orch module diff FILE; or pull into another directory: --out DIR',
    });
  }
  return !isProgram || (stats.mode & 0o100) !== 0;
}

/** Makes a directory below the root. Throws an Error for a link that leads out. */
function makeDirectory(root: string, path: string): void {
  let place = root;
  for (const part of path.split('/').filter((part) => part !== '.')) {
    place = join(place, part);
    mkdirSync(place, { recursive: true });
    const real = realpathSync(place);
    if (!real.startsWith(root.endsWith(sep) ? root : `${root}${sep}`)) {
      throw new Error('a link on the way leads out of the directory');
    }
  }
}

function explained<T>(path: string, act: () => T): T {
  try {
    return act();
  } catch (cause) {
    if (cause instanceof Fault) throw cause;
    const reason = REASONS[systemCodeOf(cause) ?? ''] ?? messageOf(cause);
    throw new Fault('usage', `${path} cannot be written: ${reason}`, { cause });
  }
}

const REASONS: Readonly<Record<string, string>> = {
  EACCES: 'permission denied',
  EEXIST: 'a file is there',
  ENOTDIR: 'a part of the path is no directory',
  ENOSPC: 'no space left on the disk',
  EROFS: 'the file system is read-only',
};

const hashOf = (content: Uint8Array): string => createHash('sha256').update(content).digest('hex');
