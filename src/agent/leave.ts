/** `orch agent leave`: takes this machine out of its fleet, with the agent's service and data. */
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { holdDataDirectory, holderOf } from '../identity/data-directory.js';
import { Fault, isFault, messageOf, shellWord } from '../kernel/fault.js';
import type { AgentLeaving } from '../programs/agent.js';
import type { Systemctl } from '../service/systemd.js';

export interface LeaveOptions {
  readonly dataDir: string;
  /** Unit that may run the agent of this directory; null without systemd. */
  readonly unit: AgentUnit | null;
  readonly systemctl: Systemctl;
}

/** Returns what `leave` would remove, and changes nothing. Throws `data_dir_invalid` when systemd does not answer. */
export async function planLeave({ dataDir, unit, systemctl }: LeaveOptions): Promise<AgentLeaving> {
  const none = { data_dir: dataDir, service: null, service_kept: null };
  if (unit === null || !existsSync(unit.path)) return none;
  const hint = `nothing was changed; to leave without a look at the service, move ${unit.path} away`;
  const why = await attempt(hint, () => whyForeign(unit, dataDir, systemctl));
  return why === null ? { ...none, service: unit.name } : { ...none, service_kept: `${unit.name}: ${why}` };
}

/**
 * Stops and deletes the service, then deletes identity, pin, journal and everything else in the directory. Resources that
 * modules have applied stay.
 * @throws Fault `agent_running` when another process is the agent, `data_dir_invalid` without an agent or when a file cannot be deleted
 */
export async function leave(options: LeaveOptions): Promise<AgentLeaving> {
  const { dataDir, unit, systemctl } = options;
  if (!existsSync(join(dataDir, 'identity.key'))) {
    throw new Fault('data_dir_invalid', `there is no agent in ${dataDir}`, {
      hint: 'name its directory with --data-dir',
    });
  }
  const leaving = await planLeave(options);
  const service = leaving.service === null ? null : unit;
  refuseForeignHolder(dataDir, service);
  if (service) {
    const hint = `nothing was deleted; stop and disable the service by hand, then leave again`;
    await attempt(hint, () => systemctl('disable', '--now', service.name));
  }
  clear(dataDir, service);
  if (service) await deleteUnit(service, systemctl);
  return leaving;
}

/** Throws `agent_running` for an agent outside the service, which would keep running when the service stops. */
function refuseForeignHolder(dataDir: string, service: AgentUnit | null): void {
  const holder = holderOf(dataDir)?.pid ?? null;
  if (holder === null || (service !== null && runsIn(holder, service))) return;
  throw new Fault('agent_running', `the agent of ${dataDir} runs as process ${holder}`, {
    hint: 'nothing was changed; stop it first, then leave again',
  });
}

/** Deletes the identity first, so that an incomplete deletion leaves nothing that could connect. */
function clear(dataDir: string, service: AgentUnit | null): void {
  const so = service === null ? '' : `the service ${service.name} is stopped and disabled; `;
  const directory = hold(dataDir, so);
  try {
    const rest = readdirSync(dataDir).filter((name) => name !== 'lock' && name !== 'identity.key');
    for (const name of ['identity.key', ...rest]) rmSync(join(dataDir, name), { recursive: true, force: true });
    rmSync(dataDir, { recursive: true, force: true });
  } catch (cause) {
    const left = [dataDir, ...(service === null ? [] : [service.path])].map(shellWord).join(' ');
    throw new Fault('data_dir_invalid', `${dataDir} cannot be deleted: ${messageOf(cause)}`, {
      hint: `${so}delete by hand what is left: rm -r ${left}`,
      cause,
    });
  } finally {
    directory.release();
  }
}

function hold(dataDir: string, so: string) {
  try {
    return holdDataDirectory(dataDir, 'orch agent');
  } catch (cause) {
    if (!isFault(cause, 'data_dir_locked')) throw cause;
    throw new Fault('agent_running', `the agent of ${dataDir} runs: ${cause.message}`, {
      hint: `${so}nothing was deleted; stop that process, then leave again`,
      cause,
    });
  }
}

