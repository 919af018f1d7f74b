/** Repositories of packages: a file that defines one, and the file of its key. */
import type { CommandRefusal, CommandResult } from '../command.js';
import { withLines } from '../command.js';
import { fileUnix } from '../file-unix.js';
import { type Host, type PathFact, READ_BATCH, type RunStep, type Step } from '../host.js';
import {
  type BodyProblem,
  type Decision,
  defineResource,
  type FieldChange,
  type PlanContext,
  type ReadPurpose,
  type ResourceKind,
} from '../kind.js';
import { parentOf } from '../unix/unix-path.js';
import { checkKey, type KeyBody, keyContent } from './repository-key.js';

export interface RepositoryBody extends KeyBody {
  readonly name: string;
  readonly enabled?: boolean | null;
}

/** The parts in which the managers differ. */
export interface RepositoryManager<B extends RepositoryBody> {
  readonly kind: `repository-${string}`;
  readonly manager: string;
  readonly schema: ResourceKind['schema'];
  /** Members of the body, all of which are in the file. */
  readonly members: readonly (keyof B & string)[];
  check(body: B): readonly BodyProblem[];
  /** Returns the file that defines a repository. */
  fileOf(name: string): string;
  /** Returns the content of that file. @param key path of the key; null for none */
  contentOf(body: B, key: string | null): string;
  /** Returns the places where the key of a repository may be that a module gives. */
  keyFiles(name: string): readonly string[];
  /** Returns the one where the key of a body comes. */
  keyFileOf(body: B): string;
  /** Files of all repositories: single ones, and directories with the endings of names. */
  readonly sources: { readonly files: readonly string[]; readonly directory: string; readonly endings: RegExp };
  /**
   * Returns the step that reads a repository before its file is put into place.
   * @param newKey file of a key that goes again if that fails; null for none
   */
  proof(name: string, content: string, newKey: string | null): RunStep;
}

export interface RepositoryHave {
  readonly file: PathFact;
  /** The file of the wanted key; null if the body gives none. */
  readonly key: PathFact | null;
  /** Keys in places of this repository that it no longer needs. */
  readonly spare: readonly SpareKey[];
}

interface SpareKey {
  readonly path: string;
  /** Files of other repositories that use it, or that could not be read. */
  readonly users: readonly string[];
}

const LAST: PathFact = { type: 'unreadable', code: 'observe_failed', message: 'the file was not read' };
const OWNED = { owner: 'root', group: 'root' } as const;

