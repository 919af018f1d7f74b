/** Installs and removes the services of this host: wires units, settings files and systemd together. */
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmdirSync,
  rmSync,
  statSync,
} from 'node:fs';
import { hostname, networkInterfaces } from 'node:os';
import { dirname, join } from 'node:path';
import { readAgentState } from '../src/agent/agent-status.js';
import { TOKEN_FILE } from '../src/agent/first-contact.js';
import { formatAddress, parseAddress } from '../src/agent/link/orchestrator-address.js';
import { writeOwnFile } from '../src/client/operator-files.js';
import { holderOf } from '../src/identity/data-directory.js';
import { Fault, messageOf, systemCodeOf } from '../src/kernel/fault.js';
import type {
  AgentInstallRequest,
  InstalledAgent,
  InstalledServe,
  ServeInstallPlan,
  ServeInstallRequest,
  ServicePrograms,
  UninstalledService,
} from '../src/programs/service.js';
import { realOf } from '../src/release/installed-releases.js';
import { hasSystemd, systemctl } from '../src/service/systemd.js';
import { startUnit, stopUnit, UNIT_PLACES, waitFor } from '../src/service/unit-files.js';
import {
  AGENT_UNIT,
  agentUnit,
  READY_FILE,
  SERVE_DATA_DIR,
  SERVE_UNIT,
  SERVE_USER,
  serveUnit,
  UPGRADE_UNIT,
} from '../src/service/units.js';
import { isUnknownName } from '../src/settings/advertised-host.js';
import { AGENT_SETTINGS } from '../src/settings/agent.js';
import { editSettings } from '../src/settings/edit-settings.js';
import { SERVE_SETTINGS } from '../src/settings/serve.js';
import { parseSettings } from '../src/settings/yaml-settings.js';
import { ROOT_CONFIG as AGENT_CONFIG, ROOT_DATA_DIR as AGENT_DATA_DIR, credentialsOf, keyOf } from './agent.js';

const SERVE_CONFIG = '/etc/orch/orchestrator.yaml';
/** The command of a Linux package, and the directory of its release. */
const PACKAGED = { launcher: '/usr/bin/orch', release: '/usr/lib/orch' };
/** Releases that were installed without a Linux package, or that an upgrade has brought. */
const UNPACKAGED = { directory: '/opt/orch', launcher: '/opt/orch/current/bin/orch', link: '/usr/local/bin/orch' };

const tools = { systemctl, places: UNIT_PLACES };

export const service: ServicePrograms = {
  isUnknownName: (host) => isUnknownName(host),
  planServe: async () => {
    requireRoot('orch serve install');
    return planServe();
  },
  installServe: async (request) => {
    requireRoot('orch serve install');
    return installServe(request);
  },
  uninstallServe: async () => {
    requireRoot('orch serve uninstall');
    const unitFile = await stopUnit(tools, SERVE_UNIT);
    return uninstalled(SERVE_UNIT, unitFile, [SERVE_DATA_DIR, SERVE_CONFIG]);
  },
  installAgent: async (request) => {
    requireRoot('orch agent install');
    return installAgent(request);
  },
  uninstallAgent: async ({ purge }) => {
    requireRoot('orch agent uninstall');
    // The trial of an upgrade would start the agent again.
    await stopUnit(tools, UPGRADE_UNIT);
    const unitFile = await stopUnit(tools, AGENT_UNIT);
    rmSync(join(AGENT_DATA_DIR, TOKEN_FILE), { force: true });
    if (purge) purgeAgent();
    return uninstalled(AGENT_UNIT, unitFile, [AGENT_DATA_DIR, AGENT_CONFIG]);
  },
};

/** Deletes what the agent has on this machine, and the program itself unless a Linux package or an orchestrator needs it. */
function purgeAgent(): void {
  const holder = holderOf(AGENT_DATA_DIR);
  if (holder !== null) {
    throw new Fault(
      'agent_running',
      `the agent of ${AGENT_DATA_DIR} runs as process ${holder.pid}, outside of the service`,
      {
        hint: 'the service is removed and nothing was deleted; stop that process, then uninstall again',
      },
    );
  }
  rmSync(AGENT_DATA_DIR, { recursive: true, force: true });
  rmSync(AGENT_CONFIG, { force: true });
  if (isPackaged() || existsSync(join(UNIT_PLACES.own, SERVE_UNIT))) return;
  removeIfEmpty(dirname(AGENT_CONFIG));
  if (linkOf(UNPACKAGED.link) === UNPACKAGED.launcher) rmSync(UNPACKAGED.link);
  rmSync(UNPACKAGED.directory, { recursive: true, force: true });
}

