/** Files of JSON lines that only grow: what was added is on the disk, and half a line after a crash does no harm. */
import { closeSync, fsyncSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { Fault, messageOf, systemCodeOf } from '../../kernel/fault.js';

/** On the disk when it returns. Throws `disk_full` and the like. */
export function appendLines(path: string, values: readonly unknown[]): void {
  try {
    const descriptor = openSync(path, 'a', 0o600);
    try {
      // A crash or a full disk may have left half a line, which a line end sets apart.
      writeFileSync(descriptor, values.map((value) => `\n${JSON.stringify(value)}`).join(''));
      fsyncSync(descriptor);
    } finally {
      closeSync(descriptor);
    }
    syncDirectory(dirname(path));
  } catch (cause) {
    throw notWritten(path, cause);
  }
}

/** None when there is no file. Leaves out what is no whole line: whoever wrote it never got to rely on it. */
export function readLines(path: string): readonly unknown[] {
  return textOf(path).split('\n').flatMap(parse);
}

function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (cause) {
    if (systemCodeOf(cause) === 'ENOENT') return '';
    throw new Fault('data_dir_invalid', `${path} cannot be read: ${messageOf(cause)}`, { cause });
  }
}

function parse(line: string): readonly unknown[] {
  try {
    return [JSON.parse(line)];
  } catch {
    return [];
  }
}

/** The name of a new file is kept by its directory. */
function syncDirectory(path: string): void {
  if (process.platform === 'win32') return;
  const descriptor = openSync(path, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

function notWritten(path: string, cause: unknown): Fault {
  const system = systemCodeOf(cause);
  const code = system === 'ENOSPC' || system === 'EDQUOT' ? 'disk_full' : system === 'EROFS' ? 'read_only' : 'internal';
  return new Fault(code, `${path} cannot be written: ${messageOf(cause)}`, { cause });
}
