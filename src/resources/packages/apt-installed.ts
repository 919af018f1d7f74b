/** Installed packages of dpkg, in any state, with one query for all. */

import type { CommandRefusal } from '../command.js';
import { type Command, type CommandResult, commandFailure, exitedWith } from '../command.js';
import type { Host } from '../host.js';
import type { InstalledAnswer, InstalledPackage, InstalledState } from './indexed-package.js';

/** One package of one architecture in dpkg's database. */
interface DpkgRow {
  readonly name: string;
  readonly architecture: string;
  readonly version: string;
  /** Wanted state: `install`, `hold`, `deinstall`, … */
  readonly selection: string;
  /** `ok`, or `reinstreq` when its files are incomplete. */
  readonly flag: string;
  readonly state: string;
}

/** Returns the format option for one line per package, with fields separated by bars. */
export const formatOf = (...fields: readonly string[]): string =>
  `--showformat=${fields.map((field) => `\${${field}}`).join('|')}\\n`;

const FORMAT = formatOf('Package', 'Architecture', 'Version', 'db:Status-Want', 'db:Status-Eflag', 'db:Status-Status');

/** States of packages that are not installed, except perhaps for their configuration. */
const GONE = new Set(['not-installed', 'config-files']);

/** Returns the name without its architecture. */
export const plainName = (name: string): string => name.split(':')[0] ?? name;

export const architectureOf = (name: string): string | null => name.split(':')[1] ?? null;

/** Queries names without architecture, because dpkg does not find `all` packages by a name with one. */
const showInstalled = (names: readonly string[]): Command => ({
  argv: ['dpkg-query', '--show', FORMAT, ...new Set(names.map(plainName))],
});

/** Queries what dpkg knows of packages of these names. */
export async function askDpkg(host: Host, names: readonly string[]): Promise<InstalledAnswer | CommandRefusal> {
  const command = showInstalled(names);
  const result = await host.run(command);
  const refusal = unanswered(command, result, 0, 1);
  if (refusal !== null) return refusal;
  const rows = parseInstalled(result.stdout);
  const automatic = automaticPackages(host);
  const isPlain = names.every((name) => architectureOf(name) === null && rowsOf(rows, name).length < 2);
  const answer = (native: string) => ({ native, stateOf: (name: string) => stateOf(name, rows, native, automatic) });
  if (isPlain) return answer('');
  const architecture = await host.run(ASK_ARCHITECTURE);
  return unanswered(ASK_ARCHITECTURE, architecture, 0) ?? answer(architecture.stdout.trim());
}

/** Where apt notes which packages it installed only because others need them. */
const EXTENDED_STATES = '/var/lib/apt/extended_states';

/** Returns the names of the packages that `apt-get autoremove` may remove, each also with its architecture. */
function automaticPackages(host: Host): ReadonlySet<string> {
  const [fact] = host.observe([{ path: EXTENDED_STATES, content: true, entries: false }]);
  if (fact?.type !== 'file' || fact.content.kind !== 'text') return new Set();
  const fieldOf = (stanza: string, name: string) => new RegExp(`^${name}: (.*)$`, 'm').exec(stanza)?.[1] ?? '';
  const marked = fact.content.text.split('\n\n').filter((stanza) => fieldOf(stanza, 'Auto-Installed') === '1');
  return new Set(
    marked.flatMap((stanza) => [
      fieldOf(stanza, 'Package'),
      `${fieldOf(stanza, 'Package')}:${fieldOf(stanza, 'Architecture')}`,
    ]),
  );
}

/**
 * Returns for each name the package that it means, as name and architecture; null for names that no other one can mean. A name
 * without an architecture means the installed package, else that of the machine.
 */
export async function packagesOf(host: Host, names: readonly string[]): Promise<readonly (string | null)[]> {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(plainName(name), (counts.get(plainName(name)) ?? 0) + 1);
  const unclear = names.filter((name) => (counts.get(plainName(name)) ?? 0) > 1);
  if (unclear.length === 0) return names.map(() => null);
  const rows = parseInstalled((await host.run(showInstalled(unclear))).stdout);
  const native = (await host.run(ASK_ARCHITECTURE)).stdout.trim();
  const own = (architecture: string) => (architecture === 'all' ? native : architecture);
  return names.map((name) => {
    if (!unclear.includes(name)) return null;
    const installed = architectureOf(name) === null ? rowOf(name, rows, native)?.architecture : undefined;
    return `${plainName(name)}:${own(installed ?? architectureOf(name) ?? native)}`;
  });
}

const ASK_ARCHITECTURE: Command = { argv: ['dpkg', '--print-architecture'] };

/** Returns the refusal for a query that failed or was truncated, else null. */
export function unanswered(command: Command, result: CommandResult, ...ok: readonly number[]): CommandRefusal | null {
  if (!exitedWith(result, ...ok)) return commandFailure(command, result);
  if (!result.truncated) return null;
  return { code: 'observe_failed', message: `${command.argv[0]} says more than orch reads` };
}

function parseInstalled(text: string): readonly DpkgRow[] {
  return text.split('\n').flatMap((line) => {
    const [name, architecture, version, selection, flag, state] = line.split('|');
    if (!name || state === undefined) return [];
    return [{ name, architecture, version, selection, flag, state } as DpkgRow];
  });
}

const rowsOf = (rows: readonly DpkgRow[], name: string): readonly DpkgRow[] =>
  rows.filter((row) => row.name === plainName(name) && !GONE.has(row.state));

/** Returns the package of a name: of its architecture, else of the machine's, else of any. */
function rowOf(name: string, rows: readonly DpkgRow[], native: string): DpkgRow | null {
  const architecture = architectureOf(name);
  const own = (row: DpkgRow) => row.architecture === native || row.architecture === 'all';
  const there = rowsOf(rows, name);
  return architecture === null
    ? (there.find(own) ?? there[0] ?? null)
    : (there.find((one) => one.architecture === architecture || (architecture === native && own(one))) ?? null);
}

function stateOf(
  name: string,
  rows: readonly DpkgRow[],
  native: string,
  automatic: ReadonlySet<string>,
): InstalledState {
  const row = rowOf(name, rows, native);
  const held = row === null ? rows.filter((one) => one.name === plainName(name)) : [row];
  return {
    installed: row && { version: row.version, fault: faultOf(row), isAutomatic: isAutomatic(row, rows, automatic) },
    isHeld: held.some(({ selection }) => selection === 'hold'),
    ...(isConfigured(name, rows) && { isConfigured: true }),
  };
}

/** True for a package that was removed and has left its configuration files. */
const isConfigured = (name: string, rows: readonly DpkgRow[]): boolean =>
  rows.some(
    (row) =>
      row.name === plainName(name) &&
      row.state === 'config-files' &&
      [null, row.architecture].includes(architectureOf(name)),
  );

/** apt notes packages for all architectures under that of the machine. */
function isAutomatic(
  { name, architecture }: DpkgRow,
  rows: readonly DpkgRow[],
  automatic: ReadonlySet<string>,
): boolean {
  const isOnly = rowsOf(rows, name).length < 2;
  return automatic.has(architecture === 'all' || isOnly ? name : `${name}:${architecture}`);
}

const faultOf = ({ state, flag }: DpkgRow): string | null => {
  if (flag !== 'ok') return `${state}, to be installed again`;
  return state === 'installed' ? null : state;
};

/** True when dpkg needs the files of the package unpacked again. */
export const isToReinstall = ({ fault }: InstalledPackage): boolean =>
  fault !== null && (fault.endsWith('to be installed again') || fault === 'half-installed');
