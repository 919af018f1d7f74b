import { chmodSync, chownSync, mkdirSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it, onTestFinished } from 'vitest';
import { reachByPath } from '../../../src/agent/host/safe-walk.js';
import { UnixHost } from '../../../src/agent/host/this-host.js';
import { MAX_CONTENT_BYTES, MAX_ENTRIES } from '../../../src/resources/host.js';
import { host, isRoot, look, needs, place, succeeds } from '../../support/agent.js';
import { drawn } from '../../support/exhaustive.js';

describe('observe', () => {
  it('tells text, owner and mode of a file, setuid and sticky bits included', () => {
    const file = join(place(), 'motd');
    writeFileSync(file, 'grüezi\n\0');
    chmodSync(file, 0o4751);
    expect(look(file)).toEqual({
      type: 'file',
      size: 9,
      uid: process.geteuid?.(),
      gid: process.getegid?.(),
      mode: 0o4751,
      content: { kind: 'text', text: 'grüezi\n\0' },
    });
    expect(look(file, { content: false })).toMatchObject({ type: 'file', content: { kind: 'unread' } });
  });

  it('keeps a byte order mark, and tells binary data and what is too large from text', () => {
    const directory = place();
    const at = (name: string, data: string | Buffer) => {
      writeFileSync(join(directory, name), data);
      return look(join(directory, name));
    };
    expect(at('bom', '\ufeffx')).toMatchObject({ content: { kind: 'text', text: '\ufeffx' } });
    expect(at('empty', '')).toMatchObject({ content: { kind: 'text', text: '' } });
    expect(at('latin1', Buffer.from([0x67, 0xfc]))).toMatchObject({ content: { kind: 'binary' } });
    expect(at('surrogate', Buffer.from([0xed, 0xa0, 0x80]))).toMatchObject({ content: { kind: 'binary' } });
    expect(at('largest', 'x'.repeat(MAX_CONTENT_BYTES))).toMatchObject({ content: { kind: 'text' } });
    truncateSync(join(directory, 'largest'), MAX_CONTENT_BYTES + 1);
    expect(look(join(directory, 'largest'))).toMatchObject({ content: { kind: 'too-large' } });
  });

  it('reads files whose size is not what is in them', (context) => {
    needs(context, process.platform === 'linux', 'Linux');
    expect(look('/proc/sys/kernel/ostype')).toMatchObject({ content: { kind: 'text', text: 'Linux\n' } });
    expect(look('/proc/self/status')).toMatchObject({ type: 'file', size: 0, content: { kind: 'text' } });
  });

  it('names what is in a directory, up to a bound', () => {
    const directory = place();
    mkdirSync(join(directory, 'd'), { mode: 0o2750 });
    chmodSync(join(directory, 'd'), 0o3750);
    for (const name of ['b', 'a', '.c']) writeFileSync(join(directory, 'd', name), '');
    expect(look(join(directory, 'd'))).toMatchObject({ type: 'directory', mode: 0o3750, entries: ['.c', 'a', 'b'] });
    expect(look(join(directory, 'd'), { entries: false })).toMatchObject({ type: 'directory', entries: null });
    for (let index = 0; index <= MAX_ENTRIES - 3; index += 1) writeFileSync(join(directory, 'd', `f${index}`), '');
    expect(look(join(directory, 'd'))).toMatchObject({ entries: null });
    rmSync(join(directory, 'd', 'f0'));
    expect(look(join(directory, 'd'))).toMatchObject({ entries: { length: MAX_ENTRIES } });
  });

  it.for([true, false])('tells who could have put a file or directory there, read: %s', (isRead, context) => {
    needs(context, isRoot, 'root');
    const home = place();
    writeFileSync(join(home, 'file'), 'x');
    mkdirSync(join(home, 'directory'));
    const exposures = () =>
      ['file', 'directory'].map((name) => look(join(home, name), { content: isRead, entries: isRead }));
    for (const fact of exposures()) expect(fact).not.toHaveProperty('exposedTo');
    chownSync(home, 1000, 1000);
    for (const fact of exposures()) expect(fact).toHaveProperty('exposedTo', 'others');
    for (const name of ['file', 'directory']) chownSync(join(home, name), 1000, 1000);
    for (const fact of exposures()) expect(fact).toHaveProperty('exposedTo', 'owner');
  });

  it('tells why there is nothing', () => {
    const directory = place();
    writeFileSync(join(directory, 'file'), '');
    symlinkSync('nowhere', join(directory, 'dangling'));
    expect(look(join(directory, 'x'))).toEqual({ type: 'absent', parent: 'directory' });
    expect(look(join(directory, 'x/y/z'))).toEqual({
      type: 'absent',
      parent: 'absent',
      missing: [join(directory, 'x'), join(directory, 'x/y')],
    });
    expect(look(join(directory, 'file/y'))).toEqual({ type: 'absent', parent: 'not-directory' });
    expect(look(join(directory, 'dangling'))).toMatchObject({ type: 'symlink', target: 'nowhere' });
  });

  it('does not hang on a FIFO, and opens no socket and no device', async (context) => {
    const directory = place();
    needs(context, succeeds('mkfifo', join(directory, 'fifo')), 'mkfifo');
    expect(look(join(directory, 'fifo'))).toEqual({ type: 'other', what: 'fifo' });
    expect(look('/dev/null')).toEqual({ type: 'other', what: 'character device' });
    const server = createServer().listen(join(directory, 'socket'));
    onTestFinished(() => void server.close());
    await new Promise((resolve) => server.once('listening', resolve));
    expect(look(join(directory, 'socket'))).toEqual({ type: 'other', what: 'socket' });
  });

  it('sees devices outside of /dev', (context) => {
    needs(context, isRoot, 'root');
    const directory = place();
    needs(context, succeeds('mknod', join(directory, 'null'), 'c', '1', '3'), 'the right to make devices');
    expect(look(join(directory, 'null'))).toEqual({ type: 'other', what: 'character device' });
    needs(context, succeeds('mknod', join(directory, 'loop'), 'b', '7', '0'), 'the right to make devices');
    expect(look(join(directory, 'loop'))).toEqual({ type: 'other', what: 'block device' });
  });

  it('reads regular files below /dev', (context) => {
    const file = `/dev/shm/orch-test-${process.pid}`;
    needs(context, succeeds('touch', file), '/dev/shm');
    onTestFinished(() => rmSync(file, { force: true }));
    expect(look(file)).toMatchObject({ type: 'file', content: { kind: 'text', text: '' } });
  });

  it.each(['relative', '/a/../b', '/a//b', '/a/./b', '/a/', '/', '/a\0b', '/a/\ud800'])(
    'does not look at %j',
    (path) => {
      expect(look(path)).toMatchObject({
        type: 'unreadable',
        code: 'unsafe_path',
        message: expect.stringContaining('must'),
      });
    },
  );

  it('answers a path that the system cannot take', () => {
    expect(look(`${place()}/${'ü'.repeat(200)}`)).toMatchObject({ type: 'unreadable', code: 'unsafe_path' });
  });

  it('leaves no descriptor open', (context) => {
    needs(context, succeeds('test', '-d', '/proc/self/fd'), '/proc');
    const directory = place();
    writeFileSync(join(directory, 'f'), '');
    const count = () => {
      const [fact] = host().observe([{ path: '/proc/self/fd', content: false, entries: true }]);
      return fact?.type === 'directory' ? (fact.entries ?? []).length : 0;
    };
    // The library opens what it needs at its first use.
    look(join(directory, 'f'));
    const before = count();
    for (const name of ['f', 'x', 'f/y', 'x/y']) look(join(directory, name));
    look(directory);
    expect(count()).toBe(before);
  });

  it('sees the same without /proc', () => {
    const directory = place();
    writeFileSync(join(directory, 'f'), 'x');
    symlinkSync('f', join(directory, 'link'));
    const byPath = new UnixHost({ platform: 'macos', reach: reachByPath });
    const paths = ['f', 'link', 'none', 'f/x', '.'].map((name) => (name === '.' ? directory : join(directory, name)));
    const requests = [...paths, '/etc/passwd', '/bin/sh'].map((path) => ({ path, content: true, entries: true }));
    expect(byPath.observe(requests)).toEqual(host().observe(requests));
  });

  it('takes any name that a file can have', () => {
    const directory = place();
    const name = fc
      .string({ unit: 'binary', minLength: 1, maxLength: 40 })
      .filter((text) => !/[/\0]|^\.\.?$|\p{Surrogate}/u.test(text) && Buffer.byteLength(text) <= 255);
    fc.assert(
      fc.property(name, (text) => {
        writeFileSync(join(directory, text), text);
        expect(look(`${directory}/${text}`)).toMatchObject({ type: 'file', content: { text } });
        rmSync(join(directory, text));
      }),
      { numRuns: drawn(200) },
    );
  });
});
