/** Runs `orch plan|apply|drift --local` in a booted host, over a module that grows with what was applied. */
import type { RunResult } from '../../src/contract/runs.js';
import type { BootedHost } from './host.js';
import type { Program } from './program.js';

/** Names of packages, with versions where they are to be exact. */
export type Packages = Readonly<Record<string, string | null>>;

export type Resources = RunResult['resources'];

type Verb = 'plan' | 'apply' | 'drift';

export interface LocalPackages {
  readonly start: (verb: Verb, packages: Packages) => Promise<Program>;
  /** The results of the named packages, and of those that are no longer declared. */
  readonly run: (verb: Verb, packages: Packages) => Promise<Resources>;
  readonly finished: (program: Program) => Promise<Resources>;
  /** The resources that are declared besides those that are named: all that were applied well. */
  readonly declared: Map<string, string | null>;
}

/** @param kind of the packages */
export function localPackages(host: () => BootedHost, kind: string): LocalPackages {
  const declared = new Map<string, string | null>();
  const path = '/root/m.orch.yaml';

  const start: LocalPackages['start'] = async (verb, packages) => {
    await host().writeFile(path, moduleOf(kind, { ...Object.fromEntries(declared), ...packages }));
    const consent = verb === 'apply' ? ['--yes', '--allow-removals', '9'] : [];
    return host().spawn(['orch', verb, '--local', '-f', path, '-o', 'json', ...consent]);
  };
  const finished: LocalPackages['finished'] = async (program) => {
    const { status, stdout, stderr } = await program.ended;
    if (stdout === '') throw new Error(`orch ended with ${status}: ${stderr}`);
    return (JSON.parse(stdout) as RunResult).resources;
  };
  const run: LocalPackages['run'] = async (verb, packages) => {
    const resources = await finished(await start(verb, packages));
    for (const { identity, action, status } of verb === 'apply' ? resources : []) {
      const isThere = action !== 'remove' && (status === 'changed' || status === 'unchanged');
      if (isThere && identity in packages) declared.set(identity, packages[identity] ?? null);
    }
    return resources.filter(({ identity }) => identity in packages || !declared.has(identity));
  };
  return { start, finished, run, declared };
}

const moduleOf = (kind: string, packages: Packages): string =>
  [
    'name: site\nsupports: [{platform: linux}]\nresources:',
    ...Object.entries(packages).map(([name, version]) => {
      const exact = version === null ? '' : `, version: "${version}"`;
      return `  - resource:\n      ${kind}: {name: ${name}${exact}}`;
    }),
    '',
  ].join('\n');

/** Each result in a few words. */
export const fates = (resources: Resources): readonly string[] =>
  resources.map(({ identity, action, status, error }) =>
    [identity, action, status, ...(error ? [error.code] : [])].join(' '),
  );

/** The resources that have changed, or would. */
export const versions = (resources: Resources): readonly string[] =>
  resources.flatMap(({ changes }) => changes.map(({ before, after }) => `${before} -> ${after}`));
