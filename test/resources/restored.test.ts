/** What an undone apply says of each kind of resource. */
import { expect, it } from 'vitest';
import { MODULE_KINDS } from '../../src/resources/catalogue.js';
import { whyNotRestorable } from '../../src/resources/restored.js';

it('says that packages stay, and that a script cannot be undone', () => {
  const packages = [...MODULE_KINDS.keys()].filter((kind) => kind.startsWith('package-'));
  expect(packages).toEqual(expect.arrayContaining(['package-apt', 'package-dnf']));
  for (const kind of packages) expect(whyNotRestorable(kind)).toBe('packages stay as they are');
  expect(whyNotRestorable('script')).toBe('what a script has done cannot be undone');
});
