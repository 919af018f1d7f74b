/**
 * The trial of a new release: switches to it, restarts the agent, and switches back unless the agent reaches the orchestrator in
 * time. It runs from the old release as a service of its own, so it survives the agent and a restart of the machine.
 */
import { readlinkSync, rmSync } from 'node:fs';
import { join, sep } from 'node:path';
import { messageOf } from '../../kernel/fault.js';
import { currentRelease, pruneReleases, RELEASE_PLACES, switchRelease } from '../../release/installed-releases.js';
import { lastLogLines, type Systemctl } from '../../service/systemd.js';
import { UNIT_PLACES } from '../../service/unit-files.js';
import { AGENT_UNIT, UPGRADE_UNIT } from '../../service/units.js';
import { readAgentState, writeAgentState } from '../agent-status.js';
import { readUpgrade, type UpgradeRecord, writeUpgrade } from './upgrade-record.js';

interface TrialTools {
  readonly dataDir: string;
  readonly systemctl: Systemctl;
}

/** An upgrade whose release is on the disk. */
type OnTrial = UpgradeRecord & { readonly trial: NonNullable<UpgradeRecord['trial']> };

const places = RELEASE_PLACES;
const LOOK_MS = 500;
/** Trials after which an upgrade that is interrupted each time is given up. */
const TRIALS_MAX = 3;
/** Unplanned restarts of the new agent after which it counts as broken. */
const RESTARTS_MAX = 3;
/** Lines of the new agent's log in the report of a failure, and most characters of them. */
const LOG_LINES = 8;
const LOG_CHARACTERS = 4_000;

/** Tries the release of the agent's record, writes there how it ended, and removes the service of the trial. */
export async function runTrial(tools: TrialTools): Promise<void> {
  const record = readUpgrade(tools.dataDir);
  if (record !== null && record.state === 'switching' && record.trial !== null) {
    try {
      await tryRelease(tools, { ...record, trial: { ...record.trial, begun: record.trial.begun + 1 } });
    } catch (error) {
      // Such as a full disk: an agent has to run while the trial is repeated, so that operators can reach the machine.
      await tools.systemctl('start', AGENT_UNIT);
      throw error;
    }
  } else if (record?.state === 'rolled_back') {
    // The roll-back was interrupted before the old agent had started.
    await tools.systemctl('restart', AGENT_UNIT);
  }
  await removeUnit(tools.systemctl);
}

async function tryRelease(tools: TrialTools, record: OnTrial): Promise<void> {
  const { dataDir } = tools;
  const { trial } = record;
  writeUpgrade(dataDir, record);
  const why = trial.begun > TRIALS_MAX ? 'each of its trials was interrupted' : await failureOf(tools, record);
  if (why !== null) return rollBack(tools, record, why);
  writeUpgrade(dataDir, { ...record, state: 'succeeded' });
  pruneReleases([trial.release, ...(trial.previous === null ? [] : [trial.previous])], places);
}

/** Switches and restarts. Returns why the new release cannot stay; null once its agent has reached the orchestrator. */
async function failureOf(tools: TrialTools, { trial }: OnTrial): Promise<string | null> {
  const { dataDir, systemctl } = tools;
  try {
    await systemctl('stop', AGENT_UNIT);
    // An agent that was killed leaves a file that says it is connected.
    noteStopped(dataDir);
    switchRelease(trial.release, places);
    await systemctl('start', AGENT_UNIT);
  } catch (error) {
    return messageOf(error);
  }
  const end = performance.now() + trial.seconds * 1000;
  const restartsBefore = await restartsOf(systemctl);
  let last: string | null = null;
  while (performance.now() < end) {
    const state = stateOf(dataDir, trial.release);
    if (state?.hasReached) return null;
    last = state?.lastError ?? last;
    if ((await restartsOf(systemctl)) - restartsBefore >= RESTARTS_MAX) return 'the new agent ends again and again';
    await new Promise((done) => setTimeout(done, LOOK_MS));
  }
  const detail = last === null ? '' : `: ${last}`;
  return `the new agent did not reach the orchestrator within ${trial.seconds} seconds${detail}`;
}

function noteStopped(dataDir: string): void {
  const { node_id, orchestrator_key, orchestrator, name, since } = readAgentState(dataDir);
  const state = { node_id, orchestrator_key, orchestrator, name, since, last_error: null, hint: null };
  writeAgentState(dataDir, { ...state, link: 'stopped' });
}

/** Returns what the agent of a release says; null while another one runs, or none. */
function stateOf(dataDir: string, release: string): { hasReached: boolean; lastError: string | null } | null {
  try {
    const { pid, link, last_error: lastError } = readAgentState(dataDir);
    if (pid === null || !readlinkSync(`/proc/${pid}/exe`).startsWith(`${release}${sep}`)) return null;
    return { hasReached: ['connected', 'pending', 'rejected'].includes(link), lastError };
  } catch {
    return null;
  }
}

/** Returns how often systemd has restarted the agent by itself. */
async function restartsOf(systemctl: Systemctl): Promise<number> {
  const shown = await systemctl('show', '--property=NRestarts', '--value', AGENT_UNIT).catch(() => '0');
  return Number(shown.trim()) || 0;
}

async function rollBack({ dataDir, systemctl }: TrialTools, record: OnTrial, why: string): Promise<void> {
  const { trial } = record;
  const log = (await lastLogLines(AGENT_UNIT, LOG_LINES)).join('\n').slice(-LOG_CHARACTERS);
  if (currentRelease(places) !== trial.previous) switchRelease(trial.previous, places);
  const said = log === '' ? '' : `; its log ends with:\n${log}`;
  const error = { code: 'upgrade_failed', message: `${why}${said}` };
  try {
    writeUpgrade(dataDir, { ...record, state: 'rolled_back', error });
  } finally {
    await systemctl('restart', AGENT_UNIT);
  }
  if (trial.release !== trial.previous) rmSync(trial.release, { recursive: true, force: true });
}

/** Removes the unit of the trial, which runs until the end of this process. */
async function removeUnit(systemctl: Systemctl): Promise<void> {
  await systemctl('disable', UPGRADE_UNIT);
  rmSync(join(UNIT_PLACES.own, UPGRADE_UNIT), { force: true });
  await systemctl('daemon-reload');
}
