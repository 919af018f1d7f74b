/** Small tarballs in the layout of a package, with a release that only prints its version and its arguments. */
import { execFileSync } from 'node:child_process';
import { createHash, type KeyObject, sign } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { publicKeyOfKeyObject } from '../../src/identity/key-object.js';

export interface PackageFile {
  readonly file: string;
  readonly sha256: string;
}

const sumOf = (content: string | Buffer): string => createHash('sha256').update(content).digest('hex');

/** Makes a release in `directory`, which a manifest describes and a key signs. */
export function makeRelease(
  directory: string,
  {
    version,
    key,
    ...files
  }: { readonly version: string; readonly key?: KeyObject } & Readonly<Record<string, unknown>>,
): void {
  const all: Readonly<Record<string, string>> = {
    RELEASE: `${JSON.stringify({ version, platform: 'linux', cpu: 'x64' })}\n`,
    'bin/node': '#!/bin/sh\n',
    'bin/orch': `#!/bin/sh\necho "orch ${version}" "$@"\n`,
    'dist/orch/orch.js': '',
    ...(key === undefined ? {} : { 'release.pub': `${publicKeyOfKeyObject(key)}\n` }),
    ...(files as Readonly<Record<string, string>>),
  };
  for (const [path, content] of Object.entries(all)) {
    mkdirSync(dirname(join(directory, path)), { recursive: true });
    writeFileSync(join(directory, path), content, { mode: path.startsWith('bin/') ? 0o755 : 0o644 });
  }
  const manifest = Object.keys(all)
    .sort()
    .map((path) => `${sumOf(all[path] ?? '')}  ${path}\n`)
    .join('');
  writeFileSync(join(directory, 'MANIFEST'), manifest);
  if (key !== undefined) writeFileSync(join(directory, 'MANIFEST.sig'), sign(null, Buffer.from(manifest), key));
}

/** Writes `orch-VERSION-linux-CPU.tar.gz` into `directory`. */
export function makePackageFile(directory: string, version: string, cpu = 'x64'): PackageFile {
  const name = `orch-${version}-linux-${cpu}`;
  const tree = mkdtempSync(join(tmpdir(), 'orch-tree-'));
  try {
    makeRelease(join(tree, name, 'lib/orch'), { version });
    mkdirSync(directory, { recursive: true });
    const file = join(directory, `${name}.tar.gz`);
    execFileSync('tar', ['-czf', file, '-C', tree, name]);
    return { file, sha256: sumOf(readFileSync(file)) };
  } finally {
    rmSync(tree, { recursive: true, force: true });
  }
}
