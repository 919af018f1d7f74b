/** What `orch agent status` reads: a small file that the running agent keeps up to date. */
import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { holderOf } from '../identity/data-directory.js';
import { Fault, messageOf, systemCodeOf } from '../kernel/fault.js';
import { readLoss } from './journal/journal-loss.js';
import { inspectJournal } from './journal/read-journal.js';
import { parseTarget, type Target } from './link/orchestrator-address.js';

/** `untrusted`: the peer proved another key than the expected one, or none is expected yet; nothing is done for it. */
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
  /** null before the first contact. */
  readonly orchestrator_key: string | null;
  /** null until a discovery packet has told it. */
  readonly orchestrator: string | null;
  readonly name: string | null;
  readonly link: LinkState;
  /** RFC 3339; since when the link is in this state. */
  readonly since: string;
  readonly last_error: string | null;
  /** What a person can do about `last_error`. */
  readonly hint: string | null;
}

const FILE = 'state.json';

/** Replaces the state; losing it at a power cut does no harm, so it is not synced. */
export function writeAgentState(dataDir: string, state: AgentState): void {
  const file = join(dataDir, FILE);
  writeFileSync(`${file}.new`, `${JSON.stringify(state, null, 2)}\n`, { mode: 0o600 });
  renameSync(`${file}.new`, file);
}

/** The state with what else there is to know about an agent. */
export interface AgentStatus extends AgentState {
  /** The process that runs, or null. */
  readonly pid: number | null;
  /** Applies whose results the orchestrator has not acknowledged; null when the journal is damaged. */
  readonly journal_unacknowledged: number | null;
  /** Of these, the ones that have not ended. */
  readonly journal_running: number | null;
  /** Reloads, restarts and reruns that the next apply has to do. */
  readonly journal_owed: number | null;
  readonly journal_bytes: number | null;
  readonly journal_error: string | null;
}

/** The last written state, the process that keeps it, and what is in the journal. Throws `data_dir_invalid`. */
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

/** Where the orchestrator was when the agent ran before; null when that is not known. */
export function lastOrchestrator(dataDir: string): Target | null {
  try {
    const { orchestrator } = readState(dataDir);
    return typeof orchestrator === 'string' ? parseTarget(orchestrator) : null;
  } catch {
    return null;
  }
}

function readState(dataDir: string): AgentState {
  try {
    const state = JSON.parse(readFileSync(join(dataDir, FILE), 'utf8')) as AgentState;
    // An older agent wrote no hint.
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

/** Forgets the pinned orchestrator. Throws `agent_running` while an agent uses the directory, `data_dir_invalid` when none is there. */
export function repin(dataDir: string, pinFile: string): void {
  if (!['identity.key', pinFile].some((name) => existsSync(join(dataDir, name)))) {
    throw new Fault('data_dir_invalid', `there is no agent in ${dataDir}`, {
      hint: 'name its directory with --data-dir',
    });
  }
  const pid = holderOf(dataDir)?.pid ?? null;
  if (pid !== null) {
    throw new Fault('agent_running', `the agent of ${dataDir} runs as process ${pid}`, {
      hint: 'stop it first, then repin, then start it with the new key',
      data: { pid },
    });
  }
  rmSync(join(dataDir, pinFile), { force: true });
}
