import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { foldCase } from '../../src/resources/windows/windows-case.js';
import {
  parentOfWindowsPath,
  problemOfWindowsPath,
  windowsIdentity,
  windowsPath,
} from '../../src/resources/windows/windows-path.js';

describe('a Windows path', () => {
  it.each([
    'C:\\a',
    'c:/a/b',
    'D:\\Program Files (x86)\\~1\\.hidden\\a..b',
    'C:\\ü 日本 🐟',
    'C:\\console',
    'C:\\com10',
    'C:\\nulls.txt',
    `C:\\${'x'.repeat(255)}`,
  ])('may be %j', (path) => {
    expect(problemOfWindowsPath(path)).toBeNull();
  });

  it.each<[string, string]>([
    ['', 'drive letter'],
    ['1:\\a', 'drive letter'],
    ['C:', 'drive letter'],
    ['\\a', 'drive letter'],
    ['\\\\.\\C:\\a', 'drive letter'],
    ['C:/', 'root'],
    ['C:\\a/', 'end with a separator'],
    ['C:\\\\a', 'two separators'],
    ['C:\\a\\.', '"."'],
    ['C:\\...', 'dot or a space'],
    ['C:\\aux', 'device'],
    ['C:\\AUX .txt', 'device'],
    ['C:\\lpt9.a.b\\c', 'device'],
    ['C:\\conin$', 'device'],
    ['C:\\com¹', 'device'],
    ['C:\\a\tb', 'control'],
    ['C:\\a<b', '"<"'],
    ['C:\\a|b', '"|"'],
    ['C:\\a::$DATA', '":"'],
    ['C:\\\ud83d', 'Unicode'],
    [`C:\\${'x'.repeat(256)}`, '255'],
    [`C:${`\\${'x'.repeat(100)}`.repeat(41)}`, '4095'],
  ])('may not be %j', (path, why) => {
    expect(problemOfWindowsPath(path)).toContain(why);
  });

  it('lies in its parent', () => {
    expect(['C:\\a', 'C:\\a\\b', 'C:\\a\\b\\c'].map(parentOfWindowsPath)).toEqual(['C:\\', 'C:\\a', 'C:\\a\\b']);
  });

  it('is shown with backslashes and a large drive letter, and compared without its case', () => {
    expect(windowsPath('c:/Program Files/A.ini')).toBe('C:\\Program Files\\A.ini');
    expect(windowsIdentity('c:/Program Files/A.ini')).toBe('C:\\program files\\a.ini');
    expect(windowsIdentity('C:\\PROGRAM FILES\\Ä.INI')).toBe(windowsIdentity('c:/program files/ä.ini'));
  });

  it('keeps what an expression refers to', () => {
    expect(windowsIdentity(`c:/Sites/\${{ secrets.DB_NAME }}/X`)).toBe(`C:\\sites\\\${{ secrets.DB_NAME }}\\x`);
  });

  it('has one form of each kind, however often it is brought to it', () => {
    const part = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 12 });
    fc.assert(
      fc.property(fc.constantFrom('c', 'D'), fc.array(part, { minLength: 1, maxLength: 4 }), (drive, parts) => {
        const path = `${drive}:/${parts.join('\\')}`;
        fc.pre(problemOfWindowsPath(path) === null);
        expect(problemOfWindowsPath(windowsPath(path))).toBeNull();
        expect(windowsPath(windowsPath(path))).toBe(windowsPath(path));
        expect(windowsIdentity(windowsIdentity(path))).toBe(windowsIdentity(path));
        expect(windowsIdentity(windowsPath(path))).toBe(windowsIdentity(path));
      }),
    );
  });
});

describe('folding of case', () => {
  it('changes no length, because Windows compares unit by unit', () => {
    fc.assert(fc.property(fc.string({ unit: 'binary' }), (text) => foldCase(text).length === text.length));
    expect(foldCase('straße')).not.toBe(foldCase('STRASSE'));
    expect(foldCase('ÄÖ')).toBe(foldCase('äö'));
  });
});
