/** Creates a text file of the person's own, never over another. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { Fault, messageOf, systemCodeOf } from '../../kernel/fault.js';

/** Makes its directory too. Throws `usage` when the file is there or cannot be written. */
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
