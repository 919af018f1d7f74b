/** What an operator may do, and on which machines: the rights of the role, within the operator's grants. */
import {
  type Grant,
  MAX_GRANTS,
  RIGHTS,
  RIGHTS_OF_PEOPLE,
  type Right,
  ROLES,
  type Role,
  rightsOfRole,
  rightsWithin,
  type TagRight,
} from '../../src/contract/rights.js';
import { Fault } from '../../src/kernel/fault.js';
import { isTagKey } from '../../src/kernel/ids.js';
import { isWithin, matches, parseMachineSelector, type Selector } from '../../src/language/selector.js';

/** What grants ask about a machine. */
export interface Machine {
  readonly nodeId: string;
  readonly tags: Readonly<Record<string, string>>;
}

/** A machine that has not enrolled yet. No selector that names node IDs matches it, not even one that excludes some. */
export interface FutureMachine {
  readonly nodeId: null;
  readonly tags: Readonly<Record<string, string>>;
}

/** Machines on which something of an operator may act: those that a selector matches; null for all. */
export type Scope = readonly string[] | null;

interface ParsedGrant {
  readonly rights: ReadonlySet<Right>;
  /** Keys of tags that may be set although grants select by them. */
  readonly tagKeys: ReadonlySet<string>;
  readonly selector: Selector;
}

const TAG = 'tag:';

export class Rights {
  readonly role: Role;
  /** Text of the role and the grants: equal for equal rights. */
  readonly key: string;
  /** Rights that the role has, or permits grants to give. */
  private readonly ofRole: ReadonlySet<Right>;
  /** Null for an operator without grants. */
  private readonly grants: readonly ParsedGrant[] | null;

  /** @param grants null for an operator who has the rights of the role on every machine */
  constructor(role: Role, grants: readonly Grant[] | null, { isRobot = false } = {}) {
    this.role = role;
    this.key = JSON.stringify([role, grants, isRobot]);
    const ofRole = grants === null ? rightsOfRole(role) : rightsWithin(role);
    this.ofRole = isRobot ? ofRobot(ofRole) : ofRole;
    this.grants = grants === null ? null : grants.map(parseGrant);
  }

  /** True if grants limit the operator to some machines. */
  get isLimited(): boolean {
    return this.grants !== null;
  }

  /** True if the operator holds the same rights on all machines with the same tags. */
  get areOfTags(): boolean {
    const isOfTags = ({ selector }: ParsedGrant) => selector.terms.every(({ key }) => key.startsWith('tag.'));
    return this.grants === null || this.grants.every(isOfTags);
  }

  /** Returns true if the operator holds the right on some machine, or on machines that do not exist yet. */
  has(right: Right): boolean {
    return this.ofRole.has(right) && (this.grants === null || this.grants.some((grant) => holds(grant, right)));
  }

  /** Returns true if the role has the right or permits a grant of it. */
  permits(right: Right): boolean {
    return this.ofRole.has(right);
  }

  /** Returns true if the operator holds the right on the machine. */
  may(right: Right, machine: Machine | FutureMachine): boolean {
    if (!this.ofRole.has(right)) return false;
    return this.grants === null || this.grants.some((grant) => holds(grant, right) && selects(grant, machine));
  }

  /** Returns true if the operator may set a tag that grants select by, on the machine as it is. */
  mayTag(key: string, machine: Machine | FutureMachine): boolean {
    if (!this.ofRole.has('tag')) return false;
    return this.grants === null || this.grants.some((grant) => grant.tagKeys.has(key) && selects(grant, machine));
  }

  /** Returns the rights that the operator holds on the machine, or, with null, on some. */
  on(machine: Machine | null): { readonly rights: readonly Right[]; readonly tagKeys: readonly string[] } {
    const grants = (this.grants ?? []).filter((grant) => machine === null || selects(grant, machine));
    const keys = this.ofRole.has('tag') ? grants.flatMap(({ tagKeys }) => [...tagKeys]) : [];
    const rights = RIGHTS.filter((right) => (machine === null ? this.has(right) : this.may(right, machine)));
    return { rights, tagKeys: [...new Set(keys)].sort() };
  }

  /** Returns the machines on which the operator holds both rights; null for all. */
  scopeOf(...rights: readonly Right[]): Scope {
    if (this.grants === null) return null;
    return this.grants
      .filter((grant) => rights.every((right) => holds(grant, right)))
      .map(({ selector }) => selector.text);
  }

  /**
   * Returns true if the operator holds the right on every machine that the selector could ever match within the scope. It may
   * return false for a scope that only several grants cover together.
   */
  covers(right: Right, selector: Selector, scope: Scope): boolean {
    if (!this.ofRole.has(right)) return false;
    const { grants } = this;
    if (grants === null) return true;
    const parts = scope === null ? [selector] : scope.map((text) => both(selector, parseMachineSelector(text)));
    return parts.every((part) => grants.some((grant) => holds(grant, right) && isWithin(part, grant.selector)));
  }
}

