/** The packages that an orchestrator offers: what an operator copies into its directory, and its own release. */
import { execFileSync } from 'node:child_process';
import { generateKeyPairSync, sign } from 'node:crypto';
import { appendFileSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { Packages } from '../../daemon/packages/packages.js';
import { publicKeyOfKeyObject } from '../../src/identity/key-object.js';
import { type Logger, silentLogger } from '../../src/kernel/logger.js';
import { type OwnRelease, ownRelease } from '../../src/release/own-release.js';
import { temporaryDirectory } from '../support/identity.js';
import { makePackageFile, makeRelease } from '../support/package-file.js';

interface Started {
  readonly packages: Packages;
  /** Directory of the operator's files. */
  readonly placed: string;
  readonly warnings: readonly string[];
}

function start(release: () => OwnRelease | null = () => null, dataDir = temporaryDirectory()): Started {
  const warnings: string[] = [];
  const note = (message: string, details: unknown = {}) => void warnings.push(`${message} ${JSON.stringify(details)}`);
  const logger: Logger = { ...silentLogger, warn: note, error: note };
  const packages = new Packages({ logger, dataDir, release });
  onTestFinished(() => packages.stop());
  return { packages, placed: join(dataDir, 'packages'), warnings };
}

const namesOf = async (packages: Packages) => (await packages.list()).map(({ file }) => basename(file));

async function readAll(packages: Packages, sha256: string): Promise<Buffer | null> {
  const opened = await packages.open(sha256);
  if (opened === null) return null;
  try {
    return await opened.handle.readFile();
  } finally {
    await opened.handle.close();
  }
}

describe('copied packages', () => {
  it('are offered as soon as they are there, newest first, and not when they are gone', async () => {
    const { packages, placed, warnings } = start();
    expect(await packages.list()).toEqual([]);
    const old = makePackageFile(placed, '0.0.9');
    makePackageFile(placed, '0.0.10');
    writeFileSync(join(placed, 'orch_0.1.0_amd64.deb'), 'not for machines');
    expect(await namesOf(packages)).toEqual(['orch-0.0.10-linux-x64.tar.gz', 'orch-0.0.9-linux-x64.tar.gz']);
    expect(await packages.list()).toContainEqual({
      version: '0.0.9',
      platform: 'linux',
      cpu: 'x64',
      ...old,
      size: statSync(old.file).size,
    });
    expect(await readAll(packages, old.sha256)).toEqual(readFileSync(old.file));
    rmSync(old.file);
    expect(await readAll(packages, old.sha256)).toBeNull();
    expect(warnings).toEqual([]);
  });

  it('are offered to new machines up to the version of the orchestrator, one for each processor', async () => {
    const { packages, placed } = start();
    for (const version of ['0.0.1', '0.1.0', '99.0.0']) makePackageFile(placed, version);
    makePackageFile(placed, '0.0.1', 'arm64');
    const newest = (await packages.newest()).map(({ version, cpu }) => [version, cpu]);
    expect(newest).toEqual([
      ['0.1.0', 'x64'],
      ['0.0.1', 'arm64'],
    ]);
  });

  it('are not offered while they are half copied, and the log says so once', async () => {
    const { packages, placed, warnings } = start();
    const { file, sha256 } = makePackageFile(placed, '0.0.1');
    const whole = readFileSync(file);
    truncateSync(file, whole.length - 20);
    expect(await packages.list()).toEqual([]);
    expect(await packages.list()).toEqual([]);
    expect(warnings).toEqual([expect.stringMatching(/not offered.*orch-0\.0\.1-.*incomplete/)]);
    appendFileSync(file, whole.subarray(whole.length - 20));
    expect((await packages.list())[0]?.sha256).toBe(sha256);
  });

  it('must be signed when the orchestrator is', async () => {
    const { privateKey } = generateKeyPairSync('ed25519');
    const publicKey = publicKeyOfKeyObject(privateKey);
    const dataDir = temporaryDirectory();
    const directory = temporaryDirectory();
    makeRelease(directory, { version: '0.1.0', key: privateKey });
    const { packages, placed, warnings } = start(
      () => ({ directory, version: '0.1.0', cpu: 'x64', publicKey }),
      dataDir,
    );
    const { file, sha256 } = makePackageFile(placed, '0.0.1');
    expect(await namesOf(packages)).toEqual(['orch-0.1.0-linux-x64.tar.gz']);
    expect(warnings).toEqual([expect.stringContaining('SHA256SUMS')]);
    const sums = `${sha256}  ${basename(file)}\n`;
    writeFileSync(join(placed, 'SHA256SUMS'), sums);
    writeFileSync(
      join(placed, 'SHA256SUMS.sig'),
      sign(null, Buffer.from(sums), generateKeyPairSync('ed25519').privateKey),
    );
    expect(await namesOf(packages)).toEqual(['orch-0.1.0-linux-x64.tar.gz']);
    expect(warnings[1]).toContain('is not signed by');
    writeFileSync(join(placed, 'SHA256SUMS.sig'), sign(null, Buffer.from(sums), privateKey));
    expect(await namesOf(packages)).toEqual(['orch-0.1.0-linux-x64.tar.gz', 'orch-0.0.1-linux-x64.tar.gz']);
  });
});

describe('the own release', () => {
  it('is packed once, and again when it has changed', async () => {
    const dataDir = temporaryDirectory();
    const directory = join(temporaryDirectory(), 'orch');
    makeRelease(directory, { version: '0.1.0' });
    const own = () => ownRelease(join(directory, 'bin/node'));
    const { packages } = start(own, dataDir);
    const [[first], [same]] = await Promise.all([packages.list(), packages.list()]);
    expect(first).toEqual(same);
    expect(first).toMatchObject({ version: '0.1.0', cpu: 'x64' });
    const tree = temporaryDirectory();
    execFileSync('tar', ['-xzf', first?.file ?? '', '-C', tree]);
    const unpacked = join(tree, 'orch-0.1.0-linux-x64/lib/orch');
    expect(execFileSync(join(unpacked, 'bin/orch'), ['--version'], { encoding: 'utf8' })).toBe(
      'orch 0.1.0 --version\n',
    );
    execFileSync('sha256sum', ['--check', '--quiet', 'MANIFEST'], { cwd: unpacked });
    const { mtimeMs } = statSync(first?.file ?? '');
    const again = start(own, dataDir);
    expect(await again.packages.list()).toEqual([first]);
    expect(statSync(first?.file ?? '').mtimeMs).toBe(mtimeMs);
    const elsewhere = start(own);
    expect((await elsewhere.packages.list())[0]?.sha256).toBe(first?.sha256);
    makeRelease(directory, { version: '0.1.1' });
    expect((await again.packages.list()).map(({ version }) => version)).toEqual(['0.1.1']);
  });

  it('is not packed while an upgrade replaces it', async () => {
    const directory = join(temporaryDirectory(), 'orch');
    makeRelease(directory, { version: '0.1.0' });
    writeFileSync(join(directory, 'dist/orch/orch.js'), 'of the next version');
    const { packages, warnings } = start(() => ownRelease(join(directory, 'bin/node')));
    expect(await packages.list()).toEqual([]);
    expect(warnings).toEqual([expect.stringContaining('orch.js differs from the manifest')]);
  });

  it('that is damaged is named in the log, and nothing is offered without its key', async () => {
    const directory = join(temporaryDirectory(), 'orch');
    makeRelease(directory, { version: '0.1.0', RELEASE: '{}' });
    const { packages, placed, warnings } = start(() => ownRelease(join(directory, 'bin/node')));
    makePackageFile(placed, '0.0.1');
    expect(await packages.list()).toEqual([]);
    expect(warnings.join()).toContain('RELEASE is damaged');
  });
});
