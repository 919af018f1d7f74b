/** Attribute clauses: matching an agent, comparing two clauses, and finding ties and gaps among variants. */
import { shortened } from './printable.js';
import { type AttributeClause, KNOWN_DISTROS, PLATFORMS } from './schema.js';

/** Attributes that an agent reports, and its tags from operators. */
export interface AgentLabels {
  readonly attributes: Readonly<Record<string, string>>;
  readonly tags: Readonly<Record<string, string>>;
  /** Only selectors of grants ask for it. */
  readonly nodeId?: string;
}

const TAG = 'tag.';

/** Returns the agent's value for a clause's key, or undefined. */
export function labelOf({ attributes, tags, nodeId }: AgentLabels, key: string): string | undefined {
  if (key === 'node_id') return nodeId;
  return key.startsWith(TAG) ? ownMember(tags, key.slice(TAG.length)) : ownMember(attributes, key);
}

/** Returns an own member of a map from outside, never an inherited one. */
export const ownMember = <T>(map: Readonly<Record<string, T>>, key: string): T | undefined =>
  Object.hasOwn(map, key) ? map[key] : undefined;

/** Returns true when every key of the clause equals the agent's value. */
export function clauseMatches(clause: AttributeClause, agent: AgentLabels): boolean {
  for (const key of Object.keys(clause)) {
    if (labelOf(agent, key) !== clause[key]) return false;
  }
  return true;
}

/** Formats a clause as `platform=linux, distro=debian`, or as `every agent`. */
export function showClause(clause: AttributeClause): string {
  const shown = Object.entries(clause).map(([key, value]) => `${shortened(key)}=${shortened(value)}`);
  return shown.length === 0 ? 'every agent' : shown.join(', ');
}

const PLATFORM_OF_INIT: Readonly<Record<string, string>> = {
  systemd: 'linux',
  openrc: 'linux',
  'init.d': 'linux',
  launchd: 'macos',
  scm: 'windows',
};

/** Adds the platform that the other keys imply: Debian implies Linux. */
function impliedClause(clause: AttributeClause): AttributeClause {
  if (clause.platform !== undefined) return clause;
  const { distro, init_system: init } = clause;
  if (distro !== undefined && KNOWN_DISTROS.some((known) => known === distro)) return { ...clause, platform: 'linux' };
  const platform = init !== undefined && Object.hasOwn(PLATFORM_OF_INIT, init) ? PLATFORM_OF_INIT[init] : undefined;
  return platform === undefined ? clause : { ...clause, platform };
}

/** Returns true when one agent could match both clauses. */
function compatible(a: AttributeClause, b: AttributeClause): boolean {
  for (const key of Object.keys(a)) {
    if (Object.hasOwn(b, key) && a[key] !== b[key]) return false;
  }
  return true;
}

/** Returns true when every agent that matches `specific` also matches `general`. */
function implies(specific: AttributeClause, general: AttributeClause): boolean {
  return Object.keys(general).every((key) => Object.hasOwn(specific, key) && specific[key] === general[key]);
}

/** Limits the comparisons of one module, which grow with the square of similar resources. */
export class Budget {
  #left: number;

  constructor(comparisons: number) {
    this.#left = comparisons;
  }

  spend(count: number): void {
    this.#left -= count;
  }

  get exhausted(): boolean {
    return this.#left <= 0;
  }
}

/** Maximum comparisons for one module, about a tenth of a second. */
export const COMPARISONS = 1_000_000;

/** The agents that a module supports. */
export interface SupportedAgents {
  /** Clauses of `supports` with implied keys; a clause that matches every agent without any. */
  readonly supports: readonly AttributeClause[];
  readonly budget: Budget;
}

export const supportedAgents = (supports: readonly AttributeClause[], budget: Budget): SupportedAgents => ({
  supports: supports.length === 0 ? [{}] : supports.map(impliedClause),
  budget,
});

/** One option of a resource: its clause, and the clauses that take precedence where they also match. */
export interface Choice {
  readonly when: AttributeClause;
  readonly overriding: readonly AttributeClause[];
}

/** Returns the choices of a list of variants. Clauses with more keys take precedence. */
export function choicesAmong(clauses: readonly AttributeClause[]): readonly Choice[] {
  const bySize = new Map<number, readonly AttributeClause[]>();
  return clauses.map((when) => {
    const size = sizeOf(when);
    const overriding = bySize.get(size) ?? clauses.filter((other) => sizeOf(other) > size);
    bySize.set(size, overriding);
    return { when: impliedClause(when), overriding };
  });
}

const sizeOf = (clause: AttributeClause): number => Object.keys(clause).length;

/** Returns true when some supported agent can get both choices. */
export function canApplyTogether(a: Choice, b: Choice, { supports, budget }: SupportedAgents): boolean {
  budget.spend(1);
  if (!compatible(a.when, b.when)) return false;
  return supports.some((clause) => {
    if (budget.exhausted) return false;
    budget.spend(1 + a.overriding.length + b.overriding.length);
    if (!compatible(a.when, clause) || !compatible(b.when, clause)) return false;
    const agents = { ...clause, ...a.when, ...b.when };
    return ![...a.overriding, ...b.overriding].some((other) => implies(agents, other));
  });
}

/** Returns the first supports clause with agents that match no variant; -1 without one. */
export function findGap(clauses: readonly AttributeClause[], { supports, budget }: SupportedAgents): number {
  return supports.findIndex((clause) => {
    if (budget.exhausted) return false;
    const platforms = clause.platform === undefined ? PLATFORMS : [clause.platform];
    return platforms.some((platform) => {
      budget.spend(clauses.length);
      const agents = { ...clause, platform };
      return !clauses.some((when) => implies(agents, when));
    });
  });
}
