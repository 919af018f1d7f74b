/** Versions of installed packages, as the package manager of the system gives them: dpkg or rpm. */
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { FACT_LIMITS, type PackageVersions } from '../../kernel/facts.js';
import { messageOf } from '../../kernel/fault.js';
import { formatOf } from '../../resources/packages/apt-installed.js';
import { environmentOf, findProgram } from '../host/launch.js';
import { runFactProgram } from './fact-program.js';

/** Versions as the agent reports them. */
export interface VersionReport {
  readonly versions: PackageVersions;
  /** Why the package manager gave no versions; null if these are all. */
  readonly problem: string | null;
}

interface Manager {
  /** Files that change with each installation, of which a system has one. */
  readonly databases: readonly string[];
  readonly program: string;
  /** Words before the names. Each package gives a line of its name, a bar and its version. */
  readonly words: readonly string[];
  /** Tells whether an exit status is one of success, also with packages that are not installed. */
  readonly isSuccess: (status: number) => boolean;
  /** True if a package that is not installed gives a line as well. */
  readonly namesMissing: boolean;
}

const MANAGERS: readonly Manager[] = [
  {
    databases: ['/var/lib/dpkg/status'],
    program: 'dpkg-query',
    words: ['--show', formatOf('Package', 'Version', 'db:Status-Status')],
    isSuccess: (status) => status <= 1,
    namesMissing: false,
  },
  {
    databases: ['/usr/lib/sysimage/rpm/rpmdb.sqlite', '/var/lib/rpm/rpmdb.sqlite', '/var/lib/rpm/Packages'],
    program: 'rpm',
    words: ['--query', '--queryformat=%{NAME}|%{VERSION}-%{RELEASE}|installed\\n'],
    // The number of packages that are not installed.
    isSuccess: () => true,
    namesMissing: true,
  },
];

/** Milliseconds for the package manager. */
const TIMEOUT = 10_000;

export class PackageReader {
  private readonly root: string;
  private readonly program: (name: string) => string | null;
  private names: readonly string[] = [];
  private stamp = '';

  /** @param program returns the path of a program of the package manager, null without one */
  constructor(root = '/', program: (name: string) => string | null = programPath) {
    this.root = root;
    this.program = program;
  }

  /** True if packages were asked for, and the database has changed since they were read. Costs a few `stat` then, else nothing. */
  hasChanged(): boolean {
    return this.names.length > 0 && this.found().stamp !== this.stamp;
  }

  /** Reads the versions of these packages [default: those of the last call]. Never rejects. */
  async read(names = this.names): Promise<VersionReport> {
    const { manager, stamp } = this.found();
    this.names = names;
    this.stamp = stamp;
    const path = manager === null ? null : this.program(manager.program);
    if (names.length === 0 || manager === null || path === null) return { versions: {}, problem: null };
    try {
      const text = await runFactProgram(path, TIMEOUT, [...manager.words, '--', ...names], manager.isSuccess);
      if (manager.namesMissing && text.trimEnd().split('\n').length < names.length) {
        return { versions: {}, problem: `${path} did not answer for all packages` };
      }
      return { versions: versionsIn(text, names), problem: null };
    } catch (error) {
      return { versions: {}, problem: messageOf(error).slice(0, FACT_LIMITS.reason) };
    }
  }

  private found(): { readonly manager: Manager | null; readonly stamp: string } {
    for (const manager of MANAGERS) {
      const stamps = manager.databases.flatMap((path) => stampOf(join(this.root, path)));
      if (stamps.length > 0) return { manager, stamp: stamps.join() };
    }
    return { manager: null, stamp: '' };
  }
}

function programPath(name: string): string | null {
  const found = findProgram(name, environmentOf({}));
  return typeof found === 'string' ? found : null;
}

function stampOf(path: string): readonly string[] {
  const stats = statSync(path, { throwIfNoEntry: false });
  return stats === undefined ? [] : [`${stats.ino}:${stats.size}:${stats.mtimeMs}`];
}

/** Returns versions without epoch. The last line counts for a package with several installed versions. */
function versionsIn(text: string, names: readonly string[]): PackageVersions {
  const asked = new Set(names);
  const rows = text.split('\n').flatMap((line) => {
    const [name = '', version = '', state] = line.split('|');
    return asked.has(name) && state === 'installed' ? [[name, version.replace(/^\d+:/, '').slice(0, 256)]] : [];
  });
  return Object.fromEntries(rows);
}
