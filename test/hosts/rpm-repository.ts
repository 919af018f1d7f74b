/** A repository of small RPM packages, in a directory that booted hosts see. */
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { mustRun } from './command.js';

export interface Rpm {
  readonly name: string;
  readonly version: string;
  readonly release?: string;
  /** More lines of the head of its spec, such as `Requires: lib`. */
  readonly head?: readonly string[];
  /** The installed files, by absolute path. */
  readonly files?: Readonly<Record<string, string>>;
  /** Paths among the files that are marked as configuration. */
  readonly config?: readonly string[];
  /** Lines of shell for scripts such as `%post`. */
  readonly scripts?: Readonly<Record<string, string>>;
}

export interface RpmRepository {
  readonly directory: string;
  /** Builds packages and writes the index anew. */
  readonly publish: (rpms: readonly Rpm[]) => Promise<void>;
  readonly remove: () => void;
}

/** Programs that it takes, and the Debian package that has them. */
export const rpmTools = { rpmbuild: 'rpm', createrepo_c: 'createrepo-c' };

export function rpmRepository(): RpmRepository {
  const directory = mkdtempSync(join(tmpdir(), 'orch-rpms-'));
  chmodSync(directory, 0o755);
  return {
    directory,
    publish: async (rpms) => {
      for (const rpm of rpms) await build(rpm, directory);
      await mustRun(['createrepo_c', '--quiet', directory]);
    },
    remove: () => rmSync(directory, { recursive: true, force: true }),
  };
}

async function build(rpm: Rpm, directory: string): Promise<void> {
  const top = mkdtempSync(join(tmpdir(), 'orch-rpm-'));
  try {
    for (const [path, text] of Object.entries(rpm.files ?? {})) {
      mkdirSync(dirname(join(top, 'files', path)), { recursive: true });
      writeFileSync(join(top, 'files', path), text);
    }
    writeFileSync(join(top, 'package.spec'), specOf(rpm, join(top, 'files')));
    const defines = { _topdir: top, _rpmdir: directory, _rpmfilename: '%%{NAME}-%%{VERSION}-%%{RELEASE}.rpm' };
    const given = Object.entries(defines).flatMap(([name, value]) => ['--define', `${name} ${value}`]);
    // It asks a shell for its own database below the home, and that may read what whoever runs the tests has there.
    const env = { ...process.env, HOME: top };
    await mustRun(['rpmbuild', '-bb', '--quiet', ...given, join(top, 'package.spec')], { env });
  } finally {
    rmSync(top, { recursive: true, force: true });
  }
}

function specOf({ name, version, release = '1', ...rpm }: Rpm, files: string): string {
  const paths = Object.keys(rpm.files ?? {});
  const config = rpm.config ?? [];
  return [
    `Name: ${name}\nVersion: ${version}\nRelease: ${release}\nSummary: package ${name} of a test`,
    'License: none\nBuildArch: noarch\nAutoReqProv: no',
    ...(rpm.head ?? []),
    `%description\nPackage ${name} of a test.`,
    '%install',
    ...paths.map((path) => `install -D -m 0644 '${files}${path}' '%{buildroot}${path}'`),
    ...Object.entries(rpm.scripts ?? {}).map(([script, lines]) => `%${script}\n${lines}`),
    '%files',
    ...paths.map((path) => (config.includes(path) ? `%config(noreplace) ${path}` : path)),
    '',
  ].join('\n');
}
