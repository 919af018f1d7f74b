/** A repository of small Debian packages, in a directory that booted hosts see. */
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { mustRun } from './command.js';

export interface Deb {
  readonly name: string;
  readonly version: string;
  /** More fields of its control file, such as `Depends`. */
  readonly fields?: Readonly<Record<string, string>>;
  /** The installed files, by absolute path. */
  readonly files?: Readonly<Record<string, string>>;
  readonly conffiles?: readonly string[];
  /** Lines of shell that run when it is configured. */
  readonly postinst?: string;
}

export interface DebRepository {
  readonly directory: string;
  /** Builds packages and writes the index anew. */
  readonly publish: (debs: readonly Deb[]) => Promise<void>;
  readonly withdraw: (name: string, version: string) => Promise<void>;
  readonly remove: () => void;
}

/** Programs that it takes, and the Debian package that has them. */
export const debTools = { 'dpkg-deb': 'dpkg', 'dpkg-scanpackages': 'dpkg-dev' };

export function debRepository(): DebRepository {
  const directory = mkdtempSync(join(tmpdir(), 'orch-debs-'));
  chmodSync(directory, 0o755);
  const fileOf = (name: string, version: string) => join(directory, `${name}_${version}.deb`);
  const index = async () => {
    // Only compressed, because apt would link to an index of a directory that it can read as it is.
    const line = 'cd "$1" && dpkg-scanpackages --multiversion . 2>/dev/null | gzip >new && mv new Packages.gz';
    await mustRun(['sh', '-c', line, 'sh', directory]);
  };
  return {
    directory,
    publish: async (debs) => {
      for (const deb of debs) await build(deb, fileOf(deb.name, deb.version));
      await index();
    },
    withdraw: async (name, version) => {
      rmSync(fileOf(name, version));
      await index();
    },
    remove: () => rmSync(directory, { recursive: true, force: true }),
  };
}

async function build({ name, version, ...deb }: Deb, target: string): Promise<void> {
  const root = mkdtempSync(join(tmpdir(), 'orch-deb-'));
  const fields = {
    Package: name,
    Version: version,
    Architecture: 'all',
    Maintainer: 'Test <test@example.org>',
    Description: `package ${name} of a test`,
    ...deb.fields,
  };
  const control = Object.entries(fields).map(([field, value]) => `${field}: ${value}\n`);
  const write = (path: string, text: string, mode = 0o644) => {
    mkdirSync(dirname(join(root, path)), { recursive: true, mode: 0o755 });
    writeFileSync(join(root, path), text);
    chmodSync(join(root, path), mode);
  };
  try {
    chmodSync(root, 0o755);
    write('DEBIAN/control', control.join(''));
    if (deb.conffiles) write('DEBIAN/conffiles', deb.conffiles.map((path) => `${path}\n`).join(''));
    if (deb.postinst) write('DEBIAN/postinst', `#!/bin/sh\nset -e\n${deb.postinst}\n`, 0o755);
    for (const [path, text] of Object.entries(deb.files ?? {})) write(path, text);
    await mustRun(['dpkg-deb', '--root-owner-group', '--build', root, target]);
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}
