/** `orch agent`: wires the agent to this process. */

import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { type AgentOptions, runAgent } from '../src/agent/agent.js';
import { readAgentState } from '../src/agent/agent-status.js';
import { createEngine } from '../src/agent/engine/engine-thread.js';
import { repin as forgetPin, type OfferedToken, TOKEN_FILE } from '../src/agent/first-contact.js';
import {
  type AgentUnit,
  type LeaveOptions,
  leave as leaveFleet,
  planLeave as whatLeavesFleet,
} from '../src/agent/leave.js';
import { parseAddress } from '../src/agent/link/orchestrator-address.js';
import { permissionsOf } from '../src/agent/permissions.js';
import { AgentSettingsFile } from '../src/agent/settings-file.js';
import { createForwards, createTerminals } from '../src/agent/terminal/create-terminals.js';
import { configDirectory } from '../src/client/operator-files.js';
import { accountHome } from '../src/identity/account-home.js';
import { groupsOfFour } from '../src/identity/key-object.js';
import { readPrivateFile } from '../src/identity/private-file.js';
import { parsePublicKey } from '../src/identity/public-key.js';
import { Fault, isFault } from '../src/kernel/fault.js';
import { xdgDirectory } from '../src/kernel/home-directory.js';
import type { PublicKeyHex } from '../src/kernel/ids.js';
import type {
  AgentConnectFlags,
  AgentFlags,
  AgentLeaving,
  AgentListenFlags,
  AgentRunFlags,
  AgentStatus,
} from '../src/programs/agent.js';
import { systemctl } from '../src/service/systemd.js';
import { stopUnit, UNIT_PLACES } from '../src/service/unit-files.js';
import { UPGRADE_UNIT } from '../src/service/units.js';
import { AGENT_SETTINGS } from '../src/settings/agent.js';
import { jsonSchemaOf } from '../src/settings/setting.js';
import { DISCOVERY } from '../src/wire/discovery-packet.js';
import { parseEnrolmentToken } from '../src/wire/enrolment-token.js';
import { createLogger } from './log.js';
import { stopSignal, systemClock } from './this-process.js';

export async function connect(given: AgentConnectFlags): Promise<number> {
  const flags = withVariables(given);
  return runUntilStopped(flags, { target: parseAddress(flags.target), ask: flags.confirmKey });
}

export async function listen(given: AgentListenFlags): Promise<number> {
  const flags = withVariables(given);
  const discoveryPort = flags.port ?? portOf(process.env.ORCH_AGENT_PORT) ?? DISCOVERY.port;
  if (discoveryPort > 65_535) throw new Fault('usage', `--port ${discoveryPort} is no port`);
  // No question about the key: the packet may come from any sender, and usually without a person at the terminal.
  return runUntilStopped(flags, { target: { discoveryPort }, ask: null });
}

async function runUntilStopped(flags: AgentRunFlags, how: Pick<AgentOptions, 'target' | 'ask'>): Promise<number> {
  process.umask(0o077);
  const logger = createLogger({
    level: 'info',
    format: 'auto',
    destination: process.stderr,
  });
  const signal = stopSignal();
  const dataDir = dataDirOf(flags);
  const file = await AgentSettingsFile.open({ ...configOf(flags), logger });
  file.watch(signal);
  await runAgent(
    {
      ...how,
      dataDir,
      ...credentialsOf(
        flags.token ?? tokenFileOf(dataDir),
        keyOf(flags),
        flags.token === undefined ? join(dataDir, TOKEN_FILE) : null,
      ),
      trustOnFirstUse: flags.trustOnFirstUse,
      endsUntrusted: !isOfServiceManager(),
      hostname: flags.hostname,
      logger,
      clock: systemClock,
      random: Math.random,
      createEngine: (dataDir) => createEngine({ dataDir, logger, file }),
      createForwards: (dataDir) => createForwards({ dataDir, logger, file }),
      createTerminals: (dataDir) => createTerminals({ dataDir, logger, file }),
      permissions: () => permissionsOf(file.settings),
      metrics: () => ({
        enabled: file.settings['metrics.enabled'],
        interval: file.settings['metrics.collection_interval'],
      }),
      factsDirectory: () => file.settings['facts.directory'],
    },
    signal,
  );
  return 0;
}

/** systemd sets INVOCATION_ID. A shell may inherit it from the unit of its terminal program, so a TTY excludes it. */
const isOfServiceManager = (): boolean => process.env.INVOCATION_ID !== undefined && !process.stderr.isTTY;

export async function status(flags: AgentFlags): Promise<AgentStatus> {
  const state = readAgentState(dataDirOf(flags));
  return { ...state, node_id_groups: groupsOfFour(state.node_id) };
}

export async function repin(flags: AgentFlags): Promise<void> {
  forgetPin(dataDirOf(flags));
}

export const planLeave = async (flags: AgentFlags): Promise<AgentLeaving> => whatLeavesFleet(leaveOptions(flags));

export async function leave(flags: AgentFlags): Promise<AgentLeaving> {
  const options = leaveOptions(flags);
  // The trial of an upgrade would start the agent again.
  if (options.dataDir === ROOT_DATA_DIR && process.geteuid?.() === 0) {
    await stopUnit({ systemctl, places: UNIT_PLACES }, UPGRADE_UNIT);
  }
  return leaveFleet(options);
}

const leaveOptions = (flags: AgentFlags): LeaveOptions => ({
  dataDir: dataDirOf(flags),
  unit: process.platform === 'linux' ? UNIT : null,
  systemctl,
});

