import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { insertOperationOutputs, listOperationOutputs } from '../../daemon/engine/operations/operation-outputs.js';
import { insertOperation } from '../../daemon/engine/operations/operation-store.js';
import { readCanary } from '../../daemon/secrets/open-keyring.js';
import { resealOperationOutput } from '../../daemon/secrets/sealed-tables.js';
import { findSecret, insertSecret, sealedRecordOf, updateSecret } from '../../daemon/secrets/secret-store.js';
import { operationRow, rejection } from '../support/database.js';
import { ADA, openSecrets, type SecretBench } from '../support/secrets.js';

const keysIn = ({ directory }: SecretBench, file = 'secrets.key'): readonly string[] =>
  [...readFileSync(join(directory, file), 'utf8').matchAll(/^key ([0-9a-f]{16})/gm)].map(([, id]) => id ?? '');

/** Secrets S0, S1, … with the values v0, v1, …, without the cost of as many transactions. */
async function fill({ db, keyring }: SecretBench, count: number): Promise<void> {
  await db.transaction().execute(async (tx) => {
    for (let index = 0; index < count; index += 1) {
      const place = { secret_id: `id-${String(index).padStart(6, '0')}`, name: `S${index}`, row_version: 1 };
      const record = { recordId: place.secret_id, name: place.name, version: 1 };
      await insertSecret(tx, {
        ...place,
        ...keyring.seal(`v${index}`, record),
        description: null,
        expires_at: null,
        expiry_told: 0,
        restriction: null,
        created_at: 1,
        created_by: 'ada',
        updated_at: 1,
        updated_by: 'ada',
      });
    }
  });
}

/** The values of all secrets, opened. */
async function valuesOf({ db, keyring }: SecretBench): Promise<readonly string[]> {
  const rows = await db.selectFrom('secrets').selectAll().orderBy('secret_id').execute();
  return rows.map((row) => keyring.open(row, sealedRecordOf(row)));
}

const keyIdsOf = async ({ db }: SecretBench): Promise<readonly string[]> =>
  (await db.selectFrom('secrets').select('key_id').distinct().execute()).map(({ key_id }) => key_id);

/** Sealed outputs out 0, out 1, … of one operation, and one that is not sealed. */
async function fillOutputs({ db, outputCipher }: SecretBench, count: number): Promise<void> {
  await insertOperation(db, operationRow({ operation_id: 'OP', state: 'succeeded' }));
  const rows = Array.from({ length: count }, (_, position) => {
    const place = { operation_id: 'OP', position };
    return { ...place, name: `m/${position}`, size: 9, ...outputCipher.seal(`out ${position}`, place) };
  });
  const open = { operation_id: 'OP', position: count, name: 'm/open', size: 4, output: 'open', key_id: null };
  await insertOperationOutputs(db, [...rows, open]);
}

/** The readable ones of them. */
const outputsOf = async ({ db, outputCipher }: SecretBench) =>
  (await listOperationOutputs(db, 'OP')).map(({ output, key_id, ...place }) =>
    key_id === null ? output : outputCipher.open({ output, key_id }, place),
  );

