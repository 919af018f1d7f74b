import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type AssociatedData, open, seal } from '../../daemon/secrets/keyring.js';
import { isFault } from '../../src/kernel/fault.js';

const key = randomBytes(32);
const place: AssociatedData = { keyId: '0123456789abcdef', recordId: '01K', name: 'DB_PASSWORD', version: 3 };
const sealed = seal('correct horse', { key, place, randomBytes });

function failure(work: () => unknown): string {
  try {
    work();
  } catch (error) {
    if (isFault(error, 'secrets_locked')) return error.message;
    throw error;
  }
  return 'it opened';
}

describe('a sealed text', () => {
  it('opens in its place, whatever it holds', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), (text) => {
        expect(open(seal(text, { key, place, randomBytes }), { key, place })).toBe(text);
      }),
    );
  });

  it('is another one each time', () => {
    expect(seal('correct horse', { key, place, randomBytes })).not.toBe(sealed);
  });

  it.each([
    ['under another key', { key: randomBytes(32), place }],
    ['when it was moved to another record', { key, place: { ...place, recordId: '01L' } }],
    ['under another name', { key, place: { ...place, name: 'DB_PASSWORD2' } }],
    ['in an older or newer row', { key, place: { ...place, version: 4 } }],
    ['for another key id', { key, place: { ...place, keyId: 'fedcba9876543210' } }],
  ])('does not open %s', (_what, options) => {
    expect(failure(() => open(sealed, options))).toContain('cannot be decrypted');
  });

  it('does not open when any of its bytes was altered', () => {
    const bytes = Buffer.from(sealed, 'base64');
    for (let at = 0; at < bytes.length; at += 1) {
      const altered = Buffer.from(bytes);
      altered[at] = (altered[at] ?? 0) ^ 1;
      expect([at, failure(() => open(altered.toString('base64'), { key, place }))]).not.toEqual([at, 'it opened']);
    }
  });

  it('does not open when its end or its tag is cut off', () => {
    const bytes = Buffer.from(sealed, 'base64');
    for (let length = 0; length < bytes.length; length += 1) {
      expect(failure(() => open(bytes.subarray(0, length).toString('base64'), { key, place }))).not.toBe('it opened');
    }
  });
});
