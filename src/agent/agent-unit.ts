/** The service unit that may run the agent of a data directory, and whether it is that one which it runs. */
import { existsSync, readFileSync } from 'node:fs';
import { basename, resolve } from 'node:path';

export interface AgentUnit {
  /** Such as `orch-agent.service`. */
  readonly name: string;
  /** Of its file. */
  readonly path: string;
  /** The data directory of an agent of root that is told none. */
  readonly standardDataDir: string;
}

/** Runs `systemctl` with these arguments; its standard output. Rejects when it fails. */
export type Systemctl = (...args: readonly string[]) => Promise<string>;

const PROPERTIES = ['LoadState', 'FragmentPath', 'ExecStart', 'Environment', 'EnvironmentFiles', 'User'];

/** Why the unit is not the one of that directory; null when it is. With drop-ins, as systemd has read them. */
export async function whyForeign(unit: AgentUnit, dataDir: string, systemctl: Systemctl): Promise<string | null> {
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

/** True for a process of the service. */
export function runsIn(pid: number, { name }: AgentUnit): boolean {
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

/** What stands in files counts more. */
function variableOf(environment: string, files: readonly string[]): string | null {
  const texts = files.map((file) => textOf(file.replace(/ \(ignore_errors=\w+\)$/, '')));
  return [environment, ...texts].flatMap((text) => [...text.matchAll(VARIABLE)]).at(-1)?.[1] ?? null;
}

const textOf = (path: string): string => (existsSync(path) ? readFileSync(path, 'utf8') : '');
