/** Uploads modules, and names those that a run is to use. */
import type { ApiClient } from '../../client/api-client.js';
import type { SuccessBody } from '../../client/request.js';
import { Fault, isFault } from '../../kernel/fault.js';
import type { Context } from '../context.js';
import { list } from '../option.js';
import { requireValid } from './check-files.js';
import { readModuleFiles } from './module-files.js';

export const moduleOptions = {
  module: list('MODULE', 'a module that is uploaded already', { short: 'm', completes: 'module' }),
  file: list('FILE', 'a module file, or a directory of them, to upload first', { short: 'f', completes: 'file' }),
} as const;

export interface ModuleChoice {
  readonly module: readonly string[];
  readonly file: readonly string[];
}

export type Uploaded = SuccessBody<'uploadModule'> & { readonly path: string };

/** Nothing is sent unless every file is valid. */
export async function uploadFiles(
  context: Context,
  api: ApiClient,
  paths: readonly string[],
): Promise<readonly Uploaded[]> {
  const uploaded: Uploaded[] = [];
  for (const { path, source, name } of requireValid(readModuleFiles(paths))) {
    uploaded.push(await uploadFile(context, api, { path, source, name }));
  }
  return uploaded;
}

export async function uploadFile(
  context: Context,
  api: ApiClient,
  { path, source, name }: { readonly path: string; readonly source: string; readonly name: string },
): Promise<Uploaded> {
  const body = { name, content: source };
  const answer = await api.call('uploadModule', { body, signal: context.signal }).catch((error: unknown) => {
    throw naming(path, error);
  });
  for (const { line, column, message } of answer.warnings) context.warn(`${path}:${line}:${column}: ${message}`);
  return { ...answer, path };
}

/** The names for a run, files uploaded: those of `-m` first, then those of `-f`, each once. */
export async function modulesFor(context: Context, api: ApiClient, choice: ModuleChoice): Promise<string[]> {
  const uploaded = choice.file.length === 0 ? [] : await uploadFiles(context, api, choice.file);
  return [...new Set([...choice.module, ...uploaded.map(({ name }) => name)])];
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
