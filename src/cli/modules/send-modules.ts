/** The modules that a plan or an apply names: stored ones of `-m`, and files of `-f`, which only an apply stores. */
import type { ApiClient, SuccessBody } from '../../client/api-client.js';
import { PLAN_BODY_BYTES } from '../../contract/runs.js';
import { Fault, isFault } from '../../kernel/fault.js';
import type { Context } from '../context.js';
import { list } from '../define-command.js';
import { formatBytes } from '../format.js';
import { type ModuleFile, readModuleFiles, requireValid } from './read-modules.js';

export const moduleOptions = {
  module: list('MODULE', 'a module that is uploaded already', { short: 'm', completes: 'module' }),
  file: list('FILE', 'a module file, or a directory of them', { short: 'f', completes: 'file' }),
} as const;

export interface ModuleChoice {
  readonly module: readonly string[];
  readonly file: readonly string[];
}

export interface NamedFile extends ModuleFile {
  /** The name of the module. */
  readonly name: string;
}

export interface RunModules {
  /** Those of `-m` first, then those of `-f`, each once. */
  readonly names: readonly string[];
  /** Modules that the orchestrator need not have in this form. */
  readonly files: readonly NamedFile[];
}

/** Prints the warnings of the files. Throws `usage` for paths, `invalid_module` with every mistake of every file. Nothing is sent. */
export function chooseModules(context: Context, { module, file }: ModuleChoice): RunModules {
  const files = file.length === 0 ? [] : requireValid(readModuleFiles(file));
  for (const { path, diagnostics } of files) {
    for (const { line, column, message } of diagnostics) context.warn(`${path}:${line}:${column}: ${message}`);
  }
  return { names: [...new Set([...module, ...files.map(({ name }) => name)])], files };
}

/** The part of a plan's body that names its modules. Throws `body_too_large`, and tells another way. */
export function planBody({ names, files }: RunModules) {
  const modules = [...names];
  if (files.length === 0) return { modules };
  const sources = files.map(({ name, source }) => ({ name, content: source }));
  const bytes = Buffer.byteLength(JSON.stringify({ modules, sources }));
  if (bytes <= PLAN_BODY_BYTES) return { modules, sources };
  const message = `these files make a request of ${formatBytes(bytes)}, and a plan takes at most ${formatBytes(PLAN_BODY_BYTES)}`;
  throw new Fault('body_too_large', message, {
    hint: 'plan fewer of them at a time, or upload them with orch module push and name them with -m',
  });
}

/** Uploads the files of an apply. */
export async function storeModules(context: Context, api: ApiClient, { files }: RunModules): Promise<void> {
  for (const file of files) await sendModule(context, api, file);
}

/** The digest of a module's current revision; null when there is no such module. */
export async function currentDigest({ signal }: Context, api: ApiClient, name: string): Promise<string | null> {
  try {
    const { revisions } = await api.call('listModuleRevisions', { params: { name }, signal });
    return revisions[0]?.sha256 ?? null;
  } catch (error) {
    if (isFault(error, 'module_not_found')) return null;
    throw error;
  }
}

/** Uploads module files. */
export type Uploaded = SuccessBody<'uploadModule'> & { readonly path: string };

/** Nothing is sent unless every file is valid. */
export async function uploadFiles(
  context: Context,
  api: ApiClient,
  files: readonly ModuleFile[],
): Promise<readonly Uploaded[]> {
  const uploaded: Uploaded[] = [];
  for (const { path, source, name } of requireValid(files)) {
    uploaded.push(await uploadFile(context, api, { path, source, name }));
  }
  return uploaded;
}

interface FileToUpload {
  readonly path: string;
  readonly source: string;
  /** The name of the module. */
  readonly name: string;
}

/** Prints the warnings. */
export async function uploadFile(context: Context, api: ApiClient, file: FileToUpload): Promise<Uploaded> {
  const uploaded = await sendModule(context, api, file);
  for (const { line, column, message } of uploaded.warnings) {
    context.warn(`${file.path}:${line}:${column}: ${message}`);
  }
  return uploaded;
}

export async function sendModule(
  { signal }: Context,
  api: ApiClient,
  { path, source, name }: FileToUpload,
): Promise<Uploaded> {
  const body = { name, content: source };
  const answer = await api.call('uploadModule', { body, signal }).catch((error: unknown) => {
    throw naming(path, error);
  });
  return { ...answer, path };
}

/** What the orchestrator refuses is told with the file that it refuses. */
function naming(path: string, error: unknown): unknown {
  if (!isFault(error, 'invalid_module')) return error;
  const { code, message, hint, errors = [], data = {} } = error;
  return new Fault(code, `${path}: ${message}`, {
    ...(hint === undefined ? {} : { hint }),
    errors,
    data,
    cause: error,
  });
}
