/** Which resources of a run are the same thing on this machine, although they are written differently. */
import type { Accounts, Host } from '../../resources/host.js';
import { MODULE_FAMILIES, type ResourceKind } from '../../resources/kind.js';
import { type Place, placesOf } from './places.js';
import type { KnownTarget, Target } from './target.js';

/** A wanted resource for whose sake a removal leaves the machine as it is. */
export interface Heir {
  readonly target: Target;
  /** True when both are the same thing, so that the management passes on. */
  readonly isSame: boolean;
  readonly reason: string;
}

/** Things that the resources of a run share; true until something changes. */
export interface SameThings {
  readonly places: ReadonlyMap<number, Place>;
  /** For each wanted resource that another one also declares: why it is refused. */
  readonly conflicts: ReadonlyMap<number, string>;
  /** By position of the removal. */
  readonly heirs: ReadonlyMap<number, Heir>;
}

export const NOTHING_SAME: SameThings = { places: new Map(), conflicts: new Map(), heirs: new Map() };

/** Looks at what the resources are. */
export async function findSameThings(
  host: Host,
  desired: readonly Target[],
  removals: readonly Target[],
): Promise<SameThings> {
  const all = [...desired, ...removals];
  const places = placesOf(host, all);
  const things = await thingsOf(host, all, places);
  const wanted = new Map<string, Target[]>();
  for (const target of desired) {
    const thing = things.get(target.index);
    if (thing !== undefined) push(wanted, thing, target);
  }
  const accounts = host.accounts();
  const inhabitants = inhabitantsOf(desired, removals, places);
  const heirs = removals.flatMap((removal): [number, Heir][] => {
    const [same] = wanted.get(things.get(removal.index) ?? '') ?? [];
    const isOne = same !== undefined && !isNewAccount(same, accounts);
    const heir = heirOf(isOne ? same : undefined, inhabitants.get(removal.index));
    return heir === null ? [] : [[removal.index, heir]];
  });
  return { places, conflicts: conflictsIn(wanted), heirs: new Map(heirs) };
}

/** Returns a text for each resource that is equal for those that are the same thing. */
async function thingsOf(
  host: Host,
  targets: readonly Target[],
  places: ReadonlyMap<number, Place>,
): Promise<ReadonlyMap<number, string>> {
  const things = new Map<number, string>();
  for (const [index, { self }] of places) things.set(index, `path\0${self}`);
  for (const [kind, members] of byKind(targets)) {
    const texts = await kind.thingsOf?.(
      host,
      members.map(({ source }) => source.body),
    );
    for (const [at, { index }] of members.entries()) {
      const text = texts?.[at] ?? null;
      if (text !== null) things.set(index, `${kind.family}\0${text}`);
    }
  }
  return things;
}

function byKind(targets: readonly Target[]): ReadonlyMap<ResourceKind, readonly KnownTarget[]> {
  const kinds = new Map<ResourceKind, KnownTarget[]>();
  for (const target of targets) {
    if (target.kind?.thingsOf === undefined) continue;
    push(kinds, target.kind, target);
  }
  return kinds;
}

function push<K, V>(map: Map<K, V[]>, key: K, value: V): void {
  const list = map.get(key);
  if (list) list.push(value);
  else map.set(key, [value]);
}

/** Resources with identities of their module may be equal: two scripts with one text are two scripts. */
function conflictsIn(wanted: ReadonlyMap<string, readonly Target[]>): ReadonlyMap<number, string> {
  const conflicts = new Map<number, string>();
  for (const [thing, same] of wanted) {
    const [first, second] = same;
    if (first?.kind == null || second === undefined || MODULE_FAMILIES.has(first.kind.family)) continue;
    const what = ACCOUNTS.has(first.kind.family)
      ? `have the ${thing.split('\0')[1]}`
      : 'are the same thing on this machine';
    for (const target of same) {
      const other = target === first ? second : first;
      conflicts.set(target.index, `${nameOf(target)} and ${nameOf(other)} ${what}; declare only one of them`);
    }
  }
  return conflicts;
}

/** Families whose things are numbers. */
const ACCOUNTS: ReadonlySet<string> = new Set(['user', 'group']);

/** True for an account that still has to be made: what has its number is in its way. */
function isNewAccount({ kind, source: { identity } }: Target, accounts: Accounts): boolean {
  if (kind?.family === 'user') return accounts.uid(identity) === undefined;
  return kind?.family === 'group' && accounts.gid(identity) === undefined;
}

/** Returns for each directory that is to be removed a wanted resource in it. */
function inhabitantsOf(
  desired: readonly Target[],
  removals: readonly Target[],
  places: ReadonlyMap<number, Place>,
): ReadonlyMap<number, Target> {
  const directories = removals.filter(({ source }) => source.kind.startsWith('directory-'));
  if (directories.length === 0) return new Map();
  const first = new Map<string, Target>();
  for (const target of desired.filter(({ kind }) => !kind?.absenceOf)) {
    for (const name of places.get(target.index)?.above ?? []) if (!first.has(name)) first.set(name, target);
  }
  return new Map(
    directories.flatMap(({ index }): [number, Target][] => {
      const target = first.get(places.get(index)?.inside ?? '');
      return target === undefined ? [] : [[index, target]];
    }),
  );
}

function heirOf(same: Target | undefined, inhabitant: Target | undefined): Heir | null {
  if (same !== undefined) {
    const reason = `it is the same thing as ${nameOf(same)}, which is wanted and takes over its management`;
    return { target: same, isSame: true, reason };
  }
  if (inhabitant === undefined) return null;
  return { target: inhabitant, isSame: false, reason: `${nameOf(inhabitant)}, which is wanted, lies in it` };
}

const nameOf = ({ source: { kind, identity } }: Target): string => `${kind} ${identity}`;
