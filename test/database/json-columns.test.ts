import { describe, expect, it } from 'vitest';
import { jsonColumns } from '../../daemon/database/json-columns.js';
import { storeFault } from '../../daemon/database/sqlite/sqlite-error.js';
import { rejection, Sqlite } from '../support/database.js';

interface Values {
  readonly tags: Readonly<Record<string, string>>;
  readonly error: { readonly code: string } | null;
}

const columns = jsonColumns<Values>({ tags: true, error: true });

describe('JSON columns', () => {
  it('hold values in the rows of a store, and texts in the table', () => {
    const stored = { id: 'a', tags_json: '{"role":"web"}', error_json: null, other_json: '[1]' };
    const row = { id: 'a', tags: { role: 'web' }, error: null, other_json: '[1]' };
    expect(columns.decode(stored)).toStrictEqual(row);
    expect(columns.encode(row)).toStrictEqual(stored);
  });

  it('stay out of a row or a change that does not name them', () => {
    expect(columns.decode({ id: 'a' })).toStrictEqual({ id: 'a' });
    expect(columns.encode({ id: 'a', error: { code: 'x' } })).toStrictEqual({ id: 'a', error_json: '{"code":"x"}' });
    expect(columns.encode({ tags: undefined })).toStrictEqual({ tags_json: undefined });
  });

  it('of a damaged record say so, without quoting what may be private', async () => {
    const damaged = { code: 'store_unavailable', message: 'a record in the store is damaged' };
    const text = '{"password":"secret", "rest":';
    const inProgram = await rejection(Promise.resolve().then(() => columns.decode({ tags_json: text })));
    expect(inProgram).toMatchObject(damaged);
    expect(inProgram.hint).toBe('put a backup in its place: orch serve restore FILE');
    const statement = new Sqlite(':memory:').prepare(`select json_extract(?, '$.rest')`);
    const inDatabase = await rejection(
      Promise.resolve().then(() => {
        try {
          statement.get(text);
        } catch (error) {
          throw storeFault(error);
        }
      }),
    );
    expect(inDatabase).toMatchObject(damaged);
    for (const { message, hint } of [inProgram, inDatabase]) expect(message + hint).not.toContain('secret');
  });
});
