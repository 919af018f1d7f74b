/** Holds of dnf, which it calls version locks: those of the plugin of dnf 4, and those that dnf 5 has of its own. */
import type { Host, PathFact, RunStep } from '../host.js';
import { dnf } from './dnf-command.js';
import { rpmName } from './rpm-installed.js';

/** Dnf 5 where this is a link to it. */
const PROGRAM = '/usr/bin/dnf';
/** There with the plugin of dnf 4. */
const PLUGIN = '/etc/dnf/plugins/versionlock.conf';
const LOCKS_4 = '/etc/dnf/plugins/versionlock.list';
const LOCKS_5 = '/etc/dnf/versionlock.toml';

export interface DnfHolds {
  /** Why dnf cannot hold packages on this machine; absent where it can. */
  readonly cannotHold?: string;
  /** True if the plugin of dnf 4 hides other versions of held packages from queries. */
  readonly hidesVersions: boolean;
  isHeld(name: string): boolean;
}

export function dnfHolds(host: Host): DnfHolds {
  const facts = host.observe(
    [PROGRAM, PLUGIN, LOCKS_4, LOCKS_5].map((path) => ({ path, content: path !== PROGRAM, entries: false })),
  );
  const [program, plugin, ...locks] = facts;
  const isNew = program?.type === 'symlink' && program.target.endsWith('dnf5');
  const hasPlugin = plugin?.type === 'file';
  const held = isNew ? locksOf5(textOf(locks[1])) : hasPlugin ? locksOf4(textOf(locks[0])) : [];
  return {
    ...(isNew || hasPlugin ? {} : { cannotHold: WITHOUT_PLUGIN }),
    hidesVersions: !isNew && hasPlugin,
    isHeld: (name) => held.some((pattern) => pattern.test(rpmName(name))),
  };
}

const WITHOUT_PLUGIN =
  'dnf 4 locks versions with a plugin, which this machine lacks; install python3-dnf-plugin-versionlock (on Debian dnf-plugins-core) before';

const textOf = (fact: PathFact | undefined): string =>
  fact?.type === 'file' && fact.content.kind === 'text' ? fact.content.text : '';

/** Returns patterns for the names in lines such as `tool-0:1.10-1.*`. A line that begins with `!` hides one version only. */
const locksOf4 = (text: string): readonly RegExp[] =>
  text.split('\n').flatMap((line) => {
    const [, name] = /^([^\s#!].*)-(?:\d+:)?[^-]+-[^-]+$/.exec(line.trim()) ?? [];
    return name === undefined ? [] : [patternOf(name)];
  });

/** Returns patterns for the names of entries, other than those that hide one version. */
const locksOf5 = (text: string): readonly RegExp[] =>
  text.split(/^\[\[packages\]\]$/m).flatMap((entry) => {
    const [, name] = /^name = "([^"]+)"$/m.exec(entry) ?? [];
    const isHidden = /^comparator = "!="$/m.test(entry);
    return name === undefined || isHidden ? [] : [patternOf(name)];
  });

/** Returns the pattern of a name with `*` and `?`. */
const patternOf = (glob: string): RegExp =>
  new RegExp(
    `^${glob
      .replace(/[.+^${}()|[\]\\]/g, '\\$&')
      .replaceAll('*', '.*')
      .replaceAll('?', '.')}$`,
  );

/** Returns the step that locks a package in its installed version, or ends that. */
export const dnfHoldStep = (name: string, isHeld: boolean): RunStep => ({
  do: 'run',
  command: dnf('-q', '-C', 'versionlock', isHeld ? 'add' : 'delete'),
  items: [rpmName(name)],
});
