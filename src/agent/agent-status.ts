/** What `orch agent status` reads: a small file that the running agent keeps up to date. */
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { holderOf } from '../identity/data-directory.js';
import { Fault, messageOf, systemCodeOf } from '../kernel/fault.js';

export type LinkState = 'connecting' | 'pending' | 'connected' | 'disconnected' | 'rejected' | 'stopped';

export interface AgentState {
  readonly node_id: string;
  /** null before the first contact. */
  readonly orchestrator_key: string | null;
  readonly orchestrator: string;
  readonly name: string | null;
  readonly link: LinkState;
  /** RFC 3339; since when the link is in this state. */
  readonly since: string;
  readonly last_error: string | null;
}

const FILE = 'state.json';

/** Replaces the state; losing it at a power cut does no harm, so it is not synced. */
export function writeAgentState(dataDir: string, state: AgentState): void {
  const file = join(dataDir, FILE);
  writeFileSync(`${file}.new`, `${JSON.stringify(state, null, 2)}\n`, { mode: 0o600 });
  renameSync(`${file}.new`, file);
}

/** The last written state and the process that keeps it, null when none runs. Throws `data_dir_invalid`. */
export function readAgentState(dataDir: string): AgentState & { readonly pid: number | null } {
  try {
    const state = JSON.parse(readFileSync(join(dataDir, FILE), 'utf8')) as AgentState;
    const pid = holderOf(dataDir);
    return { ...state, link: pid === null ? 'stopped' : state.link, pid };
  } catch (error) {
    const missing = systemCodeOf(error) === 'ENOENT';
    throw new Fault(
      'data_dir_invalid',
      missing ? `no agent has run with ${dataDir} yet` : `${dataDir}: ${messageOf(error)}`,
      {
        hint: 'start one with: orch agent connect HOST, or name its directory with --data-dir',
        cause: error,
      },
    );
  }
}

/** Forgets the pinned orchestrator. Throws `agent_running` while an agent uses the directory. */
export function repin(dataDir: string, pinFile: string): void {
  const pid = holderOf(dataDir);
  if (pid !== null) {
    throw new Fault('agent_running', `the agent of ${dataDir} runs as process ${pid}`, {
      hint: 'stop it first, then repin, then start it with the new key',
      data: { pid },
    });
  }
  rmSync(join(dataDir, pinFile), { force: true });
}