/** Defines the resource kind of a manager. */
export function defineRepository<B extends RepositoryBody>(
  manager: RepositoryManager<B>,
): ResourceKind<B, RepositoryHave> {
  const keyPath = (body: B) => (keyContent(body) === null ? (body.key_file ?? null) : manager.keyFileOf(body));
  const keyBody = (body: B) => {
    const content = keyContent(body);
    return content === null ? null : { path: manager.keyFileOf(body), ...content, ...OWNED, mode: '0644' };
  };
  const fileBody = (body: B, isSensitive: boolean) => ({
    path: manager.fileOf(body.name),
    content: manager.contentOf(body, keyPath(body)),
    ...OWNED,
    mode: isSensitive ? '0600' : '0644',
  });

  return defineResource<B, RepositoryHave>({
    kind: manager.kind,
    family: 'path',
    platforms: ['linux'],
    schema: manager.schema,
    check: (body) => [...manager.check(body), ...checkKey(body)],
    identity: ({ name }) => manager.fileOf(name),
    requires: (body) => {
      const key = keyPath(body);
      const paths = [parentOf(manager.fileOf(body.name)), ...(key === null ? [] : [parentOf(key), key])];
      return paths.map((identity) => ({ family: 'path', identity }) as const);
    },
    clash(body, { body: holder }) {
      const key = keyContent(body) === null ? null : manager.keyFileOf(body);
      if (key === null || holder.path !== key) return null;
      return `its key goes to the same file; write key_file: ${key} in place of the key`;
    },
    batch: READ_BATCH,
    // A renamed repository: apt refuses two definitions of the same source that name different keys.
    obstacles: (_host, _wants, removals) => removals.filter(({ kind }) => kind === manager.kind),
    read: (host, wants, purpose) => read(host, wants, purpose, { manager, keyBody }),
    exists: ({ file }) => file.type !== 'absent',

    plan(want, have, context): Decision {
      const file = fileBody(want, context.sensitive);
      const defined = fileUnix.plan(file, have.file, context);
      const keyed = keyPlan(keyBody(want), have.key, context);
      for (const part of [keyed, defined]) if (part.action === 'fail') return part;
      const spare = have.spare.filter(({ path, users }) => users.length === 0 && !context.declares('path', path));
      const parts = [keyed, defined].flatMap((part) => ('steps' in part ? [part] : []));
      if (parts.length === 0 && spare.length === 0) return { action: 'none' };
      const [key, own] = [keyed, defined].map((part) => ('steps' in part ? part : null));
      const isRead = parts.some(({ steps }) => steps.some((step) => step.do === 'write-file'));
      const newKey = have.key?.type === 'absent' ? keyPath(want) : null;
      const proof = isRead && want.enabled !== false ? [manager.proof(want.name, file.content, newKey)] : [];
      const makes = [...new Set(parts.flatMap((part) => part.makes ?? []))];
      return {
        action: own?.action === 'create' ? 'create' : 'update',
        changes: [
          ...keyChanges(
            key?.changes ?? [],
            manager.keyFileOf(want),
            spare.map(({ path }) => path),
          ),
          ...(own?.changes ?? []),
        ],
        ...(own?.text ? { text: own.text } : {}),
        // The repository is read before it is defined: what cannot be read would make every later use of the manager fail.
        steps: [
          ...(key?.steps ?? []),
          ...proof,
          ...(own?.steps ?? []),
          ...spare.map(({ path }): Step => ({ do: 'remove-file', path })),
        ],
        ...(own?.reason === undefined ? {} : { reason: own.reason }),
        ...(makes.length === 0 ? {} : { makes }),
      };
    },

    planRemoval(last, { file, spare }, context): Decision {
      const removal = fileUnix.planRemoval({ path: manager.fileOf(last.name) }, file, context);
      if (removal.action === 'fail' || removal.action === 'release') return removal;
      const usersOf = ({ users }: SpareKey) => users.filter((path) => !context.removes('path', path));
      const unused = spare.filter((key) => usersOf(key).length === 0 && !context.declares('path', key.path));
      const kept = spare.find((key) => usersOf(key).length > 0);
      const keys = unused.map(({ path }): Step => ({ do: 'remove-file', path }));
      const steps = [...('steps' in removal ? removal.steps : []), ...keys];
      if (steps.length === 0) return { action: 'none' };
      const reason = kept && `its key ${kept.path} stays, because ${usersOf(kept).join(', ')} may use it`;
      return { action: 'remove', changes: [], steps, ...(reason === undefined ? {} : { reason }) };
    },

    inseparable: manager.members,
    explain: (_host, { name }, step, result) => explain(manager.manager, name, step, result),
  });
}

/** Plans the file of a key. Directories that give way to the file of the repository are none of its business. */
function keyPlan(
  key: (Parameters<typeof fileUnix.plan>[0] & object) | null,
  have: PathFact | null,
  context: PlanContext,
): Decision {
  if (key === null) return { action: 'none' };
  return fileUnix.plan(key, have ?? LAST, { ...context, cleared: [] });
}

/**
 * Names the changes of a key apart from those of the file that defines the repository. A new key takes the place of a spare one.
 * @param path file of the key
 * @param spare files of keys that are removed
 */
function keyChanges(changes: readonly FieldChange[], path: string, spare: readonly string[]): readonly FieldChange[] {
  const isNew = changes.length > 0 && changes.every(({ before }) => before === null);
  const [earlier = null, ...others] = isNew ? spare : [null, ...spare];
  const named = changes.map(({ field, before, after }) =>
    field === 'content'
      ? { field: 'key', before: before ?? (isNew ? earlier : 'another key'), after: after ?? path }
      : { field: `key_${field}`, before, after },
  );
  const isNamed = !isNew || named.some(({ field }) => field === 'key');
  return [
    ...(isNamed ? [] : [{ field: 'key', before: earlier, after: path }]),
    ...named,
    ...others.map((gone) => ({ field: 'key', before: gone, after: null })),
  ];
}

interface Reading<B extends RepositoryBody> {
  readonly manager: RepositoryManager<B>;
  readonly keyBody: (body: B) => Parameters<typeof fileUnix.plan>[0] | null;
}

