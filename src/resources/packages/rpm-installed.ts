/** Installed packages of rpm, with one query for all, and the order of rpm versions. */

import type { CommandRefusal } from '../command.js';
import { type Command, type CommandResult, commandFailure, exitedWith } from '../command.js';
import type { Host } from '../host.js';

/** One version of a package of one architecture. */
interface RpmRow {
  readonly name: string;
  /** `version-release` or `epoch:version-release`. */
  readonly version: string;
  readonly architecture: string;
}

interface RpmAnswer {
  readonly rows: readonly RpmRow[];
  /** Architecture of the machine. */
  readonly native: string;
}

const ARCHITECTURE = /\.(noarch|x86_64|i[3-6]86|aarch64|armv7hl|ppc64le|s390x|riscv64)$/;

/** Returns the name without its architecture. */
export const rpmName = (name: string): string => name.replace(ARCHITECTURE, '');

export const rpmArchitecture = (name: string): string | null => ARCHITECTURE.exec(name)?.[1] ?? null;

const FORMAT = '%{NAME}|%|EPOCH?{%{EPOCH}:}|%{VERSION}-%{RELEASE}|%{ARCH}\\n';

const showInstalled = (names: readonly string[]): Command => ({
  argv: ['rpm', '--query', '--queryformat', FORMAT, ...new Set(names.map(rpmName))],
});

const askArchitecture: Command = { argv: ['uname', '-m'] };

/** Queries the packages of these names. */
export async function askRpm(host: Host, names: readonly string[]): Promise<RpmAnswer | CommandRefusal> {
  const command = showInstalled(names);
  const result = await host.run(command);
  const refusal = refusalOf(command, result);
  if (refusal !== null) return refusal;
  const rows = parseRpmRows(result.stdout);
  const machine = await host.run(askArchitecture);
  return exitedWith(machine, 0) ? { rows, native: machine.stdout.trim() } : commandFailure(askArchitecture, machine);
}

/**
 * Returns for each name the package that it means, as name and architecture; null for names that no other one can mean. A name
 * without an architecture means the installed package, else that of the machine.
 */
export async function rpmPackagesOf(host: Host, names: readonly string[]): Promise<readonly (string | null)[]> {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(rpmName(name), (counts.get(rpmName(name)) ?? 0) + 1);
  const isUnclear = (name: string) => (counts.get(rpmName(name)) ?? 0) > 1;
  if (!names.some(isUnclear)) return names.map(() => null);
  const answer = await askRpm(host, names.filter(isUnclear));
  if ('code' in answer) return names.map(() => null);
  const { rows, native } = answer;
  return names.map((name) => {
    if (!isUnclear(name)) return null;
    const architecture = rpmArchitecture(name) ?? rowsFor(name, rows, native)[0]?.architecture ?? native;
    return `${rpmName(name)}.${architecture === 'noarch' ? native : architecture}`;
  });
}

/** Returns the refusal for an unreadable database; the exit status only counts missing packages. */
function refusalOf(command: Command, result: CommandResult): CommandRefusal | null {
  if (result.end.how !== 'exited') return commandFailure(command, result);
  if (result.truncated) return { code: 'observe_failed', message: 'rpm says more than orch reads' };
  const [error] = /^error: .*(?:rpmdb|database|index|Packages).*$/im.exec(result.stderr) ?? [];
  if (error === undefined) return null;
  return { code: 'package_manager_broken', message: `rpm cannot read its database; try: rpm --rebuilddb\n${error}` };
}

/** Parses rows; ignores other lines, such as `package x is not installed`. */
export function parseRpmRows(text: string): readonly RpmRow[] {
  return text.split('\n').flatMap((line) => {
    const [name, version, architecture] = line.split('|');
    return name && version && architecture ? [{ name, version, architecture }] : [];
  });
}

/** Returns the versions for a name, newest first. */
export const rpmVersions = (name: string, rows: readonly RpmRow[], native: string): readonly string[] =>
  [...new Set(rowsFor(name, rows, native).map(({ version }) => version))].sort((a, b) => compareRpmVersions(b, a));

/** Returns the packages of a name: of its architecture, else of the machine's, else of any. */
function rowsFor(name: string, rows: readonly RpmRow[], native: string): readonly RpmRow[] {
  const architecture = rpmArchitecture(name);
  const named = rows.filter((row) => row.name === rpmName(name));
  const own = named.filter((row) => row.architecture === native || row.architecture === 'noarch');
  const fitting = architecture === null ? own : named.filter((row) => row.architecture === architecture);
  return architecture === null && fitting.length === 0 ? named : fitting;
}

/** Versions of rpm: `epoch:version-release`, and their order. */

interface Evr {
  /** Null if absent, which means no epoch in a package and any epoch in a body. */
  readonly epoch: string | null;
  readonly version: string;
  readonly release: string | null;
}

function parse(text: string): Evr {
  const [, epoch = null, version = '', release = null] = /^(?:(\d+):)?([^-]*)(?:-(.*))?$/.exec(text) ?? [];
  return { epoch, version, release };
}

/** Compares like rpm: negative when `one` is older, positive when it is newer. */
export function compareRpmVersions(one: string, other: string): number {
  const [a, b] = [parse(one), parse(other)];
  return (
    compareParts(a.epoch ?? '0', b.epoch ?? '0') ||
    compareParts(a.version, b.version) ||
    compareParts(a.release ?? '', b.release ?? '')
  );
}

/** True when a version satisfies the wanted one, which may omit epoch and release. */
export function isRpmVersion(asked: string, version: string): boolean {
  const [a, b] = [parse(asked), parse(version)];
  if (a.epoch !== null && compareParts(a.epoch, b.epoch ?? '0') !== 0) return false;
  return a.version === b.version && (a.release === null || a.release === b.release);
}

/** A run of digits or letters, or a sign with its own order. */
const SEGMENT = /\d+|[A-Za-z]+|[~^]/g;

/** Compares runs of digits and letters in order, ignoring separators. */
function compareParts(one: string, other: string): number {
  const a = one.match(SEGMENT) ?? [];
  const b = other.match(SEGMENT) ?? [];
  for (let at = 0; at < Math.max(a.length, b.length); at += 1) {
    const order = compareSegments(a[at], b[at]);
    if (order !== 0) return order;
  }
  return 0;
}

/** Rank of a segment: `~` before the end, the end before `^`, `^` before anything else. */
const rankOf = (segment: string | undefined): number => {
  if (segment === undefined) return 1;
  if (segment === '~') return 0;
  if (segment === '^') return 2;
  return /\d/.test(segment) ? 4 : 3;
};

function compareSegments(a: string | undefined, b: string | undefined): number {
  const order = rankOf(a) - rankOf(b);
  if (order !== 0 || a === undefined || b === undefined || rankOf(a) < 3) return order;
  if (rankOf(a) === 3) return a < b ? -1 : Number(a > b);
  const [x, y] = [a.replace(/^0+/, ''), b.replace(/^0+/, '')];
  if (x.length !== y.length) return x.length - y.length;
  return x < y ? -1 : Number(x > y);
}
