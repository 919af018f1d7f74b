/** The agent of this machine, as `orch doctor` sees it. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type AgentStatus, readAgentState } from '../../src/agent/agent-status.js';
import { PIN_FILE, TOKEN_FILE } from '../../src/agent/first-contact.js';
import { readLoss } from '../../src/agent/journal/journal-loss.js';
import { inspectJournal } from '../../src/agent/journal/read-journal.js';
import { permissionsOf } from '../../src/agent/permissions.js';
import { configDirectory } from '../../src/client/operator-files.js';
import { holderOf } from '../../src/identity/data-directory.js';
import { readPin } from '../../src/identity/pin.js';
import { loadKey } from '../../src/identity/private-key.js';
import { systemCodeOf } from '../../src/kernel/fault.js';
import { type DoctorCheck, failure, guarded, note, ok, problem, warning } from '../../src/programs/doctor-check.js';
import { AGENT_UNIT } from '../../src/service/units.js';
import { AGENT_DEFAULTS, AGENT_SETTINGS, type AgentSettings } from '../../src/settings/agent.js';
import { parseSettings } from '../../src/settings/yaml-settings.js';
import { dataDirOf, ROOT_CONFIG, ROOT_DATA_DIR } from '../agent.js';
import {
  directoryChecks,
  diskCheck,
  mayLook,
  runningVersion,
  serviceCheck,
  type UnitState,
  unitState,
} from './places.js';
import type { Needs } from './runtime.js';

/** Free bytes that contents of modules and the journal may need. */
const ENOUGH_DISK = 256 * 2 ** 20;

/** Checks the agent, if this machine has one. Notes in `needs` whether it opens terminals. */
export async function examineAgent(needs: Needs): Promise<readonly DoctorCheck[]> {
  const unit = await unitState(AGENT_UNIT);
  const path = placeOf(unit);
  if (!existsSync(path)) {
    if (unit?.isUsed) return [serviceCheck({ of: 'agent', unit: AGENT_UNIT, state: unit, pid: null })];
    const install = 'to manage this machine: orch enroll create on the orchestrator, and here: orch agent install';
    return [note('agent', 'this machine has none', install)];
  }
  if (!mayLook(path)) {
    const service = serviceCheck({ of: 'agent', unit: AGENT_UNIT, state: unit, pid: null });
    return [
      ...(unit?.isUsed ? [service] : []),
      note('agent data', `${path} is closed to this user`, 'sudo orch doctor'),
    ];
  }
  if (!existsSync(join(path, 'identity.key'))) {
    return [note('agent', `none has run with ${path} yet`, 'orch agent install, or orch agent connect HOST')];
  }
  const pid = holderOf(path)?.pid ?? null;
  return [
    serviceCheck({ of: 'agent', unit: AGENT_UNIT, state: unit, pid }),
    ...runningVersion('agent', AGENT_UNIT, pid),
    ...(await guarded('agent link', () => linkChecks(path))),
    ...(await guarded('agent settings', () => settingsChecks(needs))),
    ...(await guarded('agent data', () => directoryChecks({ of: 'agent', path, secret: SECRET }))),
    ...(await guarded('agent key', () => keyChecks(path))),
    ...(await guarded('agent journal', () => journalChecks(path))),
    ...(await guarded('agent disk', () => [diskCheck({ of: 'agent', path, enough: ENOUGH_DISK })])),
  ];
}

/** Files of the agent's directory that contain secrets, or what its fleet does. */
const SECRET = ['identity.key', 'journal', 'state.json', PIN_FILE, TOKEN_FILE];

/** Returns the data directory: that of the service if there is one, else that of an agent of this user. */
function placeOf(unit: UnitState | null): string {
  const own = dataDirOf({ dataDir: undefined });
  if (process.env.ORCH_AGENT_DATA_DIR !== undefined) return own;
  return unit?.isUsed || !existsSync(own) ? ROOT_DATA_DIR : own;
}

