/** Modules sent to the orchestrator: those that a plan or apply names with -m and -f, and those that are published. */
import type { ApiClient, SuccessBody } from '../../client/api-client.js';
import type { OneOffTexts } from '../../contract/one-off-values.js';
import { PLAN_BODY_BYTES } from '../../contract/runs.js';
import { Fault, isFault } from '../../kernel/fault.js';
import type { FileDigests } from '../../language/files-beside.js';
import type { Context } from '../context.js';
import { formatBytes } from '../format.js';
import { list } from '../options.js';
import { sendFiles } from './files-beside.js';
import { type ModuleFile, readModuleFiles } from './find-modules.js';
import { type OneOffChoice, oneOffBody, readOneOff } from './one-off-values.js';

export const moduleOptions = {
  module: list('MODULE', 'an uploaded module', { short: 'm', completes: 'module' }),
  file: list('FILE', 'a module file, or a directory of them', { short: 'f', completes: 'file' }),
} as const;

export interface ModuleChoice {
  readonly module: readonly string[];
  readonly file: readonly string[];
}

export interface NamedFile extends ModuleFile {
  /** Name of the module. */
  readonly name: string;
  /** Files beside the module; absent for none. */
  readonly files?: FileDigests | undefined;
  /** SHA-256 of the stored revision that it may replace when it is published, or `NO_REVISION`; absent for the current one. */
  readonly replaces?: string;
}

/** Warnings about a file. */
interface Warned {
  readonly diagnostics: readonly { readonly line: number; readonly column: number; readonly message: string }[];
}

export interface RunModules {
  /** Names of -m, then those of -f, without duplicates. */
  readonly names: readonly string[];
  /** Files of -f, which the orchestrator may not have yet. */
  readonly files: readonly NamedFile[];
  /** Values for this run alone; null for none. */
  readonly values: OneOffTexts | null;
}

/** Reads the modules of -m and -f and the values, and prints the warnings of files. Sends nothing. Throws `usage`, or `invalid_module` with all errors. */
export async function chooseModules(
  context: Context,
  { module, file, ...own }: ModuleChoice & OneOffChoice,
): Promise<RunModules> {
  const values = readOneOff(own);
  const files = file.length === 0 ? [] : await validated(readModuleFiles(file));
  for (const { path, diagnostics } of files) {
    for (const { line, column, message } of diagnostics) context.warn(`${path}:${line}:${column}: ${message}`);
  }
  return { names: [...new Set([...module, ...files.map(({ name }) => name)])], files, values };
}

/** Returns the files with the names of their modules. Throws `invalid_module`. The parser is loaded only for files. */
export async function validated(files: readonly ModuleFile[]): Promise<readonly (NamedFile & Warned)[]> {
  const { requireValid } = await import('./read-modules.js');
  return requireValid(files);
}

/** Returns the modules of a plan request. Throws `body_too_large`. */
export function planBody({ names, files, values }: RunModules) {
  const modules = [...names];
  const own = oneOffBody(values);
  if (files.length === 0) return { modules, ...own };
  const sources = files.map(sourceOf);
  requireRoom({ modules, sources, ...own });
  return { modules, sources, ...own };
}

/** Returns the modules of a request that applies. A text replaces only the revision that it was compared with. Throws `body_too_large`. */
export function applyModulesBody({ names, files, values }: RunModules) {
  const modules = [...names];
  const own = oneOffBody(values);
  if (files.length === 0) return { modules, ...own };
  const sources = files.map((file) => ({
    ...sourceOf(file),
    ...(file.replaces === undefined ? {} : { replaces: file.replaces }),
  }));
  requireRoom({ modules, sources, ...own });
  return { modules, sources, ...own };
}

const sourceOf = ({ name, source, files }: NamedFile) => ({
  name,
  content: source,
  ...(files === undefined ? {} : { files: { ...files } }),
});

function requireRoom(body: object): void {
  const bytes = Buffer.byteLength(JSON.stringify(body));
  if (bytes <= PLAN_BODY_BYTES) return;
  const message = `these files make a request of ${formatBytes(bytes)}, and one request takes at most ${formatBytes(PLAN_BODY_BYTES)}`;
  throw new Fault('body_too_large', message, {
    hint: 'take fewer of them at a time, or publish them with orch module publish and name them with -m',
  });
}

/** Returns the SHA-256 of a module's current revision; null if there is no such module. */
export async function currentDigest({ signal }: Context, api: ApiClient, name: string): Promise<string | null> {
  try {
    const { revisions } = await api.call('listModuleRevisions', { params: { name }, signal });
    return revisions[0]?.sha256 ?? null;
  } catch (error) {
    if (isFault(error, 'module_not_found')) return null;
    throw error;
  }
}

export type Uploaded = SuccessBody<'uploadModule'> & { readonly path: string };

interface FileToUpload {
  readonly path: string;
  readonly source: string;
  /** Name of the module. */
  readonly name: string;
  readonly files?: FileDigests | undefined;
  /** SHA-256 of the revision that it replaces, or `NO_REVISION`. */
  readonly replaces: string;
}

/** Uploads a module and prints its warnings. Throws `precondition_failed` if another revision is current. */
export async function uploadFile(context: Context, api: ApiClient, file: FileToUpload): Promise<Uploaded> {
  const uploaded = await sendModule(context, api, file);
  for (const { line, column, message } of uploaded.warnings) {
    context.warn(`${file.path}:${line}:${column}: ${message}`);
  }
  return uploaded;
}

async function sendModule(context: Context, api: ApiClient, file: FileToUpload): Promise<Uploaded> {
  const { signal } = context;
  const { path, replaces } = file;
  await sendFiles(context, api, [file]);
  const body = { ...sourceOf(file), replaces };
  const answer = await api.call('uploadModule', { body, signal }).catch((error: unknown) => {
    throw naming(path, error);
  });
  return { ...answer, path };
}

/** Adds the file name to the orchestrator's `invalid_module` fault. */
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
