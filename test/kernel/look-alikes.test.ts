/** Names that people can take for each other. */
import { describe, expect, it } from 'vitest';
import { LookAlikes } from '../../src/kernel/look-alikes.js';

describe('a name', () => {
  it.each([
    ['in other case', 'WEB-01'],
    ['with the letter O for zero', 'web-O1'],
    ['with the letter l for one', 'web-0l'],
    ['with full-width digits', 'web-０１'],
    ['with Arabic digits', 'web-٠١'],
    ['with mathematical letters', '𝐰𝐞𝐛-01'],
    ['with a Cyrillic letter', 'wеb-01'],
    ['with a Greek letter', 'wεb-01'],
    ['with vv for w', 'vveb-01'],
    ['with an invisible character', 'web\u200b-01'],
  ])('%s looks like web-01', (_what, name) => {
    expect(new LookAlikes(['db-01', 'web-01']).like(name)).toBe('web-01');
  });

  it.each(['web-02', 'web-011', 'wob-01', 'web_01', 'mail', 'веб-02', 'web-01a'])('%s does not', (name) => {
    expect(new LookAlikes(['db-01', 'web-01', 'mall']).like(name)).toBeNull();
  });
});
