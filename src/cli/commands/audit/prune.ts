/** `orch audit prune`. */
import { defineCommand } from '../../define-command.js';
import { count } from '../../format.js';
import { requiredText } from '../../option.js';
import { lines } from '../../view.js';
import { parseWhen } from '../../when.js';

export const command = defineCommand({
  examples: ['orch audit prune --before 2025-01-01', 'orch audit prune --before "180d ago" --yes'],
  detail: [
    'The rest of the log can still be verified. Pruning is an event itself. Verify first: what is wrong in the events',
    'that go cannot be found out afterwards.',
  ],
  access: 'admin',
  consent: true,
  options: { before: requiredText('TIME', 'delete what is older: RFC 3339, a date, or "180d ago"') },
  run: async (context, input) => {
    const before = parseWhen(input.before, '--before', context.clock.now());
    await context.prompt.consent(`Delete every audit event from before ${before}?`);
    const api = await context.api();
    const body = await api.call('pruneAuditEvents', { query: { before }, signal: context.signal });
    return { body, view: lines(`Deleted ${count(body.deleted, 'event')} from before ${before}.`) };
  },
});
