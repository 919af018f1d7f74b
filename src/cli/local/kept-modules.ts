/**
 * Checked modules of `--local`, kept in its data directory by hash of their text and of the rules that checked them, and the
 * last resolution. Parsing takes longer than the rest of a run that changes nothing, and resolving a fifth of what is left
 * (benchmark rows "no-op apply --local").
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
import { canonicalJson } from '../../kernel/json.js';
import type { AgentFacts } from '../../language/evaluate.js';
import type { FileDigests } from '../../language/files-beside.js';
import { RULES_VERSION } from '../../language/rules-version.js';
import type { ModuleDefinition } from '../../language/schema.js';
import type { DesiredResource } from '../../resources/desired.js';
import { filesBeside } from '../modules/files-beside.js';
import type { ModuleFile } from '../modules/find-modules.js';

const DIRECTORY = 'modules';
/** Entry of the last resolution. */
const RESOLUTION = 'resolution';
/** Maximum number of modules, and of their bytes together. The oldest make room for new ones. */
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

/** The inputs of a resolution. */
export interface ResolutionInput {
  /** The modules, in their order. */
  readonly files: readonly ModuleFile[];
  readonly facts: AgentFacts;
  /** Texts that give inputs their values. */
  readonly values: unknown;
}

/** A resolution without secrets and warnings. */
export interface KeptResolution {
  /** Files beside the modules that have some, by the path of the module. */
  readonly beside?: Readonly<Record<string, FileDigests>>;
  /** Names of the modules. */
  readonly modules: readonly string[];
  readonly resources: readonly DesiredResource[];
}

/** Returns the kept definition of a module, or null. Files beside it that have changed make it another module. */
export function findKept(dataDir: string, { path, source }: ModuleFile): ModuleDefinition | null {
  const name = nameOf(source);
  const definition = readEntry(dataDir, name, name);
  return isDefinition(definition) && areSame(path, definition.files) ? definition : null;
}

/** Returns true if the files beside a module have these digests. */
function areSame(modulePath: string, files: FileDigests = {}): boolean {
  const find = filesBeside(modulePath);
  return Object.entries(files).every(([path, sha256]) => {
    const file = find(path);
    return typeof file === 'object' && file.sha256 === sha256;
  });
}

/** Keeps modules for later runs. A failure only makes those slower, so it is ignored. */
export const keepModules = (dataDir: string, modules: readonly CheckedModule[]): void =>
  writeEntries(
    dataDir,
    modules.map(({ source, definition }) => ({ name: nameOf(source), subject: nameOf(source), value: definition })),
  );

/** Returns the last resolution if it had the same input, else null. */
export function findResolution(dataDir: string, input: ResolutionInput): KeptResolution | null {
  const resolution = readEntry(dataDir, RESOLUTION, subjectOf(input));
  if (!isResolution(resolution)) return null;
  return Object.entries(resolution.beside ?? {}).every(([path, files]) => areSame(path, files)) ? resolution : null;
}

/** Keeps a resolution for later runs, in place of the one before. A failure is ignored. */
export const keepResolution = (dataDir: string, input: ResolutionInput, value: KeptResolution): void =>
  writeEntries(dataDir, [{ name: RESOLUTION, subject: subjectOf(input), value }]);

/** Returns the value of an entry if it is about that subject; null for an entry in any other condition. */
function readEntry(dataDir: string, name: string, subject: string): unknown {
  try {
    const directory = join(dataDir, DIRECTORY);
    if (!isOurs(lstatSync(directory))) return null;
    const text = readOwn(join(directory, name));
    const body = text.slice(DIGEST_LENGTH);
    return text.slice(0, DIGEST_LENGTH) === digestOf(subject, body) ? JSON.parse(body) : null;
  } catch {
    return null;
  }
}

interface Entry {
  readonly name: string;
  /** Hash of what the value belongs to. */
  readonly subject: string;
  readonly value: unknown;
}

function writeEntries(dataDir: string, entries: readonly Entry[]): void {
  if (entries.length === 0) return;
  const directory = join(dataDir, DIRECTORY);
  try {
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    if (!isOurs(lstatSync(directory))) return;
    for (const entry of entries) writeEntry(directory, entry);
    removeOldest(directory);
  } catch {
    // The next run parses and resolves again.
  }
}

/** Replaces an entry. It is not flushed to the disk, because its digest reveals a part that is missing after a crash. */
function writeEntry(directory: string, { name, subject, value }: Entry): void {
  const body = JSON.stringify(value);
  const temporary = join(directory, `${name}.new`);
  rmSync(temporary, { force: true, recursive: true });
  rmSync(join(directory, name), { force: true, recursive: true });
  writeFileSync(temporary, digestOf(subject, body) + body, { mode: 0o600, flag: 'wx' });
  renameSync(temporary, join(directory, name));
}

/** Removes what is no entry, and the oldest entries beyond the limits. */
function removeOldest(directory: string): void {
  const files = readdirSync(directory).map((name) => ({ name, stats: lstatSync(join(directory, name)) }));
  files.sort((a, b) => b.stats.mtimeMs - a.stats.mtimeMs);
  let entries = 0;
  let bytes = 0;
  for (const { name, stats } of files) {
    if (name === RESOLUTION && stats.isFile()) continue;
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

function subjectOf({ files, facts, values }: ResolutionInput): string {
  const own = canonicalJson({ facts, values });
  const hash = createHash('sha256').update(`${LAYOUT}\0${RULES_VERSION}\0${own}`);
  for (const { source } of files) hash.update(`\0${Buffer.byteLength(source)}\0`).update(source);
  return hash.digest('hex');
}

/** Includes the subject, so an entry under the name of another one is damaged. */
const digestOf = (subject: string, body: string): string =>
  createHash('sha256').update(`${subject}\0`).update(body).digest('hex');

const isResolution = (value: unknown): value is KeptResolution =>
  typeof value === 'object' && value !== null && 'modules' in value && 'resources' in value;

const isDefinition = (value: unknown): value is ModuleDefinition =>
  typeof value === 'object' && value !== null && 'name' in value && typeof value.name === 'string';
