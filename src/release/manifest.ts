/** The manifest of a release: the sums of its files, as `sha256sum --check` reads them. */
import { readFileSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { Fault, messageOf } from '../kernel/fault.js';
import { sha256OfFile } from './package-sums.js';

/** Files of a release that its manifest does not list. */
const UNLISTED = ['MANIFEST', 'MANIFEST.sig'];

/**
 * Checks that a release has exactly the files of its manifest, with their contents. Does not check the signature.
 * @throws Fault `package_invalid` with the first file that differs
 */
export async function requireIntact(directory: string): Promise<void> {
  const listed = new Map(
    readManifest(directory)
      .toString('utf8')
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => [line.slice(66), line.slice(0, 64)]),
  );
  for (const path of await filesOf(directory)) {
    const name = relative(directory, path);
    if (UNLISTED.includes(name)) continue;
    const sum = listed.get(name);
    if (sum === undefined) throw damaged(path, 'is not in the manifest');
    if (sum !== (await sha256OfFile(path))) throw damaged(path, 'differs from the manifest');
    listed.delete(name);
  }
  const [missing] = listed.keys();
  if (missing !== undefined) throw damaged(join(directory, missing), 'is missing');
}

/** Returns the manifest. Throws `package_invalid` when it cannot be read. */
export function readManifest(directory: string): Buffer {
  const path = join(directory, 'MANIFEST');
  try {
    return readFileSync(path);
  } catch (cause) {
    throw damaged(path, `cannot be read: ${messageOf(cause)}`, cause);
  }
}

async function filesOf(directory: string): Promise<readonly string[]> {
  const found: string[] = [];
  for (const entry of await readdir(directory, { withFileTypes: true })) {
    const path = join(directory, entry.name);
    if (entry.isDirectory()) found.push(...(await filesOf(path)));
    else if (entry.isFile()) found.push(path);
    else throw damaged(path, 'is no regular file');
  }
  return found;
}

const damaged = (path: string, what: string, cause?: unknown): Fault =>
  new Fault('package_invalid', `${path} ${what}`, { hint: 'install this release again', cause });