function removeIfEmpty(directory: string): void {
  if (existsSync(directory) && readdirSync(directory).length === 0) rmdirSync(directory);
}

/** Returns the target of a symbolic link; null for anything else. */
function linkOf(path: string): string | null {
  try {
    return readlinkSync(path);
  } catch {
    return null;
  }
}

function requireRoot(command: string): void {
  if (!hasSystemd()) {
    throw new Fault(
      'unsupported_on_platform',
      'this machine is not run by systemd, and services are installed for systemd alone',
      {
        hint: 'let the service manager of this machine run "orch serve" or "orch agent"',
      },
    );
  }
  if (process.geteuid?.() === 0) return;
  throw new Fault('permission_denied', 'only root can install and remove services of this machine', {
    hint: `sudo ${command}`,
  });
}

const uninstalled = (unit: string, unitFile: string | null, files: readonly string[]): UninstalledService => ({
  unit,
  unit_file: unitFile,
  kept: files.filter((file) => existsSync(file)),
});

function planServe(): ServeInstallPlan {
  const settings = parseSettings(SERVE_SETTINGS, { ...configText(SERVE_CONFIG), hint: `correct ${SERVE_CONFIG}` });
  const text = (key: string) => (typeof settings[key] === 'string' ? settings[key] : undefined);
  return {
    hasStore: existsSync(join(SERVE_DATA_DIR, 'identity.key')),
    addresses: [hostname(), ...ownAddresses()],
    settings: {
      api_host: text('api_host'),
      agent_host: text('agent_host'),
      advertised_host: text('advertised_host'),
    },
    configFile: SERVE_CONFIG,
  };
}

const ownAddresses = (): readonly string[] =>
  Object.values(networkInterfaces())
    .flatMap((all) => all ?? [])
    .filter(({ internal, address }) => !internal && !address.startsWith('fe80:'))
    .map(({ address }) => address);

async function installServe({ settings, bootstrap }: ServeInstallRequest): Promise<InstalledServe> {
  const orch = ownCommand();
  makeUser();
  requireReadable(orch);
  writeConfig(SERVE_CONFIG, {
    ...settings,
    ...(bootstrap === null ? {} : { bootstrap_key: bootstrap.publicKey, bootstrap_username: bootstrap.username }),
  });
  rmSync(READY_FILE, { force: true });
  const unitFile = await startUnit(tools, SERVE_UNIT, serveUnit(orch));
  const ready = await waitFor(systemctl, SERVE_UNIT, readReadyFile);
  const local = new URL(ready.api_url);
  // Listening on a single address of the network, the API does not answer on loopback.
  if (['0.0.0.0', '::', undefined].includes(settings.api_host)) local.hostname = '127.0.0.1';
  return {
    unit: SERVE_UNIT,
    unit_file: unitFile,
    api_url: ready.api_url,
    local_url: local.href.replace(/\/$/, ''),
    agent_address: ready.agent_address,
    tls_fingerprint: ready.tls_fingerprint,
    public_key: ready.public_key,
  };
}

interface Ready {
  readonly api_url: string;
  readonly agent_address: string;
  readonly tls_fingerprint: string | null;
  readonly public_key: string;
}

function readReadyFile(): Ready | null {
  try {
    return JSON.parse(readFileSync(READY_FILE, 'utf8')) as Ready;
  } catch {
    return null;
  }
}

/** Creates the system user of the orchestrator, as the package does. */
function makeUser(): void {
  if (spawnSync('getent', ['passwd', SERVE_USER]).status === 0) return;
  const words = [
    '--system',
    '--home-dir',
    SERVE_DATA_DIR,
    '--no-create-home',
    '--shell',
    '/usr/sbin/nologin',
    SERVE_USER,
  ];
  const { status, stderr, error } = spawnSync('useradd', words, { encoding: 'utf8' });
  if (status === 0) return;
  throw new Fault('service_failed', `the user ${SERVE_USER} cannot be created: ${error?.message ?? stderr.trim()}`, {
    hint: `create the system user ${SERVE_USER} yourself, then try again`,
  });
}

const isPackaged = (): boolean => existsSync(PACKAGED.launcher) && existsSync(PACKAGED.release);

/**
 * Returns the words that start this very command: a launcher whose path stays the same over upgrades, else the runtime and the
 * program.
 */
function ownCommand(): readonly string[] {
  const { execPath } = process;
  const isRelease = [PACKAGED.release, `${UNPACKAGED.directory}/releases`].some((place) =>
    execPath.startsWith(`${realOf(place)}/`),
  );
  if (isRelease) return [isPackaged() ? PACKAGED.launcher : UNPACKAGED.launcher];
  return [process.execPath, realpathSync(process.argv[1] ?? '')];
}

