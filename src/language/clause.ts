/** Attribute clauses: whether they match an agent, whether two can match the same one, and what one implies. */
import { shortened } from './printable.js';
import { type AttributeClause, KNOWN_DISTROS } from './schema.js';

/** What an agent is: attributes it reports and tags that operators gave it. */
export interface AgentLabels {
  readonly attributes: Readonly<Record<string, string>>;
  readonly tags: Readonly<Record<string, string>>;
}

const TAG = 'tag.';

/** The agent's value for a key of a clause; undefined when it has none. */
export function labelOf({ attributes, tags }: AgentLabels, key: string): string | undefined {
  return key.startsWith(TAG) ? own(tags, key.slice(TAG.length)) : own(attributes, key);
}

/** A member of a map from outside; what every object inherits is none. */
export const own = (map: Readonly<Record<string, string>>, key: string): string | undefined =>
  Object.hasOwn(map, key) ? map[key] : undefined;

/** True when every key of the clause equals the agent's value. */
export function clauseMatches(clause: AttributeClause, agent: AgentLabels): boolean {
  for (const key of Object.keys(clause)) {
    if (labelOf(agent, key) !== clause[key]) return false;
  }
  return true;
}

/** `platform=linux, distro=debian`, or `every agent`. */
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

/** The clause with the platform that its other keys imply: a Debian is a Linux. */
export function impliedClause(clause: AttributeClause): AttributeClause {
  if (clause.platform !== undefined) return clause;
  const { distro, init_system: init } = clause;
  if (distro !== undefined && KNOWN_DISTROS.some((known) => known === distro)) return { ...clause, platform: 'linux' };
  const platform = init !== undefined && Object.hasOwn(PLATFORM_OF_INIT, init) ? PLATFORM_OF_INIT[init] : undefined;
  return platform === undefined ? clause : { ...clause, platform };
}

/** True when no key demands different values, so that one agent could match both. */
export function compatible(a: AttributeClause, b: AttributeClause): boolean {
  for (const key of Object.keys(a)) {
    if (Object.hasOwn(b, key) && a[key] !== b[key]) return false;
  }
  return true;
}

/** True when every agent that matches `specific` matches `general` too. */
export function implies(specific: AttributeClause, general: AttributeClause): boolean {
  return Object.keys(general).every((key) => Object.hasOwn(specific, key) && specific[key] === general[key]);
}
