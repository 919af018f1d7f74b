/** `orch audit retention show`. */
import { defineCommand } from '../../../define-command.js';
import { retentionOutcome } from './retention-outcome.js';

export const command = defineCommand({
  examples: ['orch audit retention show'],
  access: 'viewer',
  run: async (context) => {
    const api = await context.api();
    return retentionOutcome(await api.call('getAuditRetention', { signal: context.signal }));
  },
});