/** Throws `service_failed` when the user of the orchestrator cannot read the command, as below a home directory. */
function requireReadable(orch: readonly string[]): void {
  const hidden = orch.find((path) => /^\/(root|home|run\/user)\//.test(path) || !isReadableByAll(path));
  if (hidden === undefined) return;
  throw new Fault('service_failed', `the user ${SERVE_USER}, who runs the orchestrator, cannot read ${hidden}`, {
    hint: 'install orch where every user can read it: from a package, or with "npm install --global" of a Node.js outside of home directories',
  });
}

/** Returns true when the modes of a file and of all directories above it let everyone read it. */
function isReadableByAll(path: string): boolean {
  const directories: string[] = [];
  for (let place = dirname(path); place !== dirname(place); place = dirname(place)) directories.push(place);
  return (statSync(path).mode & 0o004) !== 0 && directories.every((place) => (statSync(place).mode & 0o001) !== 0);
}

async function installAgent(request: AgentInstallRequest): Promise<InstalledAgent> {
  const { target, token, trustOnFirstUse, hostname: name, terminals } = request;
  const address = target === undefined ? undefined : formatAddress(parseAddress(target));
  const key = keyOf(request);
  // Refuses a wrong token now, while a person is there to read it.
  credentialsOf(token, key);
  // A broken file would keep the service from starting, and must not be written over.
  parseSettings(AGENT_SETTINGS, { ...configText(AGENT_CONFIG), hint: `correct ${AGENT_CONFIG}` });
  if (terminals !== undefined) writeConfig(AGENT_CONFIG, { 'remote_terminal.enabled': terminals });
  mkdirSync(AGENT_DATA_DIR, { recursive: true, mode: 0o700 });
  chmodSync(AGENT_DATA_DIR, 0o700);
  if (token !== undefined) writeOwnFile(join(AGENT_DATA_DIR, TOKEN_FILE), `${token.trim()}\n`);
  const words = [
    ...(address === undefined ? [] : ['connect', address]),
    ...(key === undefined ? [] : ['--orchestrator-key', key]),
    ...(trustOnFirstUse ? ['--trust-on-first-use'] : []),
    ...(name === undefined ? [] : ['--hostname', name]),
  ];
  const began = Date.now();
  const unitFile = await startUnit(tools, AGENT_UNIT, agentUnit(ownCommand(), words));
  const state = await waitFor(systemctl, AGENT_UNIT, () => settledState(began, address === undefined));
  return { unit: AGENT_UNIT, unit_file: unitFile, ...state };
}

type AgentReport = Pick<InstalledAgent, 'node_id' | 'orchestrator' | 'link' | 'last_error' | 'hint'>;

/** Milliseconds for which an agent may try before its first failure counts as the answer. */
const TRYING_MS = 5_000;

/** Returns the state of the agent once it says something: that it is connected, waits, or what it failed with. */
function settledState(began: number, waitsForDiscovery: boolean): AgentReport | null {
  try {
    const { node_id, orchestrator, link, since, last_error, hint, pid } = readAgentState(AGENT_DATA_DIR);
    const isNew = pid !== null && Date.parse(since) >= began - 1000;
    const isSettled = ['connected', 'pending', 'rejected', 'untrusted'].includes(link);
    const hasFailed = last_error !== null && Date.now() - began > TRYING_MS;
    const waits = waitsForDiscovery && link === 'searching';
    return isNew && (isSettled || hasFailed || waits) ? { node_id, orchestrator, link, last_error, hint } : null;
  } catch {
    return null;
  }
}

/** Returns the text of a settings file, empty for a missing one. Throws `invalid_config` for one that cannot be read. */
function configText(path: string): { readonly source: string; readonly path: string } {
  try {
    return { source: readFileSync(path, 'utf8'), path };
  } catch (cause) {
    if (systemCodeOf(cause) === 'ENOENT') return { source: '', path };
    throw new Fault('invalid_config', `${path} cannot be read: ${messageOf(cause)}`, { cause });
  }
}

/** Changes settings in a file of `/etc/orch`, which everyone may read. */
function writeConfig(path: string, changes: Readonly<Record<string, string | boolean | undefined>>): void {
  const { source } = configText(path);
  const text = editSettings(source, changes);
  if (text === source) return;
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o755 });
    writeOwnFile(path, text);
    chmodSync(path, 0o644);
  } catch (cause) {
    throw new Fault('invalid_config', `${path} cannot be written: ${messageOf(cause)}`, { cause });
  }
}
