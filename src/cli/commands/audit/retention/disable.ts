/** `orch audit retention disable`. */
import { defineCommand } from '../../../define-command.js';
import { retentionOutcome } from './retention-outcome.js';

export const command = defineCommand({
  examples: ['orch audit retention disable'],
  detail: ['Events are kept for ever, unless somebody deletes them with orch audit prune.'],
  access: 'admin',
  run: async (context) => {
    const api = await context.api();
    const body = { retention_days: null };
    return retentionOutcome(await api.call('setAuditRetention', { body, signal: context.signal }));
  },
});
