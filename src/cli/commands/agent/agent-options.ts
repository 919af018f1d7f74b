/** What every `orch agent` command takes. */
import { text } from '../../option.js';

export const agentOptions = {
  dataDir: text('DIR', 'keys and journal; /var/lib/orch-agent for root, else below $XDG_STATE_HOME', {
    completes: 'file',
  }),
} as const;
