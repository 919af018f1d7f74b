/** The removal guard: refuses an apply that would remove more than its user probably means (`docs/protocols/apply.md`). */
import { Fault } from '../kernel/fault.js';
import { CATALOGUE } from './catalogue.js';
import type { Removal } from './desired.js';

/** Default of the number of removals that an apply may make without consent. */
export const MAX_UNASKED = 10;

/** A managed resource that is no longer desired. */
interface GuardedRemoval {
  /** True when it is removed from the machine; false when it is released. */
  readonly removes: boolean;
  /** True when its module was only named in an earlier request and is not part of this apply. */
  readonly adHoc: boolean;
  /** True when its loop gives nothing now, because values or facts have changed. */
  readonly emptied: boolean;
  /** True when no person has asked for the apply, and only changed facts of the agent take the resource away. */
  readonly byFacts: boolean;
}

interface GuardInput {
  readonly removals: readonly GuardedRemoval[];
  /** Number of managed resources on the agent, created or adopted. */
  readonly managed: number;
  /** Maximum removals without consent. */
  readonly limit: number;
  /** `allow_removals` of the request. */
  readonly allowed: number | null;
}

/** Why an apply needs consent. */
type GuardReason = 'all' | 'many' | 'ad_hoc' | 'emptied' | 'facts';

/** True when a removal changes the machine, as far as its body shows. */
export const removesSomething = ({ kind, body, origin }: Pick<Removal, 'kind' | 'body' | 'origin'>): boolean =>
  origin === 'created' && (CATALOGUE.get(kind)?.removes?.(body) ?? true);

/** Returns null when the removals are few or explicitly allowed. Releases do not count. */
export function guardReason({ removals, managed, limit, allowed }: GuardInput): GuardReason | null {
  const removed = removals.filter(({ removes }) => removes);
  if (removed.length === 0 || removed.length <= (allowed ?? -1)) return null;
  if (removals.length === managed) return 'all';
  if (removed.length > limit) return 'many';
  if (removed.some(({ adHoc }) => adHoc)) return 'ad_hoc';
  if (removed.some(({ emptied }) => emptied)) return 'emptied';
  return removed.some(({ byFacts }) => byFacts) ? 'facts' : null;
}

interface RefusedRemoval {
  readonly module: string;
  readonly kind: string;
  readonly identity: string;
  /** Why it is no longer desired, as far as the store shows. */
  readonly cause: string;
  /** True when its module is not part of this apply and could be. */
  readonly isLeftOut: boolean;
}

interface Refusal {
  readonly reason: GuardReason;
  /** Name of the agent. */
  readonly agent: string;
  readonly limit: number;
  /** Removals without releases. */
  readonly removals: readonly RefusedRemoval[];
  /** True for `apply --local`, which has module files and no assignments. */
  readonly isLocal: boolean;
}

/** Maximum resources in the message; the data contains all. */
const NAMED_IN_MESSAGE = 5;

/** Returns the Fault `removal_guard` with the resources and their causes; its hint first says how to keep them. */
export function removalGuardFault({ reason, agent, limit, removals, isLocal }: Refusal): Fault {
  const count = removals.length;
  const things = count === 1 ? '1 resource' : `${count} resources`;
  const what = {
    all: `this apply would remove everything that is managed on ${agent}, ${things}`,
    many: `this apply would remove ${things} from ${agent}, more than the ${limit} that need no consent`,
    ad_hoc: `this apply would remove ${things} from ${agent} because their module was named in an earlier apply and is not named now`,
    emptied: `this apply would remove ${things} from ${agent}, and a loop of a module has no element any longer`,
    facts: `an automatic apply would remove ${things} from ${agent} because facts of it have changed, and waits for a person (orch apply ${agent} --allow-removals ${count})`,
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

/** Maximum modules in a hint. */
const NAMED_IN_HINT = 5;

/** Returns how to keep resources of modules that the apply leaves out; null when it leaves none out. */
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
