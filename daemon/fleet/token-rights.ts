/** What the maker of an enrolment token has to hold: when it is made, and again when an agent redeems it. */
import { rightsAt } from '../auth/operator-store.js';
import { type FutureMachine, type Machine, notGranted, type Rights } from '../core/rights.js';
import type { Queryable } from '../database/schema.js';
import { protectedKeys } from './protected-tags.js';
import type { Tags } from './tag-store.js';

/** What a token does for its agents. */
interface TokenPower {
  readonly tags: Tags;
  readonly approves: boolean;
}

/** A stored token, as far as its maker's rights are concerned. */
interface MadeToken {
  /** ID of the operator who made it. */
  readonly created_by: string;
  readonly tags: Tags;
  readonly auto_approve: number;
}

/**
 * Throws `not_granted` unless the operator may let in a machine with exactly the tags of the token: `enroll` there, with the right
 * to set each of them that is protected, and `approve-agents` if the token approves.
 */
export async function requireTokenRights(db: Queryable, rights: Rights, power: TokenPower): Promise<void> {
  const missing = await missingRight(db, rights, power);
  if (missing !== null) throw notGranted(missing, 'a machine with exactly these tags');
}

/** Returns true if the operator who made the token holds what making it takes at `now` (Unix milliseconds). */
export async function isBackedByMaker(db: Queryable, token: MadeToken, now: number): Promise<boolean> {
  const rights = await rightsAt(db, token.created_by, now);
  return (await missingRight(db, rights, powerOf(token))) === null;
}

/**
 * Returns true if the token may let in an agent that has tags already. They are not the token's, so its maker has to hold the
 * rights on the machine as it is and as it will be, and may set the protected ones on both.
 */
export async function mayAdmitTagged(
  db: Queryable,
  token: MadeToken,
  { nodeId, tags }: Machine,
  now: number,
): Promise<boolean> {
  if (Object.keys(tags).length === 0) return true;
  const rights = await rightsAt(db, token.created_by, now);
  if (!rights.isLimited) return true;
  const changed = Object.keys(token.tags).filter((key) => tags[key] !== token.tags[key]);
  const keys = await protectedOf(db, changed);
  return [tags, { ...tags, ...token.tags }].every(
    (those) => missingOn(rights, { nodeId, tags: those }, keys, powerOf(token)) === null,
  );
}

async function missingRight(db: Queryable, rights: Rights, power: TokenPower): Promise<MissingRight | null> {
  if (!rights.isLimited) return rights.has('enroll') ? null : 'enroll';
  const keys = await protectedOf(db, Object.keys(power.tags));
  return missingOn(rights, { nodeId: null, tags: power.tags }, keys, power);
}

type MissingRight = 'enroll' | 'approve-agents' | `tag:${string}`;

/** Returns the first right that the operator lacks on a machine to let it in. */
function missingOn(
  rights: Rights,
  machine: Machine | FutureMachine,
  keys: readonly string[],
  { approves }: TokenPower,
): MissingRight | null {
  if (!rights.may('enroll', machine)) return 'enroll';
  if (approves && !rights.may('approve-agents', machine)) return 'approve-agents';
  const key = keys.find((one) => !rights.mayTag(one, machine));
  return key === undefined ? null : `tag:${key}`;
}

/** Returns those of the keys that are protected. */
async function protectedOf(db: Queryable, keys: readonly string[]): Promise<readonly string[]> {
  if (keys.length === 0) return [];
  const isProtected = await protectedKeys(db);
  return keys.filter((key) => isProtected.has(key));
}

const powerOf = ({ tags, auto_approve }: MadeToken): TokenPower => ({ tags, approves: auto_approve === 1 });
