/** Valid requests spoiled in every way that we could think of: members, types, sizes, paths, queries, headers, bytes. */
import fc from 'fast-check';
import type { RouteId } from '../../src/contract/contract.js';
import type { ApiRequest } from './api-request.js';
import type { Described } from './described-api.js';
import { type KnownIds, samplesFor } from './samples.js';
import type { World } from './world.js';

export interface Spoiled extends ApiRequest {
  /** The path may be another operation's, or none's. */
  readonly strays: boolean;
}

type Members = Readonly<Record<string, unknown>>;

const NASTY_TEXT = [
  '',
  ' ',
  '..',
  '../../etc/passwd',
  '\u0000',
  '\ud800',
  '🦊'.repeat(20),
  'é'.normalize('NFD'),
  '\u202e',
  `\${{ secrets.X }}`,
  "' or 1=1 --",
  'x'.repeat(10_000),
  '__proto__',
  'constructor',
  '9'.repeat(400),
  '-1',
  '1e999',
];

const nastyValue: fc.Arbitrary<unknown> = fc.oneof(
  fc.constantFrom<unknown>(null, true, false, 0, -1, 1.5, 2 ** 53, -(2 ** 63), 1e308, [], {}, [null], [[]]),
  fc.constantFrom(...NASTY_TEXT),
  fc.string({ unit: 'binary' }),
  fc.jsonValue(),
);

/** A lone half of a pair cannot be in a URL. */
const NASTY_IN_URL = NASTY_TEXT.filter((text) => text !== '\ud800');

/** Deeply nested, of so many levels. */
const deep = (levels: number) => `${'['.repeat(levels)}${']'.repeat(levels)}`;

/** As JSON when it is not text: an object with a member `toString` cannot be made a text in another way. */
const asKey = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value)).slice(0, 50);

/** A body as an object, changed somewhere. */
const changedBody = (body: Members): fc.Arbitrary<string> => {
  const keys = Object.keys(body);
  const key = keys.length > 0 ? fc.constantFrom(...keys) : fc.constant('nothing');
  const without = (name: string) => Object.fromEntries(Object.entries(body).filter(([other]) => other !== name));
  return fc.oneof(
    fc.constant(JSON.stringify(body)),
    key.map((name) => JSON.stringify(without(name))),
    fc.tuple(key, nastyValue).map(([name, value]) => JSON.stringify({ ...body, [name]: value })),
    fc
      .tuple(key, nastyValue, nastyValue)
      .map(([name, inner, value]) => JSON.stringify({ ...body, [name]: { [asKey(inner)]: value } })),
    fc
      .tuple(key, nastyValue)
      .map(([name, value]) => JSON.stringify({ ...body, [name]: Array(2000).fill(value) }).slice(0, 2 ** 20)),
    fc
      .tuple(fc.constantFrom(...NASTY_TEXT, 'toString'), nastyValue)
      .map(([name, value]) => JSON.stringify({ ...body, [name]: value })),
    // The same key twice.
    fc.tuple(key, nastyValue).map(([name, value]) => {
      const twice = `${JSON.stringify(name)}:${JSON.stringify(value)}`;
      return JSON.stringify(body).replace('{', keys.length > 0 ? `{${twice},` : `{${twice},${twice}`);
    }),
    fc
      .tuple(key, fc.constantFrom(30, 70, 5_000, 200_000))
      .map(([name, levels]) => JSON.stringify({ ...body, [name]: 0 }).replace(/:0([,}])/, `:${deep(levels)}$1`)),
    fc.nat(40).map((length) => JSON.stringify(body).slice(0, -1 - length)),
    fc.constant(`\ufeff${JSON.stringify(body)}`),
    fc.constant(`{"__proto__":{"admin":true},"constructor":{"prototype":{}}}`),
    nastyValue.map((value) => JSON.stringify(value) ?? ''),
    fc.string({ unit: 'binary' }),
  );
};

const bytes = fc.uint8Array({ maxLength: 200 }).map((array) => Buffer.from(array));

const contentType = fc.oneof(
  { weight: 12, arbitrary: fc.constant('application/json') },
  fc.constantFrom(
    'text/plain',
    'application/json; charset=utf-16',
    'application/json;charset="utf-8"; x=y',
    'APPLICATION/JSON',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'application/json, application/json',
    ';',
    '*/*',
  ),
);

