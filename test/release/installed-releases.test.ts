/** The check of a release's files against its manifest, and the link to the release that counts. */
import { createHash, generateKeyPairSync, sign } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { publicKeyOfKeyObject } from '../../src/identity/key-object.js';
import {
  currentRelease,
  pruneReleases,
  type ReleasePlaces,
  setReleaseModes,
  switchRelease,
  verifyRelease,
} from '../../src/release/installed-releases.js';

const key = generateKeyPairSync('ed25519').privateKey;
const publicKey = publicKeyOfKeyObject(key);
const FILES = { 'bin/node': 'the runtime', 'dist/orch/orch.js': 'the program', RELEASE: '{}' };

function temporary(): string {
  const directory = mkdtempSync(join(tmpdir(), 'orch-release-'));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

/** Makes a release whose manifest lists `files`, signed by `key`. */
function makeRelease(files: Readonly<Record<string, string>> = FILES): string {
  const directory = temporary();
  const lines = Object.entries(files).map(([path, content]) => {
    mkdirSync(join(directory, path, '..'), { recursive: true });
    writeFileSync(join(directory, path), content);
    return `${createHash('sha256').update(content).digest('hex')}  ${path}\n`;
  });
  const manifest = lines.join('');
  writeFileSync(join(directory, 'MANIFEST'), manifest);
  writeFileSync(join(directory, 'MANIFEST.sig'), sign(null, Buffer.from(manifest), key));
  return directory;
}

const refusal = (directory: string, expected = publicKey) =>
  verifyRelease(directory, expected).then(
    () => null,
    (error: Error) => error.message,
  );

it('accepts a release that is as its publisher signed it', async () => {
  expect(await refusal(makeRelease())).toBeNull();
});

it('gives a new release its modes, whatever those of its tarball were', () => {
  const directory = makeRelease();
  chmodSync(join(directory, 'bin'), 0o777);
  chmodSync(join(directory, 'bin/node'), 0o6777);
  chmodSync(join(directory, 'RELEASE'), 0o666);
  setReleaseModes(directory);
  const modes = ['', 'bin', 'bin/node', 'RELEASE'].map((path) => statSync(join(directory, path)).mode & 0o7777);
  expect(modes).toEqual([0o755, 0o755, 0o755, 0o644]);
});

it('refuses a release of another publisher, or of none', async () => {
  const other = publicKeyOfKeyObject(generateKeyPairSync('ed25519').privateKey);
  expect(await refusal(makeRelease(), other)).toBe(`the release is not one of ${other}: its signature does not match`);
  const unsigned = makeRelease();
  rmSync(join(unsigned, 'MANIFEST.sig'));
  expect(await refusal(unsigned)).toBe(`the release is not one of ${publicKey}: it has no signature`);
  await verifyRelease(unsigned, null);
});

it('refuses changed, added and missing files', async () => {
  const changed = makeRelease();
  writeFileSync(join(changed, 'bin/node'), 'another runtime');
  expect(await refusal(changed)).toBe(`${join(changed, 'bin/node')} differs from the manifest`);
  const added = makeRelease();
  writeFileSync(join(added, 'dist/orch/extra.js'), '');
  expect(await refusal(added)).toBe(`${join(added, 'dist/orch/extra.js')} is not in the manifest`);
  const missing = makeRelease();
  rmSync(join(missing, 'bin/node'));
  expect(await refusal(missing)).toBe(`${join(missing, 'bin/node')} is missing`);
  const linked = makeRelease();
  rmSync(join(linked, 'bin/node'));
  symlinkSync('/bin/true', join(linked, 'bin/node'));
  expect(await refusal(linked)).toBe(`${join(linked, 'bin/node')} is no regular file`);
});

it('switches to a release and back, and deletes those that are not kept', () => {
  const root = temporary();
  const places: ReleasePlaces = {
    packaged: '/usr/lib/orch',
    releases: join(root, 'releases'),
    current: join(root, 'current'),
  };
  const [first, second, third] = ['1', '2', '3'].map((name) => join(places.releases, name)) as [string, string, string];
  for (const directory of [first, second, third]) mkdirSync(directory, { recursive: true });
  expect(currentRelease(places)).toBeNull();
  switchRelease(first, places);
  switchRelease(second, places);
  expect(readlinkSync(places.current)).toBe('releases/2');
  expect(currentRelease(places)).toBe(second);
  pruneReleases([first, second], places);
  expect(readdirSync(places.releases).sort()).toEqual(['1', '2']);
  switchRelease(null, places);
  expect(existsSync(places.current)).toBe(false);
  expect(currentRelease(places)).toBeNull();
});