describe('a rotation', () => {
  it('seals outputs of scripts anew, and leaves alone what was not sealed or cannot be opened', async () => {
    const bench = await openSecrets();
    await fillOutputs(bench, 45);
    await bench.db.updateTable('operation_outputs').set({ output: 'AAAA' }).where('position', '=', 19).execute();
    expect(await bench.rotation.rotate()).toMatchObject({ secrets: 0, outputs: 44 });
    expect(keysIn(bench)).toEqual([bench.keyring.currentId]);
    const expected = Array.from({ length: 45 }, (_, index) => (index === 19 ? null : `out ${index}`));
    expect(await outputsOf(bench)).toEqual([...expected, 'open']);
    await bench.close();
    const again = await openSecrets({ directory: bench.directory });
    expect(await outputsOf(again)).toEqual([...expected, 'open']);
  });

  it('that is cut off among the outputs is brought to its end by the next start', async () => {
    const bench = await openSecrets();
    await fillOutputs(bench, 45);
    bench.keyring.addKey();
    const rows = await listOperationOutputs(bench.db, 'OP');
    for (const { output, key_id, ...place } of rows.slice(0, 25)) {
      const text = bench.outputCipher.open({ output, key_id: key_id ?? '' }, place);
      await resealOperationOutput(bench.db, place, bench.outputCipher.seal(text ?? '', place));
    }
    await bench.close();
    const next = await openSecrets({ directory: bench.directory });
    await next.rotation.resume();
    expect(keysIn(next)).toHaveLength(1);
    expect(await outputsOf(next)).toEqual([...Array.from({ length: 45 }, (_, index) => `out ${index}`), 'open']);
  });

  it('seals everything anew, forgets the old key, and changes no value and no tag', async () => {
    const bench = await openSecrets();
    await fill(bench, 1203);
    const [old] = keysIn(bench);
    const hash = bench.keyring.hash('S7', 'v7');
    expect(await bench.rotation.rotate()).toEqual({
      key_id: bench.keyring.currentId,
      kept: join(bench.directory, 'secrets.key.1'),
      secrets: 1203,
      outputs: 0,
      channels: 0,
    });
    expect(keysIn(bench)).toEqual([bench.keyring.currentId]);
    expect(bench.keyring.currentId).not.toBe(old);
    expect(await keyIdsOf(bench)).toEqual([bench.keyring.currentId]);
    expect(await valuesOf(bench)).toEqual(Array.from({ length: 1203 }, (_, index) => `v${index}`));
    expect(bench.keyring.hash('S7', 'v7')).toBe(hash);
    expect(bench.events.map(({ type }) => type)).toEqual(['secret.key_rotated']);
    await bench.close();
    const again = await openSecrets({ directory: bench.directory });
    expect((await valuesOf(again))[1202]).toBe('v1202');
  });

  it('keeps each key that it forgets in a file of its own', async () => {
    const bench = await openSecrets();
    await fill(bench, 3);
    const forgotten: (readonly string[])[] = [];
    for (const file of ['secrets.key.1', 'secrets.key.2', 'secrets.key.3']) {
      forgotten.push(keysIn(bench));
      expect(await bench.rotation.rotate()).toMatchObject({ kept: join(bench.directory, file) });
    }
    expect(['secrets.key.1', 'secrets.key.2', 'secrets.key.3'].map((file) => keysIn(bench, file))).toEqual(forgotten);
  });

  it('that is cut off after it kept the old key does not keep it twice', async () => {
    const bench = await openSecrets();
    await fill(bench, 3);
    bench.keyring.addKey();
    const [file, both] = [join(bench.directory, 'secrets.key'), keysIn(bench)];
    const before = readFileSync(file);
    await bench.rotation.resume();
    await bench.close();
    writeFileSync(file, before);

    const next = await openSecrets({ directory: bench.directory });
    expect(keysIn(next)).toEqual(both);
    await next.rotation.resume();
    expect(keysIn(next)).toEqual(both.slice(1));
    expect(keysIn(next, 'secrets.key.1')).toEqual(both.slice(0, 1));
    expect(existsSync(join(bench.directory, 'secrets.key.2'))).toBe(false);
  });

  it('that is asked for twice at once is one', async () => {
    const bench = await openSecrets();
    await fill(bench, 3);
    const [first, second] = await Promise.all([bench.rotation.rotate(), bench.rotation.rotate()]);
    expect(second).toBe(first);
    expect(bench.events).toHaveLength(1);
  });

  it.each([
    ['before anything was sealed anew', 0],
    ['in the middle', 700],
    ['before the old key was forgotten', 1203],
  ])('that is cut off %s is brought to its end by the next start', async (_when, done) => {
    const bench = await openSecrets();
    await fill(bench, 1203);
    // The state that a process leaves that dies there: both keys in the file, and some rows sealed with the new one.
    bench.keyring.addKey();
    const rows = await bench.db.selectFrom('secrets').selectAll().orderBy('secret_id').limit(done).execute();
    await bench.db.transaction().execute(async (tx) => {
      for (const row of rows) {
        const record = sealedRecordOf(row);
        await updateSecret(tx, row.secret_id, bench.keyring.seal(bench.keyring.open(row, record), record));
      }
    });
    expect(keysIn(bench)).toHaveLength(2);
    await bench.close();

    const next = await openSecrets({ directory: bench.directory });
    expect((await valuesOf(next))[0]).toBe('v0');
    await next.rotation.resume();
    expect(keysIn(next)).toHaveLength(1);
    expect(await keyIdsOf(next)).toEqual(keysIn(next));
    expect((await readCanary(next.db))?.key_id).toBe(keysIn(next)[0]);
    expect(await valuesOf(next)).toHaveLength(1203);
    await next.close();
    const last = await openSecrets({ directory: bench.directory });
    await last.rotation.resume();
    expect(last.events).toEqual([]);
  });

  it('keeps both keys when a value cannot be opened, and ends once that is repaired', async () => {
    const bench = await openSecrets();
    await fill(bench, 3);
    const row = await findSecret(bench.db, 'S1');
    await updateSecret(bench.db, row?.secret_id ?? '', { sealed: randomBytes(80).toString('base64') });
    expect(await rejection(bench.rotation.rotate())).toMatchObject({
      code: 'secrets_locked',
      message: '"S1" cannot be decrypted: it was altered in the store, or another key sealed it',
    });
    expect(keysIn(bench)).toHaveLength(2);
    await bench.service.create({ name: 'NEW', value: 'correct horse' }, ADA);
    await bench.service.update('S1', { value: 'repaired' }, ADA);
    await bench.rotation.rotate();
    expect(keysIn(bench)).toHaveLength(1);
    expect((await valuesOf(bench)).toSorted()).toEqual(['correct horse', 'repaired', 'v0', 'v2']);
  });
});
