/** Uploads module files. */
import type { ApiClient } from '../../client/api-client.js';
import type { SuccessBody } from '../../client/request.js';
import { Fault, isFault } from '../../kernel/fault.js';
import type { Context } from '../context.js';
import { requireValid } from './check-files.js';
import type { ModuleFile } from './module-files.js';

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
