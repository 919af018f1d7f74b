/** What rpm says is installed: one query for all packages. */
import { type Command, type CommandResult, exitedWith } from '../command.js';
import { commandFailure } from '../command-failure.js';
import type { Host } from '../host.js';
import type { CommandRefusal } from '../kind.js';
import { compareRpmVersions } from './rpm-version.js';

/** A package of one architecture and one version. */
export interface RpmRow {
  readonly name: string;
  /** `version-release`, with the epoch before it when there is one. */
  readonly version: string;
  readonly architecture: string;
}

export interface RpmAnswer {
  readonly rows: readonly RpmRow[];
  /** The architecture of the machine; empty where nothing hangs on it. */
  readonly native: string;
}

const ARCHITECTURE = /\.(noarch|x86_64|i[3-6]86|aarch64|armv7hl|ppc64le|s390x|riscv64)$/;

/** The name without its architecture. */
export const rpmName = (name: string): string => name.replace(ARCHITECTURE, '');

export const rpmArchitecture = (name: string): string | null => ARCHITECTURE.exec(name)?.[1] ?? null;

const FORMAT = '%{NAME}|%|EPOCH?{%{EPOCH}:}|%{VERSION}-%{RELEASE}|%{ARCH}\\n';

const showInstalled = (names: readonly string[]): Command => ({
  argv: ['rpm', '--query', '--queryformat', FORMAT, ...new Set(names.map(rpmName))],
});

export const askArchitecture: Command = { argv: ['uname', '-m'] };

/** What rpm knows of packages of these names. */
export async function askRpm(host: Host, names: readonly string[]): Promise<RpmAnswer | CommandRefusal> {
  const command = showInstalled(names);
  const result = await host.run(command);
  const refusal = refusalOf(command, result);
  if (refusal !== null) return refusal;
  const rows = parseRpmRows(result.stdout);
  const machine = await host.run(askArchitecture);
  return exitedWith(machine, 0) ? { rows, native: machine.stdout.trim() } : commandFailure(askArchitecture, machine);
}

/** Its status counts the packages that are not installed; where it cannot read its database, it says so. */
function refusalOf(command: Command, result: CommandResult): CommandRefusal | null {
  if (result.end.how !== 'exited') return commandFailure(command, result);
  if (result.truncated) return { code: 'observe_failed', message: 'rpm says more than orch reads' };
  const [error] = /^error: .*(?:rpmdb|database|index|Packages).*$/im.exec(result.stderr) ?? [];
  if (error === undefined) return null;
  return { code: 'package_manager_broken', message: `rpm cannot read its database; try: rpm --rebuilddb\n${error}` };
}

/** Lines of another shape, such as `package x is not installed`, tell nothing. */
export function parseRpmRows(text: string): readonly RpmRow[] {
  return text.split('\n').flatMap((line) => {
    const [name, version, architecture] = line.split('|');
    return name && version && architecture ? [{ name, version, architecture }] : [];
  });
}

/** The versions of what a name means, the newest first: of its architecture, else of the machine's, else of any. */
export function rpmVersions(name: string, rows: readonly RpmRow[], native: string): readonly string[] {
  const architecture = rpmArchitecture(name);
  const named = rows.filter((row) => row.name === rpmName(name));
  const own = named.filter((row) => row.architecture === native || row.architecture === 'noarch');
  const fitting = architecture === null ? own : named.filter((row) => row.architecture === architecture);
  const taken = architecture === null && fitting.length === 0 ? named : fitting;
  return [...new Set(taken.map(({ version }) => version))].sort((a, b) => compareRpmVersions(b, a));
}
