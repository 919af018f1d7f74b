/** Makes tarballs of releases that differ from the built one in version and behaviour. */
import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { VERSION } from '../../src/kernel/version.js';
import { mustRun } from './command.js';

export interface Change {
  readonly version: string;
  /** JavaScript that the command runs before anything else. */
  readonly first?: string;
  /** True changes a file after the manifest was written. */
  readonly isTampered?: boolean;
  /** True signs the manifest with another key than the publisher's. */
  readonly isForeign?: boolean;
}

/** Writes `orch-VERSION-linux-CPU.tar.gz` beside the tarball `original`, and returns its path. `publisher` signs the manifest. */
export async function changeRelease(original: string, publisher: KeyObject, wanted: Change): Promise<string> {
  const { version, first = '', isTampered = false, isForeign = false } = wanted;
  const work = mkdtempSync(join(tmpdir(), 'orch-changed-'));
  try {
    const name = `orch-${version}-linux-${process.arch}`;
    await mustRun(['tar', '-xzf', original, '-C', work]);
    await mustRun(['mv', join(work, `orch-${VERSION}-linux-${process.arch}`), join(work, name)]);
    const release = join(work, name, 'lib/orch');
    const bundle = join(release, 'dist/orch');
    for (const file of readdirSync(bundle)) {
      // Compiled code belongs to the text from which it was made.
      if (file.endsWith('.v8')) rmSync(join(bundle, file));
      if (file.endsWith('.js')) change(join(bundle, file), (text) => text.replaceAll(VERSION, version));
    }
    change(join(release, 'RELEASE'), (text) => text.replace(VERSION, version));
    change(join(bundle, 'orch.js'), (text) => text.replace("'use strict';", () => `'use strict';\n${first}`));
    await mustRun([
      'sh',
      '-c',
      `cd "$1" && rm MANIFEST MANIFEST.sig && find . -type f -printf '%P\\n' | LC_ALL=C sort | xargs -d '\\n' sha256sum > ../MANIFEST && mv ../MANIFEST .`,
      'sh',
      release,
    ]);
    const key = isForeign ? generateKeyPairSync('ed25519').privateKey : publisher;
    writeFileSync(join(release, 'MANIFEST.sig'), sign(null, readFileSync(join(release, 'MANIFEST')), key));
    if (isTampered) writeFileSync(join(bundle, 'orch.js'), 'something else');
    // No sum covers modes.
    chmodSync(join(release, 'bin/node'), 0o6777);
    const tarball = join(original, '..', `${name}.tar.gz`);
    await mustRun(['tar', '-czf', tarball, '-C', work, name], { timeoutMs: 120_000 });
    return tarball;
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

function change(path: string, edit: (text: string) => string): void {
  writeFileSync(path, edit(readFileSync(path, 'utf8')));
}