/** Returns those of the rights that a robot may have. */
const ofRobot = (rights: ReadonlySet<Right>): ReadonlySet<Right> =>
  new Set([...rights].filter((right) => !RIGHTS_OF_PEOPLE.includes(right)));

/** Rights of the orchestrator itself, and of operators whom no grants limit. */
export const ALL_RIGHTS = new Rights('admin', null);

/** The fault of a robot that asks for what is for people. */
export const notForRobots = (username: string, right: Right): Fault =>
  new Fault('role_forbidden', `${username} is a robot, and a robot does not have the right ${right}`, {
    hint: 'use the key of a person, or run a command without a terminal: orch exec',
  });

/** Rights of an operator who was removed or has expired. */
export const NO_RIGHTS = new Rights('viewer', []);

/** The fault of a request that the grants do not permit. @param where the machine or what else it is about; null for everything */
export const notGranted = (right: Right | TagRight, where: string | null): Fault =>
  new Fault('not_granted', `your grants do not give the right ${right}${where === null ? '' : ` on ${where}`}`, {
    hint: 'see them: orch operator rights',
    data: { right },
  });

/** Keys of the tags that a selector of grants asks about. */
export const keysOf = ({ terms }: Selector): readonly string[] =>
  terms.flatMap(({ key }) => (key.startsWith('tag.') ? [key.slice('tag.'.length)] : []));

const both = (one: Selector, other: Selector): Selector => ({
  text: `${one.text}, ${other.text}`,
  terms: [...one.terms, ...other.terms],
});

/** Every grant holds `read`. */
const holds = ({ rights }: ParsedGrant, right: Right): boolean => right === 'read' || rights.has(right);

function selects({ selector }: ParsedGrant, { nodeId, tags }: Machine | FutureMachine): boolean {
  if (nodeId !== null) return matches(selector, { attributes: {}, tags, nodeId });
  return selector.terms.every(({ key }) => key !== 'node_id') && matches(selector, { attributes: {}, tags });
}

function parseGrant({ rights, selector }: Grant): ParsedGrant {
  return {
    rights: new Set(rights.flatMap(rightsOfText)),
    tagKeys: new Set(rights.flatMap((text) => (text.startsWith(TAG) ? [text.slice(TAG.length)] : []))),
    selector: parseMachineSelector(selector),
  };
}

const isRole = (text: string): text is Role => ROLES.some((role) => role === text);
const isRight = (text: string): text is Right => RIGHTS.some((right) => right === text);

/** Returns the rights that a text in a grant stands for: none for the right to a tag's key. */
function rightsOfText(text: string): readonly Right[] {
  if (isRight(text)) return [text];
  return isRole(text) ? [...rightsOfRole(text)] : [];
}

/**
 * Returns the grants as they are stored. Throws `invalid_grant` for a text that is no right, for rights beyond the role, for grants
 * of an admin, and for a selector of something that machines report themselves; `data.position` is then the place in the selector.
 */
export function checkGrants(role: Role, grants: readonly Grant[]): readonly Grant[] {
  if (role === 'admin') {
    throw invalid('', 'an admin may do everything everywhere, so grants cannot limit one', 'use the role operator');
  }
  if (grants.length === 0) throw invalid('', 'there is none, so the operator could do nothing', 'leave "grants" out');
  if (grants.length > MAX_GRANTS)
    throw invalid('', `there are more than ${MAX_GRANTS}`, 'join selectors, such as env in (a, b)');
  return grants.map(({ rights, selector }, index) => {
    for (const text of rights) checkRight(role, text, `/grants/${index}/rights`);
    try {
      parseMachineSelector(selector);
    } catch (error) {
      if (!(error instanceof Fault)) throw error;
      const { message, hint, data } = error;
      throw new Fault('invalid_grant', message, {
        ...(hint !== undefined && { hint }),
        ...(data !== undefined && { data }),
      });
    }
    return { rights: [...new Set(rights)], selector };
  });
}

function checkRight(role: Role, text: string, path: string): void {
  const held = rightsWithin(role);
  if (text.startsWith(TAG)) {
    if (!isTagKey(text.slice(TAG.length))) throw invalid(path, `"${text}" names no key of a tag`, 'write tag:KEY');
    if (!held.has('tag')) throw beyond(role, text, path);
    return;
  }
  const rights = rightsOfText(text);
  if (rights.length === 0 || text === 'admin') {
    throw invalid(path, `"${text}" is no right and no role for one`, `there are ${[...RIGHTS, 'tag:KEY'].join(', ')}`);
  }
  if (!rights.every((right) => held.has(right))) throw beyond(role, text, path);
}

const beyond = (role: Role, text: string, path: string): Fault =>
  invalid(path, `"${text}" is more than the role ${role} may do`, 'give the operator the role operator');

const invalid = (path: string, message: string, hint: string): Fault =>
  new Fault('invalid_grant', `grants: ${message}`, { hint, ...(path !== '' && { errors: [{ path, message }] }) });