async function deleteUnit({ name, path }: AgentUnit, systemctl: Systemctl): Promise<void> {
  const so = 'the agent is deleted and its service stopped and disabled';
  await attempt(`${so}; delete ${path} by hand, then: systemctl daemon-reload`, () => rmSync(path, { force: true }));
  await attempt(`${so}, and ${name} deleted; all that is left to do: systemctl daemon-reload`, () =>
    systemctl('daemon-reload'),
  );
}

/** @param hint hint of the Fault `data_dir_invalid` that wraps a failure */
async function attempt<T>(hint: string, work: () => T | Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    throw new Fault('data_dir_invalid', messageOf(cause), { hint, cause });
  }
}

/** A systemd unit that may run the agent of a data directory. */
export interface AgentUnit {
  /** Such as `orch-agent.service`. */
  readonly name: string;
  /** Path of the unit file. */
  readonly path: string;
  /** Default data directory of an agent that runs as root. */
  readonly standardDataDir: string;
}

const PROPERTIES = ['LoadState', 'FragmentPath', 'ExecStart', 'Environment', 'EnvironmentFiles', 'User'];

/** Returns why a unit does not run the agent of a directory, or null; includes drop-ins, as systemd has read them. */
async function whyForeign(unit: AgentUnit, dataDir: string, systemctl: Systemctl): Promise<string | null> {
  const shown = await systemctl('show', `--property=${PROPERTIES.join(',')}`, unit.name);
  const values = (name: string) =>
    shown.split('\n').flatMap((line) => (line.startsWith(`${name}=`) ? [line.slice(name.length + 1)] : []));
  const value = (name: string) => values(name).join(' ');
  if (value('LoadState') !== 'loaded' || value('FragmentPath') !== unit.path)
    return `systemd has not loaded ${unit.path}`;
  const commands = [...value('ExecStart').matchAll(/argv\[\]=(.*?) ; ignore_errors=/g)].map(([, argv = '']) =>
    argv.split(' '),
  );
  const [words = []] = commands;
  if (commands.length !== 1 || !runsAgent(words)) return 'it does not run "orch agent"';
  const named = flagOf(words) ?? variableOf(value('Environment'), values('EnvironmentFiles'));
  const isRoot = ['', '0', 'root'].includes(value('User'));
  if (named === null && !isRoot) return `it runs the agent of user ${value('User')}`;
  const directory = named ?? unit.standardDataDir;
  return resolve(directory) === dataDir ? null : `it runs the agent of ${directory}`;
}

/** True when the process belongs to the service. */
function runsIn(pid: number, { name }: AgentUnit): boolean {
  try {
    return readFileSync(`/proc/${pid}/cgroup`, 'utf8')
      .split('\n')
      .some((line) => line.split('/').includes(name));
  } catch {
    return false;
  }
}

const runsAgent = (words: readonly string[]): boolean =>
  words.some((word, at) => ['orch', 'orch.js'].includes(basename(word)) && words[at + 1] === 'agent');

function flagOf(words: readonly string[]): string | null {
  const at = words.findLastIndex((word) => word === '--data-dir' || word.startsWith('--data-dir='));
  if (at < 0) return null;
  const [, given] = (words[at] ?? '').split('=', 2);
  return given ?? words[at + 1] ?? '';
}

const VARIABLE = /(?:^|[\s"'])ORCH_AGENT_DATA_DIR=["']?([^\s"']*)/g;

/** Returns the last value of the variable; files override the unit's own environment. */
function variableOf(environment: string, files: readonly string[]): string | null {
  const texts = files.map((file) => textOf(file.replace(/ \(ignore_errors=\w+\)$/, '')));
  return [environment, ...texts].flatMap((text) => [...text.matchAll(VARIABLE)]).at(-1)?.[1] ?? null;
}

const textOf = (path: string): string => (existsSync(path) ? readFileSync(path, 'utf8') : '');
