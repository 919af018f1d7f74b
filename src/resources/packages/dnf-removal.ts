/** What would be broken by the removal of packages: rpm is asked before anything is removed. */
import { type Command, exitedWith } from '../command.js';
import { commandFailure } from '../command-failure.js';
import type { Host } from '../host.js';
import type { PackageRemoval } from './indexed-package.js';
import { rpmName } from './rpm-installed.js';

const trial = (names: readonly string[]): Command => ({ argv: ['rpm', '--erase', '--test', ...names] });

const NEEDS = '[provides|%{=NAME}|%{PROVIDENAME}\\n][requires|%{=NAME}|%{REQUIRENAME}\\n]';

const showNeeds = (names: readonly string[]): Command => ({
  argv: ['rpm', '--query', '--queryformat', NEEDS, ...new Set(names.map(rpmName))],
});

const NOTHING: PackageRemoval = { takes: [], brings: [] };

/**
 * In the order of the names, all of which are installed. Two commands tell when none of them takes another one along; else
 * each is asked for on its own.
 */
export async function rpmRemovalsOf(host: Host, names: readonly string[]): Promise<readonly PackageRemoval[]> {
  if (names.length > 1 && (await goAlone(host, names))) return names.map(() => NOTHING);
  const alone: PackageRemoval[] = [];
  for (const name of names) alone.push(await removalOf(host, name));
  return alone;
}

async function goAlone(host: Host, names: readonly string[]): Promise<boolean> {
  const needs = await host.run(showNeeds(names));
  if (!exitedWith(needs, 0) || needs.truncated || rpmsNeedEachOther(needs.stdout)) return false;
  return exitedWith(await host.run(trial(names)), 0);
}

async function removalOf(host: Host, name: string): Promise<PackageRemoval> {
  const command = trial([name]);
  const result = await host.run(command);
  if (exitedWith(result, 0)) return NOTHING;
  const takes = dependentsIn(result.stderr);
  return takes.length > 0 ? { takes, brings: [] } : { refusal: commandFailure(command, result) };
}

/** Names out of lines such as `lib is needed by (installed) app-1.0-1.noarch`. */
export function dependentsIn(text: string): readonly string[] {
  const found = [...text.matchAll(/ is needed by \(installed\) (?:\d+:)?(\S+)-[^-\s]+-[^-\s]+$/gm)];
  return [...new Set(found.map(([, name = '']) => name))].sort();
}

/** True when one of the packages may need another. A file may be of any of them, but for the shell, which none is. */
export function rpmsNeedEachOther(text: string): boolean {
  const lines = text.split('\n').map((line) => line.split('|'));
  const givers = new Map(
    lines.flatMap(([what, name = '', given = '']) => (what === 'provides' ? [[given, name]] : [])),
  );
  return lines.some(([what, name, needed = '']) => {
    if (what !== 'requires' || needed === '/bin/sh') return false;
    return needed.startsWith('/') || ![undefined, name].includes(givers.get(needed));
  });
}
