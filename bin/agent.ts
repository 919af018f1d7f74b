/** `orch agent`: wires the agent to this process. */
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { runAgent } from '../src/agent/agent.js';
import { repin as forgetPin, readAgentState } from '../src/agent/agent-status.js';
import { createEngine } from '../src/agent/engine/create-engine.js';
import { PIN_FILE } from '../src/agent/first-contact.js';
import { parseTarget } from '../src/agent/target.js';
import type { AgentConnectFlags, AgentFlags, AgentStatus } from '../src/cli/programs.js';
import { groupsOfFour } from '../src/identity/key-id.js';
import { parsePublicKey } from '../src/identity/public-key.js';
import { createLogger } from './log.js';
import { stopSignal } from './stop-signal.js';
import { systemClock } from './system-clock.js';

export async function connect(flags: AgentConnectFlags): Promise<number> {
  process.umask(0o077);
  const target = parseTarget(flags.target);
  const key = flags.orchestratorKey;
  const logger = createLogger({
    level: 'info',
    format: process.stderr.isTTY ? 'pretty' : 'json',
    destination: process.stderr,
  });
  await runAgent(
    {
      target,
      dataDir: dataDirOf(flags),
      orchestratorKey: key === undefined ? undefined : parsePublicKey(key, '--orchestrator-key'),
      trustOnFirstUse: flags.trustOnFirstUse,
      ask: flags.confirmKey,
      hostname: flags.hostname,
      logger,
      clock: systemClock,
      random: Math.random,
      createEngine: (dataDir) => createEngine({ dataDir, logger }),
    },
    stopSignal(),
  );
  return 0;
}

export async function status(flags: AgentFlags): Promise<AgentStatus> {
  const state = readAgentState(dataDirOf(flags));
  return { ...state, node_id_groups: groupsOfFour(state.node_id) };
}

export async function repin(flags: AgentFlags): Promise<void> {
  forgetPin(dataDirOf(flags), PIN_FILE);
}

/** `/var/lib/orch-agent` for root, else below the user's state directory. */
function dataDirOf({ dataDir }: AgentFlags): string {
  if (dataDir !== undefined) return resolve(dataDir);
  if (process.geteuid?.() === 0) return '/var/lib/orch-agent';
  return join(process.env.XDG_STATE_HOME || join(homedir(), '.local', 'state'), 'orch', 'agent');
}
