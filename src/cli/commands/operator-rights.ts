/** `orch operator grant` and `orch operator rights`: what operators may do, and on which machines. */
import { type Grant, ROLES } from '../../contract/rights.js';
import { Fault } from '../../kernel/fault.js';
import { argument, defineCommand, optionalArgument } from '../define-command.js';
import { formatTime } from '../format.js';
import { optionalNodeArgument, resolveNode } from '../nodes/resolve-node.js';
import { choice, flag } from '../options.js';
import { fields, lines, stack } from '../outcome.js';
import { operatorNames } from '../record-names.js';
import { EXPIRY_DETAIL, expiresOption, expiryOf, GRANT_DETAIL, grantOption, grantsOf, sayGrant } from './grants.js';
import { findOperator, operatorFields } from './operator.js';

const OPERATOR = ['OPERATOR', 'username, operator ID, or a unique prefix', 'operator'] as const;

/** `orch operator grant`. */
export const grantRights = defineCommand({
  examples: [
    'orch operator grant ada --role deployer',
    'orch operator grant ada --grant deployer:env=dev --grant planner:env=prod',
    'orch operator grant ada --everywhere',
    'orch operator grant ci --expires 90d',
  ],
  detail: [
    'Replaces the grants of an operator; without --grant and --everywhere they stay as they are.',
    ...GRANT_DETAIL,
    EXPIRY_DETAIL,
    'What the operator may no longer do ends at once: terminals, copies and streams end, and rollouts halt.',
  ],
  access: 'admin',
  consent: true,
  args: { operator: argument(...OPERATOR) },
  options: {
    role: choice('ROLE', ROLES, 'the new role [as before]'),
    grant: grantOption,
    everywhere: flag('remove all grants, so that the role counts on every machine'),
    expires: expiresOption,
    clear_expires: flag('remove the end'),
  },
  run: async (context, { operator: name, role, grant, everywhere, expires, clear_expires }) => {
    if (everywhere && grant.length > 0) {
      throw new Fault('usage', '--everywhere removes all grants, so it excludes --grant');
    }
    if (expires !== undefined && clear_expires) {
      throw new Fault('usage', '--expires and --clear-expires exclude each other');
    }
    const changesEnd = expires !== undefined || clear_expires;
    if (role === undefined && !everywhere && grant.length === 0 && !changesEnd) {
      throw new Fault('usage', 'nothing is to change', { hint: 'give --role, --grant, --everywhere or --expires' });
    }
    const given = grantsOf(grant);
    const { signal, prompt } = context;
    const api = await context.api();
    const before = await findOperator(api, name, signal);
    const grants = everywhere ? null : given.length > 0 ? given : (before.grants ?? null);
    const expires_at = expires === undefined ? null : expiryOf(expires, context.clock.now());
    const after = { role: role ?? before.role, grants, ...(changesEnd && { expires_at }) };
    await prompt.consent(
      `${before.username} may do this from now on: ${sayRights({ ...before, ...after })}. Change it?`,
    );
    const params = { operator_id: before.operator_id };
    const operator = await api.call('setOperatorGrants', { params, body: after, signal });
    const nameOf = await operatorNames(context, api);
    return {
      body: operator,
      names: [operator.operator_id],
      view: stack(lines(`${operator.username} has other rights now.`), operatorFields(operator, nameOf)),
    };
  },
});

interface Limits {
  readonly role: string;
  readonly grants: readonly Grant[] | null;
  readonly expires_at?: number | null;
}

function sayRights({ role, grants, expires_at = null }: Limits): string {
  const where = grants === null ? `${role} on every machine` : `as ${role}, ${grants.map(sayGrant).join('; ')}`;
  return expires_at === null ? where : `${where}, until ${formatTime(expires_at)}`;
}

/** `orch operator rights`. */
export const showRights = defineCommand({
  examples: ['orch operator rights', 'orch operator rights ada', 'orch operator rights ada web-01'],
  access: 'viewer',
  args: {
    operator: optionalArgument(...OPERATOR),
    node: optionalNodeArgument,
  },
  run: async (context, { operator: name, node }) => {
    const { signal } = context;
    const api = await context.api();
    const { operator_id, grants = [] } =
      name === undefined ? (await api.call('getSession', { signal })).operator : await findOperator(api, name, signal);
    const agent = node === undefined ? null : await resolveNode(api, node, { signal });
    const held = await api.call('getOperatorRights', {
      params: { operator_id },
      query: agent === null ? {} : { node: agent.node_id },
      signal,
    });
    const rights = [...held.rights, ...held.tag_keys.map((key) => `tag:${key}`)];
    return {
      body: held,
      names: rights,
      view: fields(
        ['Operator', held.username],
        ['Role', held.role],
        ...grants.map((grant): [string, string] => ['Grant', sayGrant(grant)]),
        [agent === null ? 'Rights' : `Rights on ${agent.name ?? agent.node_id}`, rights.join(', ') || 'none'],
      ),
    };
  },
});
