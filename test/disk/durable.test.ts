/** Our own files are replaced whole, and what was there stays when that fails. */
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { createFile, renameDurably, replaceFile, syncDirectory } from '../../src/disk/durable.js';
import { temporaryDirectory } from '../support/database.js';

describe('a file that is replaced', () => {
  it('has the new content and the mode, whatever the umask is', () => {
    const path = join(temporaryDirectory(), 'file');
    writeFileSync(path, 'old', { mode: 0o666 });
    const before = process.umask(0o777);
    try {
      replaceFile(path, 'new', { mode: 0o640 });
    } finally {
      process.umask(before);
    }
    expect(readFileSync(path, 'utf8')).toBe('new');
    expect(statSync(path).mode & 0o777).toBe(0o640);
  });

  it('is a file of its own, and no link that another process put at the temporary name', () => {
    const directory = temporaryDirectory();
    const other = join(directory, 'other');
    writeFileSync(other, 'of somebody else');
    symlinkSync(other, join(directory, 'file.new'));
    replaceFile(join(directory, 'file'), 'new');
    expect(readFileSync(other, 'utf8')).toBe('of somebody else');
    expect(readdirSync(directory).sort()).toEqual(['file', 'other']);
  });

  it('stays as it is, with nothing beside it, when the new one cannot take its place', () => {
    const directory = temporaryDirectory();
    const path = join(directory, 'taken');
    mkdirSync(path);
    expect(() => replaceFile(path, 'new')).toThrow(/EISDIR|ENOTEMPTY|EEXIST/);
    expect(readdirSync(directory)).toEqual(['taken']);
  });
});

it('a file is created only where nothing is', () => {
  const path = join(temporaryDirectory(), 'file');
  createFile(path, 'first', 0o600);
  expect(() => createFile(path, 'second', 0o600)).toThrow(/EEXIST/);
  expect(readFileSync(path, 'utf8')).toBe('first');
});

it('a name moves to another directory', () => {
  const [from, to] = [join(temporaryDirectory(), 'a'), join(temporaryDirectory(), 'b')];
  writeFileSync(from, 'content');
  renameDurably(from, to);
  expect(existsSync(from)).toBe(false);
  expect(readFileSync(to, 'utf8')).toBe('content');
});

it('a file system without directories that can be synced is no failure, and a missing directory is one', () => {
  expect(() => syncDirectory('/proc/self/fd')).not.toThrow();
  expect(() => syncDirectory(join(temporaryDirectory(), 'none'))).toThrow(/ENOENT/);
});
