/** Files beside module files on this machine: finds them for the parser, and sends those that the orchestrator lacks. */
import { createHash } from 'node:crypto';
import { closeSync, constants, fstatSync, openSync, readFileSync, realpathSync } from 'node:fs';
import { dirname, join, sep } from 'node:path';
import type { ApiClient } from '../../client/api-client.js';
import { Fault, isFault, messageOf, systemCodeOf } from '../../kernel/fault.js';
import { type FileDigests, type FindFile, isTextPath } from '../../language/files-beside.js';
import { isListPath, listOf } from '../../language/trees.js';
import { MAX_CONTENT_BYTES, MAX_SOURCE_BYTES } from '../../resources/host.js';
import type { Context } from '../context.js';
import { formatBytes } from '../format.js';
import { type Line, styled } from '../outcome.js';
import { entriesBelow } from './tree-beside.js';

/** Returns a function that finds the files beside the module in this file. A link must not lead out of the directory. */
export const filesBeside =
  (modulePath: string): FindFile =>
  (path) => {
    try {
      const bytes = readBeside(modulePath, path);
      const found = { sha256: createHash('sha256').update(bytes).digest('hex'), size: bytes.length };
      if (!isTextPath(path)) return found;
      if (bytes.length > MAX_CONTENT_BYTES) {
        return isListPath(path)
          ? TOO_MANY
          : `is larger than ${MAX_CONTENT_BYTES} bytes, the most that a template may have`;
      }
      return { ...found, text: new TextDecoder('utf-8', { fatal: true }).decode(bytes) };
    } catch (error) {
      return error instanceof TypeError ? 'is not UTF-8 text' : messageOf(error);
    }
  };

const A_DIRECTORY = 'is a directory, not a file; directory-unix takes a whole directory as its source';
const TOO_MANY = `holds too many files with long names; pack them, and give the machine an address for them`;

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'does not exist beside the module',
  ENOTDIR: 'does not exist beside the module',
  EACCES: 'may not be read by this user',
  ELOOP: 'is a link that leads nowhere',
};

/** Returns the path on this machine. Throws an Error that says why the file cannot be used. */
function placeOf(modulePath: string, path: string): string {
  const directory = realpathSync(dirname(modulePath));
  const place = realpathSync(join(directory, path));
  if (!place.startsWith(directory.endsWith(sep) ? directory : `${directory}${sep}`)) {
    throw new Error('is a link that leads out of the directory of the module');
  }
  return place;
}

function readBeside(modulePath: string, path: string): Buffer {
  try {
    if (isListPath(path)) return Buffer.from(listOf(entriesBelow(placeOf(modulePath, path.slice(0, -1)))));
    const descriptor = openSync(placeOf(modulePath, path), constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
    try {
      const stats = fstatSync(descriptor);
      if (!stats.isFile()) throw new Error(stats.isDirectory() ? A_DIRECTORY : 'is no regular file');
      if (stats.size > MAX_SOURCE_BYTES) throw new Error(`is larger than ${formatBytes(MAX_SOURCE_BYTES)}`);
      return readFileSync(descriptor);
    } finally {
      closeSync(descriptor);
    }
  } catch (error) {
    const reason = REASONS[systemCodeOf(error) ?? ''];
    throw reason === undefined ? error : new Error(reason, { cause: error });
  }
}

/** A file beside a module that differs between two revisions; null for one that a revision lacks. */
export interface FileDifference {
  readonly path: string;
  /** SHA-256 in hex. */
  readonly before: string | null;
  readonly after: string | null;
}

/** Returns the files that differ, by path. */
export function differingFiles(before: FileDigests = {}, after: FileDigests = {}): readonly FileDifference[] {
  return [...new Set([...Object.keys(before), ...Object.keys(after)])]
    .sort()
    .map((path) => ({ path, before: before[path] ?? null, after: after[path] ?? null }))
    .filter((one) => one.before !== one.after);
}

/** Returns a line for each file that differs. */
export const fileDifferenceLines = (files: readonly FileDifference[]): readonly Line[] =>
  files.map(({ path, before, after }) => {
    if (before === null) return styled('good', `+ ${path}`);
    return after === null ? styled('bad', `- ${path}`) : styled('warn', `~ ${path}`);
  });

/** A module whose files may have to be sent. */
export interface ModuleWithFiles {
  /** Path of the module's file. */
  readonly path: string;
  readonly files?: FileDigests | undefined;
}

/** Bytes of a part; the contract has the same number, which comes with schemas that no command needs. */
const PART = 1024 * 1024;
/** Bytes from which on a note says that a file is sent. */
const NOTED = 4 * 1024 * 1024;

/** Sends the files beside modules that the orchestrator lacks, each once. Throws `usage` for a file that is no longer as it was. */
export async function sendFiles(context: Context, api: ApiClient, modules: readonly ModuleWithFiles[]): Promise<void> {
  const sent = new Set<string>();
  for (const { path: modulePath, files = {} } of modules) {
    for (const [path, sha256] of Object.entries(files)) {
      if (sent.has(sha256)) continue;
      sent.add(sha256);
      await sendFile(context, api, { modulePath, path, sha256 });
    }
  }
}

interface FileToSend {
  readonly modulePath: string;
  readonly path: string;
  readonly sha256: string;
}

async function sendFile(context: Context, api: ApiClient, file: FileToSend): Promise<void> {
  const { signal } = context;
  const { path, sha256 } = file;
  if (await isStored(context, api, sha256)) return;
  const bytes = readSame(file);
  const { length: size } = bytes;
  if (size >= NOTED) context.note(`Sending ${path} (${formatBytes(size)})`);
  const upload = (offset: number, data: Buffer) =>
    api.call('uploadFile', { params: { sha256 }, body: { size, offset, data: data.toString('base64') }, signal });
  let { received } = await upload(0, bytes.subarray(0, 0));
  while (received < size) {
    const before = received;
    ({ received } = await upload(received, bytes.subarray(received, received + PART)));
    // Another client may send the same file at the same time, but no part is taken back.
    if (received <= before) throw new Fault('internal', `the orchestrator does not take more of ${path}`);
  }
}

/** Returns true if the orchestrator has the file. */
async function isStored({ signal }: Context, api: ApiClient, sha256: string): Promise<boolean> {
  try {
    const query = { offset: MAX_SOURCE_BYTES };
    await api.call('getFile', { params: { sha256 }, query, signal });
    return true;
  } catch (error) {
    if (isFault(error, 'file_not_found')) return false;
    if (!isFault(error, 'not_found')) throw error;
    throw new Fault('usage', 'this orchestrator is too old to take files beside modules', {
      hint: 'upgrade it, or write the content into the module',
    });
  }
}

/** Reads the file as it was when the module was read. Throws `usage`. */
function readSame({ modulePath, path, sha256 }: FileToSend): Buffer {
  const gone = (why: string, cause?: unknown) =>
    new Fault('usage', `the file ${path} beside ${modulePath} ${why}`, {
      hint: 'do it again with the module and its files in their places',
      cause,
    });
  let bytes: Buffer;
  try {
    bytes = readBeside(modulePath, path);
  } catch (cause) {
    throw gone(messageOf(cause), cause);
  }
  if (createHash('sha256').update(bytes).digest('hex') !== sha256) throw gone('has changed since it was read');
  return bytes;
}