function linkChecks(path: string): readonly DoctorCheck[] {
  if (!existsSync(join(path, 'state.json'))) return [note('agent link', 'the agent has not tried to connect yet')];
  return [linkCheck(readAgentState(path))];
}

function linkCheck({ link, orchestrator, since, last_error, hint, node_id }: AgentStatus): DoctorCheck {
  const name = 'agent link';
  const where = orchestrator ?? 'an orchestrator that it does not know yet';
  const why = last_error === null ? '' : `: ${last_error}`;
  switch (link) {
    case 'connected':
      return ok(name, `connected to ${where} since ${since}`);
    case 'stopped':
      return note(
        name,
        `the agent does not run${last_error === null ? '' : `; its last error was: ${last_error}`}`,
        hint,
      );
    case 'pending':
      return warning(name, `waits for approval at ${where}`, `orch agents approve ${node_id}`);
    case 'searching':
      return warning(
        name,
        'waits for a discovery packet',
        'orch discover on the orchestrator, or orch agent install HOST',
      );
    case 'rejected':
      return problem(name, `${where} has rejected it`, `orch agents approve ${node_id}, or orch agent leave`);
    default:
      return problem(name, `not connected to ${where} (${link})${why}`, hint ?? `see: journalctl -u ${AGENT_UNIT}`);
  }
}

function settingsChecks(needs: Needs): readonly DoctorCheck[] {
  const own = join(configDirectory(process.env), 'agent.yaml');
  const path = process.env.ORCH_AGENT_CONFIG ?? (process.geteuid?.() === 0 || !existsSync(own) ? ROOT_CONFIG : own);
  const name = 'agent settings';
  let source: string;
  try {
    source = readFileSync(path, 'utf8');
  } catch (error) {
    if (systemCodeOf(error) === 'ENOENT')
      return [ok(name, `the defaults, as there is no ${path}; ${permissionText(AGENT_DEFAULTS)}`)];
    return [failure(name, error, `let the user of the agent read ${path}`)];
  }
  const fix = `correct ${path}; until then a running agent keeps the settings of before, and does not start again`;
  try {
    const settings = parseSettings(AGENT_SETTINGS, { source, path, hint: fix });
    needs.terminals = settings['remote_terminal.enabled'] === true;
    return [ok(name, `${path} is valid; ${permissionText({ ...AGENT_DEFAULTS, ...settings })}`)];
  } catch (error) {
    return [failure(name, error)];
  }
}

function permissionText(settings: AgentSettings): string {
  const permissions = permissionsOf(settings);
  const { permits_terminal: terminal, permits_forward: forward, permits_ssh_proxy: proxy } = permissions;
  const copy = permissions.permits_copy === 'no' ? 'copy nothing' : permissions.permits_copy;
  const terminals = `terminals are ${terminal === 'no' ? 'off' : `on${terminal === 'yes' ? '' : ` ${terminal}`}`}`;
  return `${terminals}; orch forward may reach ${reach(forward)}, and orch ssh-proxy ${reach(proxy)}; orch cp may ${copy}`;
}

const reach = (targets: string): string => (targets === 'no' ? 'nothing' : targets);

function keyChecks(path: string): readonly DoctorCheck[] {
  const pinned = readPin(join(path, PIN_FILE));
  loadKey(join(path, 'identity.key'));
  return [ok('agent key', pinned === null ? 'whole; no orchestrator is pinned yet' : `whole; it trusts ${pinned}`)];
}

function journalChecks(path: string): readonly DoctorCheck[] {
  const name = 'agent journal';
  const { unacknowledged, owed, bytes } = inspectJournal(path);
  const loss = readLoss(path);
  if (loss !== null) return [warning(name, loss, 'check the disk; the loss is reported at the next connection')];
  return [ok(name, `whole: ${bytes} bytes, ${unacknowledged} applies to report, ${owed} triggers owed`)];
}
