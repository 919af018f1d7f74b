/** What rpm says is installed: one query for all packages. */
import { type Command, type CommandResult, commandFailure, exitedWith } from '../command.js';
import type { Host } from '../host.js';
import type { CommandRefusal } from '../kind.js';

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

/** Versions of rpm: `epoch:version-release`, and their order. */

interface Evr {
  /** Null when it is not told, which is no epoch in a package and any epoch in what a body asks for. */
  readonly epoch: string | null;
  readonly version: string;
  readonly release: string | null;
}

function parse(text: string): Evr {
  const [, epoch = null, version = '', release = null] = /^(?:(\d+):)?([^-]*)(?:-(.*))?$/.exec(text) ?? [];
  return { epoch, version, release };
}

/** Negative when `one` is older than `other`, positive when it is newer, and 0 when rpm takes them for the same. */
export function compareRpmVersions(one: string, other: string): number {
  const [a, b] = [parse(one), parse(other)];
  return (
    compareParts(a.epoch ?? '0', b.epoch ?? '0') ||
    compareParts(a.version, b.version) ||
    compareParts(a.release ?? '', b.release ?? '')
  );
}

/** True when a package has the version that is asked for, which may leave epoch and release open. */
export function isRpmVersion(asked: string, version: string): boolean {
  const [a, b] = [parse(asked), parse(version)];
  if (a.epoch !== null && compareParts(a.epoch, b.epoch ?? '0') !== 0) return false;
  return a.version === b.version && (a.release === null || a.release === b.release);
}

/** A run of digits or of letters, or one of the signs that have an order of their own. */
const SEGMENT = /\d+|[A-Za-z]+|[~^]/g;

/** As rpm compares: runs of digits and of letters in turn, whatever stands between them. */
function compareParts(one: string, other: string): number {
  const a = one.match(SEGMENT) ?? [];
  const b = other.match(SEGMENT) ?? [];
  for (let at = 0; at < Math.max(a.length, b.length); at += 1) {
    const order = compareSegments(a[at], b[at]);
    if (order !== 0) return order;
  }
  return 0;
}

/** `~` is older than the end, the end is older than `^`, and `^` is older than anything else. */
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
