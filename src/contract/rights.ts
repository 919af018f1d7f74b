/** Rights of operators: what each role may do, and grants, which limit an operator to some machines. */
import * as Type from 'typebox';
import { closed } from '../kernel/schema.js';
import { NAMED_RIGHTS } from './named-rights.js';

/** What an operator may do. Every route names the right that it needs. */
export const RIGHTS = [
  'read',
  'plan',
  'verify',
  'apply',
  'cancel',
  'accept-drift',
  'exec',
  'terminal',
  'watch',
  'take-pen',
  'copy',
  'forward',
  'ssh-proxy',
  'enroll',
  'approve-agents',
  'remove-agent',
  'tag',
  'modules',
  'assign',
  'values',
  'secrets',
  'upgrade',
] as const;
export type Right = (typeof RIGHTS)[number];

/** Roles by their rights, from the fewest to the most. */
export const ROLES = ['admin', 'operator', 'deployer', 'planner', 'viewer'] as const;
export type Role = (typeof ROLES)[number];

const PLANNER: readonly Right[] = ['read', 'plan', 'verify'];

/** Rights of each role. An admin may also call the routes for admins. */
const RIGHTS_OF_ROLE: Readonly<Record<Role, ReadonlySet<Right>>> = {
  admin: new Set(RIGHTS),
  operator: new Set(RIGHTS.filter((right) => !NAMED_RIGHTS.has(right))),
  deployer: new Set<Right>([...PLANNER, 'apply', 'cancel']),
  planner: new Set(PLANNER),
  viewer: new Set<Right>(['read']),
};

/** Returns the rights of a role, which an operator without grants has everywhere, and which the role's name in a grant stands for. */
export const rightsOfRole = (role: Role): ReadonlySet<Right> => RIGHTS_OF_ROLE[role];

const ALL: ReadonlySet<Right> = new Set(RIGHTS);

/** Returns the rights that grants can give an operator with the role. */
export const rightsWithin = (role: Role): ReadonlySet<Right> => (role === 'operator' ? ALL : RIGHTS_OF_ROLE[role]);

/** Rights that no robot has: terminals are for people. */
export const RIGHTS_OF_PEOPLE: readonly Right[] = ['terminal', 'watch', 'take-pen'];

/** Returns the roles that have a right, from the most rights to the fewest. */
export const rolesWith = (right: Right): readonly Role[] => ROLES.filter((role) => RIGHTS_OF_ROLE[role].has(right));

/** Right to set and remove a tag whose key selects machines in grants: `tag:KEY`. */
export type TagRight = `tag:${string}`;

export const GrantSchema = closed({
  rights: Type.Array(Type.String({ description: 'A right, a role for all its rights, or `tag:KEY`' }), {
    minItems: 1,
    maxItems: 64,
    description: 'Rights on the machines of the selector',
  }),
  selector: Type.String({
    description: 'Machines, by tags and `node_id` alone, such as `env=dev` or `node_id in (…)`; `*` for all',
  }),
});
export type Grant = Type.Static<typeof GrantSchema>;

/** Maximum number of grants of an operator. */
export const MAX_GRANTS = 64;
