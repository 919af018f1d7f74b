import { describe, expect, it } from 'vitest';
import { jsonColumns } from '../../daemon/database/json-columns.js';

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

  it('refuse a text that is not JSON', () => {
    expect(() => columns.decode({ tags_json: '{"role":' })).toThrow(SyntaxError);
  });
});
