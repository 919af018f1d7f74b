/** `orch audit retention set`. */
import { MAX_RETENTION_DAYS } from '../../../../contract/audit.js';
import { Fault } from '../../../../kernel/fault.js';
import { argument } from '../../../argument.js';
import { defineCommand } from '../../../define-command.js';
import { retentionOutcome } from './retention-outcome.js';

export const command = defineCommand({
  examples: ['orch audit retention set 365'],
  detail: [
    'Older events are deleted within minutes, and from then on each day. This stands above audit.retention_days of the',
    'configuration of orch serve.',
  ],
  access: 'admin',
  args: { days: argument('DAYS', 'how many days events are kept') },
  run: async (context, { days }) => {
    const retention_days = daysOf(days);
    const api = await context.api();
    return retentionOutcome(await api.call('setAuditRetention', { body: { retention_days }, signal: context.signal }));
  },
});

function daysOf(text: string): number {
  const days = /^\d{1,5}$/.test(text) ? Number(text) : 0;
  if (days >= 1 && days <= MAX_RETENTION_DAYS) return days;
  throw new Fault('usage', `"${text}" is no number of days between 1 and ${MAX_RETENTION_DAYS}`, {
    hint: 'to keep events for ever: orch audit retention disable',
  });
}
