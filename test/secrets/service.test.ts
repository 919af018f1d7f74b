import { describe, expect, it } from 'vitest';
import { findSecret, sealedRecordOf, updateSecret } from '../../daemon/secrets/secret-store.js';
import type { CreateSecret, UpdateSecret } from '../../src/contract/secrets.js';
import { rejection } from '../support/database.js';
import { ADA, formsOf, openSecrets } from '../support/secrets.js';

const VALUE = 'pa$$w0rd/with "quotes" & $& and ünïcode';
const NODE = '3f'.repeat(16);

describe('a secret', () => {
  it('is shown without its value, which is nowhere in the store', async () => {
    const bench = await openSecrets();
    const { body: created } = await bench.service.create(
      { name: 'DB_PASSWORD', value: VALUE, description: 'of the shop' },
      ADA,
    );
    expect(created).toEqual({
      name: 'DB_PASSWORD',
      description: 'of the shop',
      expires_at: null,
      created_at: '2026-03-01T12:00:00.000Z',
      created_by: ADA.actor.id,
      updated_at: '2026-03-01T12:00:00.000Z',
      updated_by: ADA.actor.id,
    });
    expect((await bench.service.get('DB_PASSWORD')).body).toEqual(created);
    expect(await bench.service.list()).toEqual([created]);
    await bench.service.update('DB_PASSWORD', { description: null }, ADA);
    const bytes = bench.bytes();
    for (const form of formsOf(VALUE)) expect(bytes).not.toContain(Buffer.from(form).toString('latin1'));
    expect(JSON.stringify(bench.events)).not.toContain('pa$$w0rd');
    expect(bench.events.map(({ type, target }) => [type, target.name])).toEqual([
      ['secret.created', 'DB_PASSWORD'],
      ['secret.updated', 'DB_PASSWORD'],
    ]);
  });

  it('keeps what a change leaves out, and null clears all but the value', async () => {
    const bench = await openSecrets();
    const restriction = { node_ids: [NODE, NODE], tags: 'role=db' };
    const expires_at = '2026-04-01T00:00:00+02:00';
    await bench.service.create({ name: 'T', value: VALUE, description: 'd', expires_at, restriction }, ADA);
    bench.clock.advance(1000);
    const { body: changed } = await bench.service.update('T', { description: 'other' }, ADA);
    expect(changed).toMatchObject({
      description: 'other',
      expires_at: '2026-03-31T22:00:00.000Z',
      restriction: { node_ids: [NODE], tags: 'role=db' },
      updated_at: '2026-03-01T12:00:01.000Z',
    });
    const clear: UpdateSecret = { value: null, description: null, expires_at: null, restriction: null };
    const { body: cleared } = await bench.service.update('T', clear, ADA);
    expect(cleared).toMatchObject({ description: null, expires_at: null });
    expect(cleared).not.toHaveProperty('restriction');
    const row = await findSecret(bench.db, 'T');
    expect(row && bench.keyring.open(row, sealedRecordOf(row))).toBe(VALUE);
    expect(bench.events.at(-1)?.summary).toBe(
      'ada changed the description, the expiry, the restriction of the secret T',
    );
  });

  it('that is set to what it is stays as it is', async () => {
    const bench = await openSecrets();
    const { body: created } = await bench.service.create({ name: 'T', value: VALUE }, ADA);
    bench.clock.advance(1000);
    expect((await bench.service.update('T', { value: VALUE, restriction: {} }, ADA)).body).toEqual(created);
    expect(bench.events).toHaveLength(1);
  });

  it('whose row was replaced by an older one of its own does not open', async () => {
    const bench = await openSecrets();
    await bench.service.create({ name: 'T', value: 'the old value' }, ADA);
    const old = await findSecret(bench.db, 'T');
    await bench.service.update('T', { value: 'the new value' }, ADA);
    await updateSecret(bench.db, old?.secret_id ?? '', { sealed: old?.sealed ?? '' });
    const fault = await rejection(bench.service.update('T', { description: 'x' }, ADA));
    expect(fault).toMatchObject({ code: 'secrets_locked' });
    await bench.service.update('T', { value: 'repaired' }, ADA);
    await bench.service.update('T', { description: 'x' }, ADA);
  });

  it('takes 64 KiB', async () => {
    const bench = await openSecrets();
    await bench.service.create({ name: 'T', value: 'é'.repeat(32 * 1024) }, ADA);
    const row = await findSecret(bench.db, 'T');
    expect(row && bench.keyring.open(row, sealedRecordOf(row))).toHaveLength(32 * 1024);
  });

  it.each<[string, Partial<CreateSecret>, string, RegExp]>([
    ['a name with a space', { name: 'DB PASSWORD' }, 'invalid_name', /"DB PASSWORD" cannot be the name/],
    ['a name that begins with a digit', { name: '1st' }, 'invalid_name', /"1st"/],
    ['no value', { value: '' }, 'invalid_body', /\/value is empty/],
    ['a value above 64 KiB', { value: 'é'.repeat(32 * 1024 + 1) }, 'invalid_body', /has 65538 bytes/],
    ['half a character', { value: 'ab\ud800cdef' }, 'invalid_body', /not valid Unicode/],
    ['an expiry that is no time', { expires_at: 'tomorrow' }, 'invalid_body', /\/expires_at/],
    ['no agents at all', { restriction: { node_ids: [] } }, 'invalid_restriction', /empty list/],
    [
      'a node ID that is none',
      { restriction: { node_ids: [NODE, 'web-01'] } },
      'invalid_restriction',
      /1 of the node IDs/,
    ],
    ['a selector that is none', { restriction: { tags: 'role==' + '=' } }, 'invalid_selector', /./],
    ['an empty selector', { restriction: { tags: '' } }, 'invalid_selector', /./],
    [
      'what the agent says itself',
      { restriction: { tags: 'platform=linux' } },
      'invalid_restriction',
      /"platform" is what an agent says/,
    ],
  ])('is refused with %s', async (_what, change, code, message) => {
    const bench = await openSecrets();
    const fault = await rejection(bench.service.create({ name: 'T', value: 'correct horse', ...change }, ADA));
    expect(fault.code).toBe(code);
    expect(fault.message).toMatch(message);
    expect(JSON.stringify([fault.message, fault.hint, fault.errors, fault.data])).not.toContain('correct horse');
    expect(await bench.service.list()).toEqual([]);
    expect(bench.events).toEqual([]);
  });

  it('has its name for itself, and gives it free when it is deleted', async () => {
    const bench = await openSecrets();
    const given = { name: 'T', value: 'correct horse' };
    await bench.service.create(given, ADA);
    expect(await rejection(bench.service.create(given, ADA))).toMatchObject({ code: 'secret_exists' });
    await bench.service.remove('T', ADA);
    for (const work of [
      () => bench.service.get('T'),
      () => bench.service.update('T', {}, ADA),
      () => bench.service.remove('T', ADA),
      () => bench.usage('T'),
    ]) {
      expect(await rejection(work())).toMatchObject({ code: 'secret_not_found', message: 'there is no secret "T"' });
    }
    await bench.service.create(given, ADA);
    expect(bench.events.map(({ type }) => type)).toEqual(['secret.created', 'secret.deleted', 'secret.created']);
  });

  it('tells its expiry once, and again when it got another one', async () => {
    const bench = await openSecrets();
    await bench.service.create({ name: 'T', value: 'correct horse', expires_at: '2026-03-01T12:01:00Z' }, ADA);
    await bench.service.create({ name: 'FOREVER', value: 'correct horse' }, ADA);
    await bench.service.emitExpired();
    expect(bench.events).toHaveLength(2);
    bench.clock.advance(60_000);
    await bench.service.emitExpired();
    await bench.service.emitExpired();
    expect(bench.events.slice(2).map(({ type, summary }) => [type, summary])).toEqual([
      ['secret.expired', 'the secret T has expired'],
    ]);
    await bench.service.update('T', { expires_at: '2026-03-01T12:02:00Z' }, ADA);
    bench.clock.advance(60_000);
    await bench.service.emitExpired();
    expect(bench.events.filter(({ type }) => type === 'secret.expired')).toHaveLength(2);
  });
});
