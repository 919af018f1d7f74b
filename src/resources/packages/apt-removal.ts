/** What apt would take along with a package, or install in its place: it is asked before anything is removed. */

import { type Command, exitedWith } from '../command.js';
import { commandFailure } from '../command-failure.js';
import type { Host } from '../host.js';
import { formatOf, plainName, unanswered } from './apt-installed.js';
import type { PackageRemoval } from './indexed-package.js';

/** Packages that nothing needs any more stay, and so do configuration files, whatever the machine's own settings say. */
export const KEEPING = ['-o', 'APT::Get::AutomaticRemove=false', '-o', 'APT::Get::Purge=false'] as const;

const simulation = (names: readonly string[]): Command => ({
  argv: ['apt-get', 'remove', '-s', '-q', ...KEEPING, ...names],
});

const NEEDS = formatOf('Package', 'Provides', 'Pre-Depends', 'Depends');

const showNeeds = (names: readonly string[]): Command => ({
  argv: ['dpkg-query', '--show', NEEDS, ...new Set(names.map(plainName))],
});

const NOTHING: PackageRemoval = { takes: [], brings: [] };

/**
 * In the order of the names, all of which are installed. Two commands tell when none of them takes another one along; else
 * each is asked for on its own.
 */
export async function removalsOf(host: Host, names: readonly string[]): Promise<readonly PackageRemoval[]> {
  if (names.length > 1 && (await goAlone(host, names))) return names.map(() => NOTHING);
  const alone: PackageRemoval[] = [];
  for (const name of names) alone.push(await removalOf(host, name));
  return alone;
}

async function goAlone(host: Host, names: readonly string[]): Promise<boolean> {
  const needs = await host.run(showNeeds(names));
  if (unanswered(showNeeds([]), needs, 0) !== null || needEachOther(needs.stdout)) return false;
  const result = await host.run(simulation(names));
  if (!exitedWith(result, 0)) return false;
  const { removed, installed } = parseSimulation(result.stdout);
  return installed.length === 0 && removed.every((name) => names.includes(name));
}

async function removalOf(host: Host, name: string): Promise<PackageRemoval> {
  const command = simulation([name]);
  const result = await host.run(command);
  const refusal = unanswered(command, result, 0);
  if (refusal !== null) return { refusal: commandFailure(command, result) };
  const { removed, installed } = parseSimulation(result.stdout);
  return { takes: removed.filter((one) => one !== name && one !== plainName(name)), brings: installed };
}

/** Names as apt prints them: with the architecture when it is not the machine's. */
export function parseSimulation(text: string): { readonly removed: string[]; readonly installed: string[] } {
  const removed: string[] = [];
  const installed: string[] = [];
  for (const line of text.split('\n')) {
    const [, verb, name] = /^(Remv|Purg|Inst) (\S+)/.exec(line) ?? [];
    if (name !== undefined) (verb === 'Inst' ? installed : removed).push(name);
  }
  return { removed: removed.sort(), installed: installed.sort() };
}

/** True when one of the packages may need another; alternatives count as needs. */
export function needEachOther(text: string): boolean {
  const packages = text.split('\n').flatMap((line) => {
    const [name, provides, needs] = line.split('|').length >= 3 ? splitNeeds(line) : [];
    return name === undefined ? [] : [{ name, gives: [name, ...namesIn(provides ?? '')], needs: namesIn(needs ?? '') }];
  });
  return packages.some(({ name, needs }) =>
    packages.some((other) => other.name !== name && other.gives.some((given) => needs.includes(given))),
  );
}

/** A need may hold the mark between the fields itself, where it stands between alternatives. */
function splitNeeds(line: string): readonly string[] {
  const [name = '', provides = '', ...needs] = line.split('|');
  return [name, provides, needs.join('|')];
}

const namesIn = (relation: string): readonly string[] =>
  relation.split(/[,|]/).flatMap((one) => /^\s*([^\s:(]+)/.exec(one)?.[1] ?? []);
