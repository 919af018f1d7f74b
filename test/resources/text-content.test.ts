import { describe, expect, it } from 'vitest';
import { checkText } from '../../src/resources/file-content.js';
import { MAX_CONTENT_BYTES } from '../../src/resources/host.js';
import { parentOf, problemOfUnixPath } from '../../src/resources/unix/unix-path.js';

describe('the content of a file', () => {
  it('may be as large as what is compared, counted in bytes', () => {
    expect(checkText('x'.repeat(MAX_CONTENT_BYTES))).toEqual([]);
    expect(checkText('x'.repeat(MAX_CONTENT_BYTES + 1))).toMatchObject([{ path: '/content' }]);
    expect(checkText('ü'.repeat(MAX_CONTENT_BYTES / 2))).toEqual([]);
    expect(checkText(`${'ü'.repeat(MAX_CONTENT_BYTES / 2)}x`)).toHaveLength(1);
    expect(checkText('€'.repeat(MAX_CONTENT_BYTES / 3))).toEqual([]);
    expect(checkText('🐟'.repeat(MAX_CONTENT_BYTES / 4 + 1))).toHaveLength(1);
  });

  it('has to come back from the disk as it was written', () => {
    expect(checkText('a\0b\r\n🐟')).toEqual([]);
    expect(checkText('half \ud83d')).toEqual([{ path: '/content', message: 'content is not valid Unicode text' }]);
    expect(checkText('\udc1f\ud83d')).toHaveLength(1);
  });
});

describe('a path', () => {
  it.each(['/a', '/etc/motd', '/.hidden/..double/a..', '/with space/ü/🐟', '/a\nb', `/${'x'.repeat(255)}`])(
    'may be %j',
    (path) => {
      expect(problemOfUnixPath(path)).toBeNull();
    },
  );

  it.each<[string, string]>([
    ['', 'must be an absolute path'],
    ['a/b', 'must be an absolute path'],
    ['/', 'root directory'],
    ['/a/', 'must not end'],
    ['/a//b', '"//"'],
    ['/a/.', '"."'],
    ['/./a', '"."'],
    ['/a/../b', '".."'],
    ['/ü/..', '".."'],
    ['/a\0', 'NUL'],
    ['/\ud83d', 'Unicode'],
    [`/${'x'.repeat(256)}`, '255'],
    [`/${'x'.repeat(100)}`.repeat(41), '4095'],
  ])('may not be %j', (path, why) => {
    expect(problemOfUnixPath(path)).toContain(why);
  });

  it('lies in its parent', () => {
    expect(['/a', '/a/b', '/a/b/c'].map(parentOf)).toEqual(['/', '/a', '/a/b']);
  });
});
