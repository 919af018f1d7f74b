/** Which audit events: the options of all commands that show them. */
import type { Contract } from '../../../contract/contract.js';
import type { QueryOf } from '../../../contract/route.js';
import { text } from '../../option.js';
import { parseWhen } from '../../when.js';

export const auditOptions = {
  agent: text('NODE', 'only about this agent: node ID or name', { completes: 'node' }),
  operator: text('OPERATOR', 'only by this operator: operator ID or username', { completes: 'operator' }),
  type: text('EVENT', 'only this type, such as agent.approved'),
  category: text('PREFIX', 'only types that begin with this, such as agent'),
  after: text('TIME', 'only from then on: RFC 3339, a date, or "2h ago"'),
} as const;

type Input = { readonly [K in keyof typeof auditOptions]: string | undefined };

/** @param now Unix milliseconds */
export const auditQuery = (
  { agent, operator, type, category, after }: Input,
  now: number,
): QueryOf<Contract['streamEvents']> => ({
  agent: agent ?? null,
  operator: operator ?? null,
  event_type: type ?? null,
  category: category ?? null,
  after: after === undefined ? null : parseWhen(after, '--after', now),
});