export const configSchema = async (): Promise<object> =>
  jsonSchemaOf(AGENT_SETTINGS, { id: 'urn:orch:schema:agent-config:v1', title: 'Configuration of orch agent' });

export const ROOT_DATA_DIR = '/var/lib/orch-agent';
const UNIT: AgentUnit = {
  name: 'orch-agent.service',
  path: '/etc/systemd/system/orch-agent.service',
  standardDataDir: ROOT_DATA_DIR,
};
export const ROOT_CONFIG = '/etc/orch/agent.yaml';

/** Returns the settings file: `/etc/orch/agent.yaml` for root, otherwise one in the user's configuration directory. */
function configOf({ config }: AgentRunFlags): { readonly path: string; readonly isOptional: boolean } {
  const named = config ?? process.env.ORCH_AGENT_CONFIG;
  if (named !== undefined) return { path: resolve(named), isOptional: false };
  const standard = process.geteuid?.() === 0 ? ROOT_CONFIG : join(configDirectory(process.env), 'agent.yaml');
  return { path: standard, isOptional: true };
}

const VARIABLES = ['CONFIG', 'DATA_DIR', 'HOSTNAME', 'ORCHESTRATOR_KEY', 'PORT', 'TOKEN', 'TRUST_ON_FIRST_USE'].map(
  (name) => `ORCH_AGENT_${name}`,
);

/** Adds environment variables to the flags, which take precedence. Throws `invalid_config` for an unknown variable. */
function withVariables<F extends AgentRunFlags>(flags: F): F {
  const { env } = process;
  const unknown = Object.keys(env).filter((name) => name.startsWith('ORCH_AGENT_') && !VARIABLES.includes(name));
  if (unknown.length > 0) {
    throw new Fault('invalid_config', `unknown environment variable ${unknown.join(', ')}`, {
      hint: `the agent knows ${VARIABLES.join(', ')}`,
    });
  }
  const trust = env.ORCH_AGENT_TRUST_ON_FIRST_USE;
  return {
    ...flags,
    hostname: flags.hostname ?? env.ORCH_AGENT_HOSTNAME,
    orchestratorKey: flags.orchestratorKey ?? env.ORCH_AGENT_ORCHESTRATOR_KEY,
    token: flags.token ?? env.ORCH_AGENT_TOKEN,
    trustOnFirstUse: flags.trustOnFirstUse || trust === 'true' || trust === '1',
  };
}

/** Parses `--orchestrator-key`. Throws `usage`. */
export function keyOf({ orchestratorKey }: Pick<AgentRunFlags, 'orchestratorKey'>): PublicKeyHex | undefined {
  if (orchestratorKey === undefined) return undefined;
  try {
    return parsePublicKey(orchestratorKey, '--orchestrator-key');
  } catch (error) {
    if (!isFault(error)) throw error;
    throw new Fault('usage', error.message, {
      hint: error.hint ?? 'it is in the first log line of orch serve',
      cause: error,
    });
  }
}

/** Parses a port. Throws `invalid_config`. */
function portOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (/^\d{1,5}$/.test(text)) return Number(text);
  throw new Fault('invalid_config', `ORCH_AGENT_PORT is no port: ${JSON.stringify(text)}`);
}

/** Returns `/var/lib/orch-agent` for root, otherwise a directory below the user's state directory. */
export function dataDirOf(flags: AgentFlags): string {
  const dataDir = flags.dataDir ?? process.env.ORCH_AGENT_DATA_DIR;
  if (dataDir !== undefined) return resolve(dataDir);
  if (process.geteuid?.() === 0) return ROOT_DATA_DIR;
  return join(xdgDirectory(process.env, 'XDG_STATE_HOME', accountHome), 'orch', 'agent');
}

/** Returns the token that the installation of the service has left in the data directory. */
function tokenFileOf(dataDir: string): string | undefined {
  const file = join(dataDir, TOKEN_FILE);
  return existsSync(file) ? readPrivateFile(file) : undefined;
}

/** An enrolment token, and the key of its orchestrator. */
export interface Credentials {
  readonly enrolmentToken: OfferedToken | undefined;
  readonly orchestratorKey: PublicKeyHex | undefined;
}

/**
 * Parses an enrolment token.
 * @param key value of `--orchestrator-key`
 * @param file the file that contains the token, or null
 * @throws Fault `usage` without the token in its text
 */
export function credentialsOf(
  text: string | undefined,
  key: PublicKeyHex | undefined,
  file: string | null = null,
): Credentials {
  if (text === undefined) return { enrolmentToken: undefined, orchestratorKey: key };
  const token = parseEnrolmentToken(text.trim());
  if (token === null) {
    throw new Fault('usage', 'the value of --token is no enrolment token', {
      hint: 'it begins with orch-enroll-v1. and has 129 characters; copy the whole line that "orch enroll create" printed',
    });
  }
  const orchestratorKey = parsePublicKey(token.orchestratorKey, 'the key in the enrolment token');
  if (key !== undefined && key !== orchestratorKey) {
    throw new Fault('usage', 'the enrolment token belongs to another orchestrator than --orchestrator-key', {
      hint: `the token belongs to ${orchestratorKey}; leave --orchestrator-key out if that is the right one`,
    });
  }
  hide(text.trim());
  return { enrolmentToken: { text: text.trim(), file, orchestratorKey }, orchestratorKey };
}

/** Replaces the process title when it contains the token, because every user can list the arguments of a process. */
function hide(token: string): void {
  if (process.argv.some((word) => word.includes(token))) process.title = 'orch agent connect';
}
