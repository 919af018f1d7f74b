/** Reads text from files, standard input and `@FILE`, and creates text files. */
import { accessSync, constants, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { addAbortSignal, type Readable } from 'node:stream';
import { readRegularFile } from '../identity/private-file.js';
import { Fault, messageOf, systemCodeOf } from '../kernel/fault.js';

/** Far more than the API accepts. */
const MAX_BYTES = 8 * 1024 * 1024;

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'does not exist',
  EACCES: 'may not be read by this user',
  EISDIR: 'is a directory',
};

/** Reads a file that the operator named; it may be a pipe. @throws Fault `usage` naming the file */
export const readTextFile = (path: string, maxBytes = MAX_BYTES): string =>
  explained(path, () => decode(readFileSync(path), path, maxBytes));

/** Throws `usage` naming a file or directory that the operator named and that cannot be read; `-` is standard input. */
export function requireFile(path: string): void {
  if (path !== '-') explained(path, () => accessSync(path, constants.R_OK));
}

/** Reads a file found in a directory: a regular file or a link to one. @throws Fault `usage` naming the file */
export const readFoundFile = (path: string): string =>
  explained(path, () => decode(readRegularFile(path, MAX_BYTES), path));

function explained<T>(path: string, read: () => T): T {
  try {
    return read();
  } catch (cause) {
    if (cause instanceof Fault) throw cause;
    const reason = REASONS[systemCodeOf(cause) ?? ''] ?? `cannot be read: ${messageOf(cause)}`;
    throw new Fault('usage', `${path} ${reason}`, { cause });
  }
}

/**
 * Reads a stream to its end.
 * @param name name of the stream in messages
 */
export async function readText(stream: Readable, name: string, signal: AbortSignal): Promise<string> {
  addAbortSignal(signal, stream);
  const parts: Buffer[] = [];
  let length = 0;
  for await (const part of stream) {
    const bytes = Buffer.from(part);
    length += bytes.length;
    if (length > MAX_BYTES) throw new Fault('usage', `${name} holds more than ${MAX_BYTES} bytes`);
    parts.push(bytes);
  }
  return decode(Buffer.concat(parts), name);
}

/** Returns the content of FILE for `@FILE`, standard input for `@-`, and any other text itself. */
export async function readInlineOrFile(text: string, readInput: () => Promise<string>): Promise<string> {
  if (text === '@-') return readInput();
  return text.startsWith('@') ? readTextFile(text.slice(1)) : text;
}

function decode(bytes: Buffer, name: string, maxBytes = MAX_BYTES): string {
  if (bytes.length > maxBytes) throw new Fault('usage', `${name} holds more than ${maxBytes} bytes`);
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (cause) {
    throw new Fault('usage', `${name} is not UTF-8 text`, { cause });
  }
}

/** Creates a text file and its directory. Throws `usage` if the file exists or cannot be written. */
export function createFile(path: string, content: string): void {
  try {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, content, { flag: 'wx' });
  } catch (cause) {
    const there = systemCodeOf(cause) === 'EEXIST';
    const reason = there ? 'is already there and is not overwritten' : `cannot be written: ${messageOf(cause)}`;
    throw new Fault('usage', `${path} ${reason}`, { cause });
  }
}

/**
 * Stores an edited text, and keeps it in a new file of the operator if that fails.
 * @param warn prints where the text is
 */
export async function storeEdited<T>(
  { name, text, warn }: { readonly name: string; readonly text: string; readonly warn: (line: string) => void },
  store: () => Promise<T>,
): Promise<T> {
  try {
    return await store();
  } catch (error) {
    warn(keep(name, text));
    throw error;
  }
}

/** Returns a sentence that says where the text is, or why it is lost. */
function keep(name: string, text: string): string {
  try {
    const path = join(mkdtempSync(join(tmpdir(), 'orch-edit-')), name);
    writeFileSync(path, text, { flag: 'wx', mode: 0o600 });
    return `your text is kept in ${path}`;
  } catch (error) {
    return `your text could not be kept: ${messageOf(error)}`;
  }
}
