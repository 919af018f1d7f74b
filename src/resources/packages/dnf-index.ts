/** The index of dnf: how old it is, how to refresh it, and what it offers. */
import { type Command, exitedWith } from '../command.js';
import { lastLines } from '../command-failure.js';
import { dnf, dnfFailure } from './dnf-command.js';
import type { PackageOffer } from './indexed-package.js';
import { MINUTES_OF_A_DAY, type PackageIndex } from './package-index.js';
import { parseRpmRows, rpmName, rpmVersions } from './rpm-installed.js';

/** dnf sets the times of what it keeps of a repository whenever it has looked whether that is the newest. */
const LOOK: Command = {
  argv: [
    'find',
    ...['/etc/yum.repos.d', '/etc/dnf/dnf.conf', '/var/cache/dnf', '/var/cache/libdnf5'],
    ...['-maxdepth', '3', '-type', 'f', '('],
    ...['-path', '/etc/*', '-printf', 'source %T@\\n'],
    ...['-o', '-path', '*/repodata/*', '-mmin', `-${MINUTES_OF_A_DAY}`, '-printf', 'index %T@\\n'],
    ')',
  ],
};

const REFRESH = dnf('-q', 'makecache', '--refresh');

/** Ends a line by itself, because newer versions of dnf do not. */
const FORMAT = '%{name}|%{evr}|%{arch}\\n';

const query = (names: readonly string[]): Command =>
  dnf('-q', '-C', 'repoquery', '--available', '--qf', FORMAT, ...new Set(names.map(rpmName)));

const NOTHING: PackageOffer = { newest: null, versions: [] };

/** @param native the architecture of the machine */
export const dnfIndex = (native: string): PackageIndex => ({
  look: LOOK,
  async refresh(host) {
    const result = await host.run(REFRESH);
    return exitedWith(result, 0) ? null : dnfFailure(result).message;
  },
  async offers(host, names) {
    const result = await host.run(query(names));
    if (!exitedWith(result, 0)) {
      // A repository that was never read keeps dnf from answering for the others, too.
      if (/no cache for/.test(result.stderr)) return () => ({ ...NOTHING, why: lacking(result.stderr) });
      return dnfFailure(result);
    }
    if (result.truncated) return { code: 'observe_failed', message: 'dnf says more than orch reads' };
    const rows = parseRpmRows(result.stdout);
    return (name) => {
      const versions = rpmVersions(name, rows, native);
      return { newest: versions[0] ?? null, versions };
    };
  },
});

const lacking = (stderr: string): string =>
  `cannot be looked up, because the index of this machine is incomplete (${lastLines({ stdout: '', stderr }, 1)})`;
