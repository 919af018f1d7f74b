/** What `orch agent` commands take. */
import { flag, text } from '../../option.js';

/** All of them. */
export const agentOptions = {
  dataDir: text('DIR', 'keys and journal; /var/lib/orch-agent for root, else below $XDG_STATE_HOME', {
    completes: 'file',
  }),
} as const;

/** Those that run the agent. */
export const agentRunOptions = {
  orchestratorKey: text('HEX', "the orchestrator's public key"),
  token: text('TOKEN', 'enrolment token; - reads it from standard input, @FILE from a file'),
  trustOnFirstUse: flag('trust whatever key it shows the first time'),
  hostname: text('NAME', "what to call this machine instead of its system's name"),
  config: text('FILE', 'configuration file; /etc/orch/agent.yaml when it is there', { completes: 'file' }),
  ...agentOptions,
} as const;
