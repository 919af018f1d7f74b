import { expect, it } from 'vitest';
import { compareVersions } from '../../src/release/version-order.js';

it('versions are ordered as Semantic Versioning says', () => {
  const ascending = [
    '0.9.0',
    '0.10.0-alpha',
    '0.10.0-alpha.1',
    '0.10.0-alpha.beta',
    '0.10.0-beta.2',
    '0.10.0-beta.11',
    '0.10.0-rc.1',
    '0.10.0',
    '0.10.1',
    '1.0.0',
  ];
  const shuffled = [...ascending].reverse();
  expect(shuffled.sort(compareVersions)).toEqual(ascending);
  expect(compareVersions('1.2.3', '1.2.3')).toBe(0);
});