const oddHeaders: fc.Arbitrary<Readonly<Record<string, string>>> = fc.oneof(
  { weight: 10, arbitrary: fc.constant({}) },
  fc.constantFrom<Readonly<Record<string, string>>[]>(
    { 'content-encoding': 'gzip' },
    { 'content-encoding': 'identity' },
    { accept: 'application/x-ndjson' },
    { accept: 'text/event-stream' },
    { 'idempotency-key': 'x'.repeat(255) },
    { 'idempotency-key': 'x'.repeat(256) },
    { 'idempotency-key': ' ' },
    { 'last-event-id': '\u00ff' },
    { expect: '100-continue' },
    { expect: 'nonsense' },
    { origin: 'null' },
    { range: 'bytes=0-1' },
    { 'if-none-match': '*' },
    { cookie: 'a=b' },
    { 'x-forwarded-for': '::1, 10.0.0.1', 'x-forwarded-proto': 'http' },
    { 'x-http-method-override': 'DELETE' },
    { te: 'trailers' },
  ),
);

/** A path parameter; those that are sent raw may lead to another path. */
const pathParameter = (good: string): fc.Arbitrary<{ readonly text: string; readonly strays: boolean }> =>
  fc.oneof(
    { weight: 6, arbitrary: fc.constant({ text: encodeURIComponent(good), strays: false }) },
    fc
      .oneof(fc.constantFrom(...NASTY_IN_URL.filter((text) => text !== '')), fc.string({ minLength: 1 }))
      .map((text) => ({ text: encodeURIComponent(text), strays: false })),
    fc
      .constantFrom(
        '..',
        '.',
        '',
        '/',
        '%2e%2e',
        '%2e',
        '%00',
        '%2f',
        '%5c',
        '%',
        '%zz',
        '%ff',
        '%c0%ae',
        '%u0041',
        ';',
        '{id}',
        'a/b',
        '*',
        ':id',
      )
      .map((text) => ({ text, strays: true })),
  );

const queryOf = (good: Members): fc.Arbitrary<string> => {
  const names = Object.keys(good);
  const name = fc.constantFrom(...names, 'limit', 'nonsense', '__proto__', '');
  const pair = fc.tuple(
    name,
    fc.oneof(fc.constantFrom(...NASTY_IN_URL.map((text) => text.slice(0, 2000))), fc.string()),
  );
  const encode = (pairs: readonly (readonly [string, unknown])[]) =>
    pairs.map(([key, value]) => `${encodeURIComponent(key)}=${encodeURIComponent(String(value))}`).join('&');
  const entries = Object.entries(good);
  return fc.oneof(
    { weight: 4, arbitrary: fc.constant(encode(entries)) },
    pair.map((odd) => encode([...entries.filter(([key]) => key !== odd[0]), odd])),
    pair.map((odd) => encode([...entries, odd, odd])),
    fc.constantFrom('&&&', '=', '%', '%zz=1', 'limit[]=1', 'limit[a]=1', 'a;b', '?', 'limit=%00', 'limit=1&limit=2'),
  );
};

export interface Sender {
  readonly token: string;
  readonly known: KnownIds;
}

/** Of one operation; who sends it may call it. */
export function arbitraryRequest(world: World, operation: Described, { token, known }: Sender): fc.Arbitrary<Spoiled> {
  const sample = samplesFor(world, known)[operation.id as RouteId];
  const params = operation.params.map((name) => pathParameter(sample.params?.[name] ?? 'none'));
  const isRead = operation.method === 'GET';
  const body = isRead
    ? fc.oneof({ weight: 10, arbitrary: fc.constant(null) }, fc.constant('{}'))
    : fc.oneof({ weight: 12, arbitrary: changedBody((sample.body ?? {}) as Members) }, bytes, fc.constant(null));
  return fc
    .record({
      params: fc.tuple(...params),
      query: queryOf(sample.query ?? {}),
      body,
      type: contentType,
      odd: oddHeaders,
    })
    .map(({ params: given, query, body: sent, type, odd }) => {
      let at = 0;
      const path = operation.path.replace(/\{\w+\}/g, () => given[at++]?.text ?? '');
      return {
        method: operation.method,
        path: query === '' ? path : `${path}?${query}`,
        headers: { authorization: `Bearer ${token}`, ...(sent === null ? {} : { 'content-type': type }), ...odd },
        body: sent,
        strays: given.some(({ strays }) => strays),
        hangsUp: operation.id === 'streamEvents',
      };
    });
}
