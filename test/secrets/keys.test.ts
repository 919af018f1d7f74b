import { chmodSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { rejection, temporaryDirectory } from '../support/database.js';
import { ADA, openSecrets } from '../support/secrets.js';

/** A data directory with one secret in it. */
async function withSecret(): Promise<string> {
  const bench = await openSecrets();
  await bench.service.create({ name: 'TOKEN', value: 'correct horse' }, ADA);
  await bench.close();
  return bench.directory;
}

describe('the key file', () => {
  it('is made at the first start, private and apart from the store', async () => {
    const { directory, bytes } = await openSecrets();
    const file = join(directory, 'secrets.key');
    expect(statSync(file).mode & 0o7777).toBe(0o600);
    const keys = readFileSync(file, 'utf8').match(/\S{44}/g) ?? [];
    expect(keys).toHaveLength(2);
    for (const key of keys) {
      expect(bytes()).not.toContain(key);
      expect(bytes()).not.toContain(Buffer.from(key, 'base64').toString('latin1'));
    }
  });

  it('opens what an earlier process has sealed', async () => {
    const directory = await withSecret();
    const { service, clock, resolver, db } = await openSecrets({ directory });
    expect(await service.list()).toHaveLength(1);
    expect(clock.now()).toBeGreaterThan(0);
    const row = { node_id: 'a'.repeat(32), name: 'web-01' } as Parameters<typeof resolver.resolve>[1];
    expect((await resolver.resolve(db, row, new Set(['TOKEN']))).source('TOKEN')).toMatchObject({
      value: 'correct horse',
    });
  });

  it('that is missing keeps a store with secrets from starting', async () => {
    const directory = await withSecret();
    rmSync(join(directory, 'secrets.key'));
    expect(await rejection(openSecrets({ directory }))).toMatchObject({
      code: 'secrets_locked',
      message: `the store holds secrets, and ${join(directory, 'secrets.key')} with their keys is missing`,
    });
  });

  it('of another store keeps a store with secrets from starting', async () => {
    const [directory, other] = [await withSecret(), await withSecret()];
    writeFileSync(join(directory, 'secrets.key'), readFileSync(join(other, 'secrets.key')));
    expect(await rejection(openSecrets({ directory }))).toMatchObject({ code: 'secrets_locked' });
  });

  it('may be lost while there are no secrets', async () => {
    const { directory, close } = await openSecrets();
    await close();
    rmSync(join(directory, 'secrets.key'));
    const { logger, service } = await openSecrets({ directory });
    expect(logger.lines.map(({ message }) => message)).toContain(
      'the keys of the secrets are new, and there are no secrets',
    );
    await service.create({ name: 'TOKEN', value: 'correct horse' }, ADA);
  });

  it('that others can read is refused', async () => {
    const directory = await withSecret();
    chmodSync(join(directory, 'secrets.key'), 0o640);
    expect(await rejection(openSecrets({ directory }))).toMatchObject({ code: 'key_permissions' });
  });

  it.each([
    ['empty', ''],
    ['something else', '-----BEGIN PRIVATE KEY-----\n'],
    ['without a key', `orch-secrets-v1\nhash ${Buffer.alloc(32).toString('base64')}\n`],
    ['with a short key', `orch-secrets-v1\nhash ${Buffer.alloc(32).toString('base64')}\nkey 0123456789abcdef AAAA\n`],
  ])('that is %s is refused, never replaced', async (_what, text) => {
    const directory = temporaryDirectory();
    const file = join(directory, 'secrets.key');
    writeFileSync(file, text, { mode: 0o600 });
    expect(await rejection(openSecrets({ directory }))).toMatchObject({ code: 'key_invalid' });
    expect(readFileSync(file, 'utf8')).toBe(text);
  });
});
