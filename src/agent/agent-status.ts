/** The agent's state file and `orch agent status`, which reads it together with the journal. */
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { holderOf } from '../identity/data-directory.js';
import { Fault, messageOf, systemCodeOf } from '../kernel/fault.js';
import { readLoss } from './journal/journal-loss.js';
import { inspectJournal } from './journal/read-journal.js';
import { type OrchestratorAddress, parseAddress } from './link/orchestrator-address.js';

/** `untrusted`: the peer has not proved the expected key, or none is expected yet; the agent does nothing for it. */
export type LinkState =
  | 'searching'
  | 'connecting'
  | 'pending'
  | 'connected'
  | 'disconnected'
  | 'untrusted'
  | 'rejected'
  | 'stopped';

export interface AgentState {
  readonly node_id: string;
  /** Null before the first contact. */
  readonly orchestrator_key: string | null;
  /** Address as text; null until a discovery packet has announced it. */
  readonly orchestrator: string | null;
  readonly name: string | null;
  readonly link: LinkState;
  /** Time of the last change of `link`, RFC 3339. */
  readonly since: string;
  readonly last_error: string | null;
  /** Remedy for `last_error`. */
  readonly hint: string | null;
}

const FILE = 'state.json';

/** Replaces the state file without a sync, because losing it in a power cut does no harm. */
export function writeAgentState(dataDir: string, state: AgentState): void {
  const file = join(dataDir, FILE);
  writeFileSync(`${file}.new`, `${JSON.stringify(state, null, 2)}\n`, { mode: 0o600 });
  renameSync(`${file}.new`, file);
}

/** The state with the process and the journal. */
export interface AgentStatus extends AgentState {
  /** Process ID of the running agent, or null. */
  readonly pid: number | null;
  /** Number of applies whose results the orchestrator has not acknowledged; null when the journal is damaged. */
  readonly journal_unacknowledged: number | null;
  /** Number of unacknowledged applies that have not ended. */
  readonly journal_running: number | null;
  /** Number of reloads, restarts and reruns that the next apply has to do. */
  readonly journal_owed: number | null;
  readonly journal_bytes: number | null;
  readonly journal_error: string | null;
}

/** Reads the state file, the process and the journal. Throws `data_dir_invalid` when no agent has run. */
export function readAgentState(dataDir: string): AgentStatus {
  const state = readState(dataDir);
  const pid = holderOf(dataDir)?.pid ?? null;
  return { ...state, link: pid === null ? 'stopped' : state.link, pid, ...readJournalCounts(dataDir) };
}

function readJournalCounts(dataDir: string) {
  try {
    const { unacknowledged, running, owed, bytes } = inspectJournal(dataDir);
    return {
      journal_unacknowledged: unacknowledged,
      journal_running: running,
      journal_owed: owed,
      journal_bytes: bytes,
      journal_error: readLoss(dataDir),
    };
  } catch (error) {
    return {
      journal_unacknowledged: null,
      journal_running: null,
      journal_owed: null,
      journal_bytes: null,
      journal_error: messageOf(error),
    };
  }
}

/** Returns the orchestrator's address at the last run, or null. */
export function lastOrchestrator(dataDir: string): OrchestratorAddress | null {
  try {
    const { orchestrator } = readState(dataDir);
    return typeof orchestrator === 'string' ? parseAddress(orchestrator) : null;
  } catch {
    return null;
  }
}

function readState(dataDir: string): AgentState {
  try {
    const state = JSON.parse(readFileSync(join(dataDir, FILE), 'utf8')) as AgentState;
    // Older agents wrote no hint.
    return { ...state, hint: state.hint ?? null };
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
