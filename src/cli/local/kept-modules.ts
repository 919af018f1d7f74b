/**
 * Checked modules of `--local`, kept in its data directory by hash of their text and of the rules that checked them. Parsing
 * takes longer than the rest of a run that changes nothing (benchmark rows "no-op apply --local").
 *
 * Root acts on what an entry says, so only the owner may have written it, and it carries a digest. An entry in any other
 * condition counts as absent and is written again.
 */
import { createHash } from 'node:crypto';
import {
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  type Stats,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { RULES_VERSION } from '../../language/rules-version.js';
import type { ModuleDefinition } from '../../language/schema.js';

const DIRECTORY = 'modules';
/** Maximum number of entries, and of their bytes together. The oldest make room for new ones. */
export const KEPT = { entries: 256, bytes: 64 * 1024 * 1024 } as const;
const ENTRY = /^[0-9a-f]{64}$/;
const DIGEST_LENGTH = 64;
/** Version of an entry's layout. */
const LAYOUT = 1;

/** A valid module and its text. */
interface CheckedModule {
  readonly source: string;
  readonly definition: ModuleDefinition;
}

/** Returns the kept definition of a module text, or null. */
export function findKept(dataDir: string, source: string): ModuleDefinition | null {
  const name = nameOf(source);
  try {
    const directory = join(dataDir, DIRECTORY);
    if (!isOurs(lstatSync(directory))) return null;
    const text = readOwn(join(directory, name));
    const body = text.slice(DIGEST_LENGTH);
    if (text.slice(0, DIGEST_LENGTH) !== digestOf(name, body)) return null;
    const definition: unknown = JSON.parse(body);
    return isDefinition(definition) ? definition : null;
  } catch {
    return null;
  }
}

/** Keeps modules for later runs. A failure only makes those slower, so it is ignored. */
export function keepModules(dataDir: string, modules: readonly CheckedModule[]): void {
  const directory = join(dataDir, DIRECTORY);
  try {
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    if (!isOurs(lstatSync(directory))) return;
    for (const { source, definition } of modules) keepOne(directory, nameOf(source), JSON.stringify(definition));
    removeOldest(directory);
  } catch {
    // The next run parses again.
  }
}

/** Replaces an entry. It is not flushed to the disk, because its digest reveals a part that is missing after a crash. */
function keepOne(directory: string, name: string, body: string): void {
  const temporary = join(directory, `${name}.new`);
  rmSync(temporary, { force: true, recursive: true });
  rmSync(join(directory, name), { force: true, recursive: true });
  writeFileSync(temporary, digestOf(name, body) + body, { mode: 0o600, flag: 'wx' });
  renameSync(temporary, join(directory, name));
}

/** Removes what is no entry, and the oldest entries beyond the limits. */
function removeOldest(directory: string): void {
  const files = readdirSync(directory).map((name) => ({ name, stats: lstatSync(join(directory, name)) }));
  files.sort((a, b) => b.stats.mtimeMs - a.stats.mtimeMs);
  let entries = 0;
  let bytes = 0;
  for (const { name, stats } of files) {
    const isEntry = ENTRY.test(name) && stats.isFile();
    if (isEntry) {
      entries += 1;
      bytes += stats.size;
    }
    if (!isEntry || entries > KEPT.entries || bytes > KEPT.bytes) {
      rmSync(join(directory, name), { force: true, recursive: true });
    }
  }
}

function readOwn(path: string): string {
  const descriptor = openSync(path, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0));
  try {
    const stats = fstatSync(descriptor);
    if (!stats.isFile() || !isOurs(stats) || stats.size > KEPT.bytes) throw new Error('the entry is of another owner');
    return readFileSync(descriptor, 'utf8');
  } finally {
    closeSync(descriptor);
  }
}

/** Returns whether this user owns it and no other user has access. Windows has neither owners nor modes of this kind. */
const isOurs = ({ uid, mode }: Stats): boolean =>
  process.geteuid === undefined || (uid === process.geteuid() && (mode & 0o077) === 0);

const nameOf = (source: string): string =>
  createHash('sha256').update(`${LAYOUT}\0${RULES_VERSION}\0${source}`).digest('hex');

/** Includes the name, so an entry under the name of another one is damaged. */
const digestOf = (name: string, body: string): string =>
  createHash('sha256').update(`${name}\0`).update(body).digest('hex');

const isDefinition = (value: unknown): value is ModuleDefinition =>
  typeof value === 'object' && value !== null && 'name' in value && typeof value.name === 'string';
