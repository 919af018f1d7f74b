/** A cache that is limited by the total size of its values. */
import { expect, it } from 'vitest';
import { SizedCache } from '../../src/kernel/sized-cache.js';

it('drops what was used longest ago when there is too much, and keeps nothing larger than itself', () => {
  const cache = new SizedCache<string, number>(10);
  cache.set('a', 1, 4);
  cache.set('b', 2, 4);
  expect(cache.get('a')).toBe(1);
  cache.set('c', 3, 4);
  expect([cache.get('a'), cache.get('b'), cache.get('c')]).toEqual([1, undefined, 3]);
  cache.set('huge', 4, 11);
  expect(cache.get('huge')).toBeUndefined();
  cache.set('whole', 5, 10);
  expect([cache.get('a'), cache.get('c'), cache.get('whole')]).toEqual([undefined, undefined, 5]);
});