async function read<B extends RepositoryBody>(
  host: Host,
  wants: readonly B[],
  purpose: ReadPurpose,
  { manager, keyBody }: Reading<B>,
): Promise<readonly RepositoryHave[]> {
  const paths = wants.map(({ name }) => manager.fileOf(name));
  const files = host.observe(paths.map((path) => ({ path, content: true, entries: false })));
  const keys = purpose === 'removal' ? wants.map(() => null) : wants.map(keyBody);
  const given = keys.filter((key) => key !== null);
  const seen = given.length === 0 ? [] : await fileUnix.read(host, given, purpose);
  const spare = spareKeys(host, wants, files, { manager, keys: keys.map((key) => key?.path ?? null) });
  return wants.map((_, at): RepositoryHave => {
    const key = keys[at] ?? null;
    const file = files[at] ?? LAST;
    return { file, key: key === null ? null : (seen[given.indexOf(key)] ?? LAST), spare: spare[at] ?? [] };
  });
}

/** Returns the keys in places of each repository that its file names, or that its body gave, and that it no longer needs. */
function spareKeys<B extends RepositoryBody>(
  host: Host,
  wants: readonly B[],
  files: readonly PathFact[],
  { manager, keys }: { readonly manager: RepositoryManager<B>; readonly keys: readonly (string | null)[] },
): readonly (readonly SpareKey[])[] {
  const candidates = wants.map((want, at) => {
    const text = textOf(files[at]);
    const places = manager.keyFiles(want.name).filter((path) => path !== keys[at] && path !== want.key_file);
    const own = keyContent(want) === null ? null : manager.keyFileOf(want);
    return places.filter((path) => path === own || (text !== null && namesPath(text, path)));
  });
  const all = candidates.flat();
  if (all.length === 0) return wants.map(() => []);
  const facts = host.observe(all.map((path) => ({ path, content: false, entries: false })));
  const there = new Set(all.filter((_, at) => facts[at]?.type === 'file'));
  if (there.size === 0) return wants.map(() => []);
  const sources = sourcesOf(host, manager.sources);
  return candidates.map((places, at) =>
    places
      .filter((path) => there.has(path))
      .map((path) => ({
        path,
        users: sources
          .filter(([source]) => source !== manager.fileOf(wants[at]?.name ?? ''))
          .filter(([, text]) => text === null || namesPath(text, path))
          .map(([source]) => source),
      })),
  );
}

/** Returns the files of all repositories with their texts; null for a text that cannot be read. */
function sourcesOf(
  host: Host,
  { files, directory, endings }: RepositoryManager<RepositoryBody>['sources'],
): readonly (readonly [string, string | null])[] {
  const [listing] = host.observe([{ path: directory, content: false, entries: true }]);
  if (listing?.type === 'directory' && listing.entries === null) return [[directory, null]];
  const entries = listing?.type === 'directory' ? (listing.entries ?? []) : [];
  const paths = [...files, ...entries.filter((name) => endings.test(name)).map((name) => `${directory}/${name}`)];
  const facts: PathFact[] = [];
  for (let at = 0; at < paths.length; at += READ_BATCH) {
    const part = paths.slice(at, at + READ_BATCH);
    facts.push(...host.observe(part.map((path) => ({ path, content: true, entries: false }))));
  }
  return paths.flatMap((path, at) => (facts[at]?.type === 'absent' ? [] : [[path, textOf(facts[at])] as const]));
}

const textOf = (fact: PathFact | undefined): string | null =>
  fact?.type === 'file' && fact.content.kind === 'text' ? fact.content.text : null;

/** True when a definition names the file of a key, alone or in a list, as a path or as a URL. */
const namesPath = (text: string, path: string): boolean =>
  text.split(/[\s,=[\]]+/).some((word) => word === path || word === `file://${path}`);

const DENIED = /\(13: Permission denied\)|are you root\?|requires? superuser|must be run with superuser/;

/** Explains a repository that could not be read, by what the manager says about it. */
function explain(manager: string, name: string, _step: RunStep, result: CommandResult): CommandRefusal {
  if (DENIED.test(result.stderr)) {
    return {
      code: 'permission_denied',
      message: `this user may not change the repositories of ${manager}; run the agent as root`,
    };
  }
  const sentence = `${manager} cannot use the repository ${name}, so its file was left as it was`;
  const said = result.stderr
    .split('\n')
    .filter((line, at, lines) => lines.indexOf(line) === at)
    .filter((line) => /^\s*(?:[EW]:|Error|Curl error|- | {2}-)/.test(line) && !NOISE.test(line))
    .join('\n');
  return { code: 'command_failed', message: withLines(sentence, said === '' ? result : { ...result, stderr: said }) };
}

/** Lines that say nothing about the cause. */
const NOISE = /Some index files failed to download|See apt-secure|Updating from such a repository/;
