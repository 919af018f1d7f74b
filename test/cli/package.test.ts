import { createHash, generateKeyPairSync, sign } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { publicKeyOfKeyObject } from '../../src/identity/key-object.js';
import { runOrch } from '../support/cli.js';

const publisher = generateKeyPairSync('ed25519').privateKey;
const key = publicKeyOfKeyObject(publisher);
const stranger = publicKeyOfKeyObject(generateKeyPairSync('ed25519').privateKey);
const CONTENT = 'a package\n';
const SUM = createHash('sha256').update(CONTENT).digest('hex');

let directory: string;
let file: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'orch-package-'));
  file = join(directory, 'orch_1.0.0_amd64.deb');
  writeFileSync(file, CONTENT);
  publish(`${SUM}  orch_1.0.0_amd64.deb\n`);
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

function publish(sums: string): void {
  writeFileSync(join(directory, 'SHA256SUMS'), sums);
  writeFileSync(join(directory, 'SHA256SUMS.sig'), sign(null, Buffer.from(sums), publisher));
}

const verify = (by = key) => runOrch(['package', 'verify', file, '--key', by]);

describe('orch package verify', () => {
  it('accepts a package that is listed and signed', async () => {
    expect(await verify()).toMatchObject({ status: 0, stdout: expect.stringContaining(SUM) });
    const { stdout } = await runOrch(['package', 'verify', file, '--key', key, '-o', 'json']);
    expect(JSON.parse(stdout)).toMatchObject({ sha256: SUM });
  });

  it.each([
    ['another key signed', () => {}, stranger, 'is not signed by'],
    [
      'the list was changed afterwards',
      () => writeFileSync(join(directory, 'SHA256SUMS'), ''),
      key,
      'is not signed by',
    ],
    ['the signature is cut', () => writeFileSync(join(directory, 'SHA256SUMS.sig'), 'short'), key, 'is not signed by'],
    ['the package was changed', () => writeFileSync(file, 'another\n'), key, `and ${SUM} is listed`],
    ['the package is not listed', () => publish(`${SUM}  orch_2.0.0_amd64.deb\n`), key, 'is not listed'],
    ['the signature is missing', () => rmSync(join(directory, 'SHA256SUMS.sig')), key, 'cannot be read'],
    ['the package is missing', () => rmSync(file), key, 'cannot be read'],
  ])('refuses it when %s', async (_, change, by, message) => {
    change();
    expect(await verify(by)).toMatchObject({ status: 1, stdout: '', stderr: expect.stringContaining(message) });
  });

  it('asks for a key where the installation brought none', async () => {
    const ran = await runOrch(['package', 'verify', file]);
    expect(ran).toMatchObject({ status: 64, stderr: expect.stringContaining('--key') });
  });
});
