/** Grants as they are written on the command line. */
import { describe, expect, it } from 'vitest';
import { grantsOf } from '../../src/cli/commands/grants.js';

describe('a grant', () => {
  it.each([
    ['deployer:env=dev', ['deployer'], 'env=dev'],
    ['exec, terminal:env in (dev, test)', ['exec', 'terminal'], 'env in (dev, test)'],
    ['deployer,tag:env=dev', ['deployer', 'tag'], 'env=dev'],
    ['tag,tag:env:env=dev', ['tag', 'tag:env'], 'env=dev'],
    ['tag:env,read:*', ['tag:env', 'read'], '*'],
    ['tag:env,tag:role:env=dev', ['tag:env', 'tag:role'], 'env=dev'],
    ['read:zone=a:b', ['read'], 'zone=a:b'],
  ])('%s', (text, rights, selector) => {
    expect(grantsOf([text])).toEqual([{ rights, selector }]);
  });

  it.each(['deployer', 'deployer:', ':', ''])('is not %j', (text) => {
    expect(() => grantsOf([text])).toThrow(expect.objectContaining({ code: 'usage' }));
  });
});
