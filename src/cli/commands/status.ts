/** `orch status`: the health of the orchestrator. */
import { defineCommand } from '../define-command.js';
import { EXIT } from '../exit-status.js';
import { fields, styled } from '../outcome.js';

export const command = defineCommand({
  examples: ['orch status'],
  detail: ['Ends with 1 when the orchestrator says it is degraded.'],
  access: 'public',
  run: async (context) => {
    const api = await context.api();
    const status = await api.call('getStatus', { signal: context.signal });
    const healthy = status.status === 'ok';
    return {
      body: status,
      names: [status.status],
      view: fields(
        ['Orchestrator', api.url.href.replace(/\/$/, '')],
        ['Status', styled(healthy ? 'good' : 'bad', status.status)],
        ...status.reasons.map(({ code, detail }) => ['Reason', `${detail} (${code})`] as const),
        ['Version', status.version],
        ['Agent protocol', String(status.protocol_version)],
        ['Public key', status.public_key],
      ),
      exitStatus: healthy ? EXIT.done : EXIT.error,
    };
  },
});
