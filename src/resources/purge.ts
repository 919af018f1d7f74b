/** Purges: what a directory holds that nothing declares, and how it goes. */
import { Fault, type FaultCode } from '../kernel/fault.js';
import { fewOf } from '../kernel/few-of.js';
import { FORGET_UNIT } from './file-unix.js';
import { type Host, MAX_ENTRIES, type PathFact, type Step } from './host.js';
import type { BodyProblem, FieldChange, Surroundings } from './kind.js';
import type { ResourceResult } from './result.js';
import { unitAt } from './services/systemd-unit-file.js';

/** Something that nothing declares. */
interface Undeclared {
  readonly path: string;
  readonly isDirectory: boolean;
}

export type PurgeFact =
  | { readonly undeclared: readonly Undeclared[]; readonly refusal: null }
  | { readonly undeclared: null; readonly refusal: { readonly code: FaultCode; readonly message: string } };

/** Maximum entries that one purge deletes, and that a directory on its way may hold. */
const MAX_PURGED = MAX_ENTRIES;

/** Temporary files of an agent beside the files that it writes, which it removes itself. */
const TEMPORARY = /^\..*\.orch-[0-9a-f]{16}\.dpkg-tmp$/s;

/**
 * Returns what nothing declares in a directory, sorted. A directory with nothing declared in it counts as one and is not entered, and
 * neither is one that is declared itself. Never enters a mount or a link.
 */
export function findUndeclared(
  host: Host,
  path: string,
  names: readonly string[] | null,
  near: Surroundings,
): PurgeFact {
  if (near.holdsAgent(path)) return refused(`the agent itself lies in ${path}, so nothing in it is purged`);
  const undeclared: Undeclared[] = [];
  const open: { readonly path: string; readonly names: readonly string[] | null }[] = [{ path, names }];
  for (let directory = open.pop(); directory !== undefined; directory = open.pop()) {
    if (directory.names === null) {
      return refused(
        `${directory.path} holds more than ${MAX_PURGED} entries, more than a purge looks through; empty it by hand`,
      );
    }
    const at = directory.path;
    const paths = directory.names.filter((name) => !TEMPORARY.test(name)).map((name) => `${at}/${name}`);
    const rest = paths.filter((one) => !near.isDeclared(one));
    const facts = host.observe(rest.map((one) => ({ path: one, content: false, entries: true })));
    for (const [index, fact] of facts.entries()) {
      const one = rest[index] ?? '';
      const problem = problemOf(one, fact);
      if (problem !== null) return problem;
      if (fact.type === 'absent') continue;
      if (near.isOnTheWay(one, fact.type === 'symlink')) {
        const isMount = host.obstacle?.({ do: 'remove-directory', path: one })?.code !== undefined;
        if (fact.type === 'directory' && !isMount) open.push({ path: one, names: fact.entries });
      } else undeclared.push({ path: one, isDirectory: fact.type === 'directory' });
    }
    if (undeclared.length > MAX_PURGED) {
      return refused(`${path} holds more than ${MAX_PURGED} entries that nothing declares; delete them by hand`);
    }
  }
  return { undeclared: undeclared.sort((a, b) => (a.path < b.path ? -1 : 1)), refusal: null };
}

const refused = (message: string): PurgeFact => ({ undeclared: null, refusal: { code: 'removal_refused', message } });

/** Returns why an entry cannot be purged, or null. */
function problemOf(path: string, fact: PathFact): PurgeFact | null {
  if (fact.type === 'unreadable') return { undeclared: null, refusal: { code: fact.code, message: fact.message } };
  if (fact.type === 'other') {
    return refused(
      `${path} is a ${fact.what}, and a purge deletes files, links and directories only; remove it by hand`,
    );
  }
  if (fact.type === 'absent' && path.includes('\ufffd')) {
    return refused(`${path} has a name that is not UTF-8; rename it, or remove it by hand`);
  }
  return null;
}

/** Field whose value is the number of entries that a purge deletes. */
export const UNDECLARED = 'undeclared';

/** Returns how a plan shows a purge. */
export function purgeChanges(directory: string, undeclared: readonly Undeclared[]): readonly FieldChange[] {
  if (undeclared.length === 0) return [];
  const names = undeclared.map(({ path, isDirectory }) => path.slice(directory.length + 1) + (isDirectory ? '/' : ''));
  return [
    { field: UNDECLARED, before: String(names.length), after: '0' },
    { field: 'deleted', before: fewOf(names), after: null },
  ];
}

export const purgeSteps = (undeclared: readonly Undeclared[]): readonly Step[] => [
  ...undeclared.map(
    ({ path, isDirectory }): Step =>
      isDirectory ? { do: 'remove-tree', path } : { do: 'remove-file', path, expect: 'either' },
  ),
  ...(undeclared.some(({ path }) => unitAt(path) !== null) ? [FORGET_UNIT] : []),
];

/** Directories of the system that hold much that no module declares, and parts of the machine's start. */
const OF_SYSTEM =
  /^\/(?:[^/]+|(?:usr|var|private|Library|System)\/[^/]+|(?:dev|proc|sys|run)\/.*|usr\/local\/s?bin|(?:etc|usr\/lib|lib)\/systemd(?:\/system)?)$/;

/** Checks that a directory is one that may be purged. */
export function checkPurge({
  path,
  purge,
}: {
  readonly path: string;
  readonly purge?: boolean | null;
}): readonly BodyProblem[] {
  if (purge !== true || !OF_SYSTEM.test(path)) return [];
  return [{ path: '/purge', message: `purge is refused for ${path}, a directory of the system` }];
}

type Purged = Pick<ResourceResult, 'kind' | 'status' | 'changes'>;

/** Returns how many entries a planned result deletes by a purge. */
export const purgedBy = ({ kind, status, changes }: Purged): number =>
  kind === 'directory-unix' && status === 'pending'
    ? Number(changes.find(({ field }) => field === UNDECLARED)?.before ?? 0)
    : 0;

/** Returns how many entries the planned results delete by purges. */
export const purgedByAll = (results: readonly Purged[]): number =>
  results.reduce((sum, result) => sum + purgedBy(result), 0);

/** True if a resource purges its directory. */
export const isPurge = ({ kind, body }: { readonly kind: string; readonly body: object }): boolean =>
  kind === 'directory-unix' && 'purge' in body && body.purge === true;

/** Returns the Fault `removal_guard` of purges that delete more than is allowed. */
export function purgeGuardFault(count: number, limit: number, directories: readonly string[]): Fault {
  const message = `this apply would delete ${count} entries that nothing declares from ${fewOf(directories)}, more than the ${limit} that need no consent`;
  return new Fault('removal_guard', message, {
    hint: `see them with orch plan; to delete them, say how many: orch apply … --allow-removals ${count}`,
    data: { reason: 'many', removals: [], allow_removals: count },
  });
}
