/** Refuses an apply that would remove more than anybody is likely to mean (`docs/protocols/apply.md`). */
import { Fault } from '../kernel/fault.js';
import { CATALOGUE } from './catalogue.js';
import type { Removal } from './desired.js';

/** A managed resource that is no longer desired. */
export interface GuardedRemoval {
  /** True when something is removed from the machine; else it is released. */
  readonly removes: boolean;
  /** True when its module was only named in a request and is not part of this apply. */
  readonly adHoc: boolean;
}

export interface GuardInput {
  readonly removals: readonly GuardedRemoval[];
  /** How many resources are managed on the agent, created or adopted. */
  readonly managed: number;
  /** Removals that need no consent. */
  readonly limit: number;
  /** `allow_removals` of the request. */
  readonly allowed: number | null;
}

/** Why an apply needs consent. */
export type GuardReason = 'all' | 'many' | 'ad_hoc';

/** Whether a removal changes anything on the machine, as far as its body tells. */
export const removesSomething = ({ kind, body, origin }: Pick<Removal, 'kind' | 'body' | 'origin'>): boolean =>
  origin === 'created' && (CATALOGUE.get(kind)?.removes?.(body) ?? true);

/** Null when the removals are few, or allowed by number. A release is not counted. */
export function guardReason({ removals, managed, limit, allowed }: GuardInput): GuardReason | null {
  const removed = removals.filter(({ removes }) => removes);
  if (removed.length === 0 || removed.length <= (allowed ?? -1)) return null;
  if (removals.length === managed) return 'all';
  if (removed.length > limit) return 'many';
  return removed.some(({ adHoc }) => adHoc) ? 'ad_hoc' : null;
}

export interface RefusedRemoval {
  readonly module: string;
  readonly kind: string;
  readonly identity: string;
  /** Why it is no longer desired, as far as the store tells. */
  readonly cause: string;
  /** Its module is not part of this apply, and could be. */
  readonly isLeftOut: boolean;
}

export interface Refusal {
  readonly reason: GuardReason;
  /** The agent as people know it. */
  readonly agent: string;
  readonly limit: number;
  /** Those that would be removed, without the releases. */
  readonly removals: readonly RefusedRemoval[];
  /** An apply on this machine alone, which takes its modules as files and has no assignments. */
  readonly isLocal: boolean;
}

/** Resources that the message names; the data names all. */
const NAMED_IN_MESSAGE = 5;

/** The Fault `removal_guard` that names each resource and the cause, and first of all how to keep them. */
export function removalGuardFault({ reason, agent, limit, removals, isLocal }: Refusal): Fault {
  const count = removals.length;
  const things = count === 1 ? '1 resource' : `${count} resources`;
  const what = {
    all: `this apply would remove everything that is managed on ${agent}, ${things}`,
    many: `this apply would remove ${things} from ${agent}, more than the ${limit} that need no consent`,
    ad_hoc: `this apply would remove ${things} from ${agent} because their module was named in an earlier apply and is not named now`,
  }[reason];
  const named = removals
    .slice(0, NAMED_IN_MESSAGE)
    .map(({ kind, identity, cause }) => `${kind} ${identity} (${cause})`);
  const more = count > named.length ? ` and ${count - named.length} more` : '';
  return new Fault('removal_guard', `${what}: ${named.join('; ')}${more}`, {
    hint: [
      keepingHint(removals, isLocal),
      `to remove ${count === 1 ? 'it' : 'them'}, say how many: orch apply … --allow-removals ${count}`,
    ]
      .filter((part) => part !== null)
      .join('; '),
    data: { reason, removals: removals.map(({ isLeftOut: _, ...removal }) => removal), allow_removals: count },
  });
}

/** Modules that a hint names. */
const NAMED_IN_HINT = 5;

/** An apply names everything that the agent is to have: a module that it leaves out is to go. Null when none was left out. */
function keepingHint(removals: readonly RefusedRemoval[], isLocal: boolean): string | null {
  const modules = [...new Set(removals.flatMap(({ module, isLeftOut }) => (isLeftOut ? module : [])))];
  if (modules.length === 0) return null;
  const named = modules.slice(0, NAMED_IN_HINT);
  const more = modules.length > named.length ? ` and ${modules.length - named.length} more` : '';
  const what = modules.length === 1 ? 'its module' : 'their modules';
  if (isLocal)
    return `to keep what ${named.join(', ')}${more} declared, give ${what} too: orch apply --local -f FILE -f FILE`;
  const flags = named.map((name) => `-m ${name}`).join(' ');
  return (
    `to keep what is there, name ${what} too (orch apply NODE ${flags}${more} -f FILE), ` +
    `or assign ${what} for good (orch assignments create NAME ${flags}${more} --selector SELECTOR)`
  );
}
