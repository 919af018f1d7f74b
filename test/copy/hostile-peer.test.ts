/** What the receiver and the sender of a copy refuse of a hostile peer, on a real file system. */
import { createHash } from 'node:crypto';
import {
  constants,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { COPY_LIMITS, CopyReader, CopyWriter } from '../../src/copy/copy-frames.js';
import { HeldDirectory } from '../../src/copy/held-directory.js';
import { type PartialFile, removePartials } from '../../src/copy/incoming-file.js';
import { receiveEntries } from '../../src/copy/receive-entries.js';
import { Replies } from '../../src/copy/replies.js';

let outer = '';
let target = '';

beforeEach(() => {
  outer = realpathSync(mkdtempSync(join(tmpdir(), 'orch-copy-')));
  target = join(outer, 'target');
  mkdirSync(target);
  writeFileSync(join(outer, 'key'), 'private');
});

afterEach(() => rmSync(outer, { recursive: true, force: true }));

const frame = (code: number, payload: Buffer | object): Buffer => {
  const bytes = Buffer.isBuffer(payload) ? payload : Buffer.from(JSON.stringify(payload));
  const head = Buffer.alloc(5);
  head.writeUInt32BE(bytes.length);
  head[4] = code;
  return Buffer.concat([head, bytes]);
};
const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');
const dir = (name: string) => frame(5, { name, mode: 0o755, mtime: 0 });
const up = frame(6, {});
const begin = (name: string) => frame(7, { name, mode: 0o644, mtime: 0, resume: false });
const data = (text: string) => frame(8, Buffer.from(text));
const end = (text: string) => frame(10, { sha256: sha256(text) });
const file = (name: string, text: string) => Buffer.concat([begin(name), data(text), end(text)]);
/** A small file in one frame. */
const whole = (name: string, text: string, hash = sha256(text), mode = 0o644) => {
  const json = Buffer.from(JSON.stringify({ name, mode, mtime: 0, sha256: hash }));
  const length = Buffer.alloc(2);
  length.writeUInt16BE(json.length);
  return frame(17, Buffer.concat([length, json, Buffer.from(text)]));
};
const link = (name: string, to: string) => frame(11, { name, target: to });
const done = frame(13, {});

interface Received {
  readonly isDone: boolean;
  readonly failures: readonly string[];
  readonly partials: readonly PartialFile[];
}

/** Receives these frames into the target as `top`. @param loss ends the stream as a lost connection does */
async function receive(frames: readonly Buffer[], loss: Error | null = null): Promise<Received> {
  const input = new PassThrough();
  const output = new PassThrough();
  output.resume();
  input.on('error', () => undefined);
  const failures: string[] = [];
  const partials: PartialFile[] = [];
  const root = await HeldDirectory.open(target);
  for (const one of frames) input.write(one);
  if (loss === null) input.end();
  else setImmediate(() => input.destroy(loss));
  try {
    const isDone = await receiveEntries({
      reader: new CopyReader(input),
      out: new CopyWriter(output),
      root,
      name: 'top',
      id: '0'.repeat(32),
      preserve: true,
      umask: 0o022,
      onFile: () => undefined,
      onFailed: (path, reason) => failures.push(`${path}: ${reason}`),
      onPartial: (partial) => partials.push(partial),
    });
    return { isDone, failures, partials };
  } catch (error) {
    if (loss === null || error !== loss) throw error;
    return { isDone: false, failures, partials };
  } finally {
    await root.close();
  }
}

const all = (): readonly string[] => readdirSync(outer, { recursive: true, encoding: 'utf8' }).sort();

it('takes what a correct peer sends, under the name that was asked for', async () => {
  const { isDone, failures } = await receive([dir('other'), file('a', 'text'), link('l', 'a'), up, done]);
  expect([isDone, failures]).toEqual([true, []]);
  expect(readdirSync(target)).toEqual(['top']);
  expect(readdirSync(join(target, 'top'))).toEqual(['a', 'l']);
});

describe('a sender', () => {
  it.each(['..', '.', '', '../key', '/etc/x', 'a/b', 'a\0b', 'x'.repeat(256), '\u0100'])(
    'cannot name an entry %j',
    async (name) => {
      const before = all();
      for (const entry of [dir(name), begin(name), whole(name, 'x'), link(name, 'x')]) {
        await expect(receive([dir('d'), entry])).rejects.toMatchObject({ code: 'protocol_violation' });
      }
      expect(all()).toEqual([...before, join('target', 'top')].sort());
    },
  );

  it('cannot lead through a link that it has sent, or that is there', async () => {
    symlinkSync(outer, join(target, 'there'));
    const frames = [link('way', outer), dir('way'), file('key', 'stolen'), up];
    const { failures, isDone } = await receive([dir('d'), ...frames, file('b', 'text'), up, done]);
    expect(isDone).toBe(true);
    expect(failures).toEqual(['top/way: a link is there, and links are not followed']);
    expect(readFileSync(join(outer, 'key'), 'utf8')).toBe('private');
    expect(readFileSync(join(target, 'top', 'b'), 'utf8')).toBe('text');
  });

  it('cannot lead a small file through a link that it has sent, or that is there', async () => {
    symlinkSync(outer, join(target, 'there'));
    const frames = [link('way', outer), dir('way'), whole('key', 'stolen'), up];
    const { failures } = await receive([
      dir('d'),
      ...frames,
      link('a', join(outer, 'key')),
      whole('a', 'text'),
      up,
      done,
    ]);
    expect(failures).toEqual(['top/way: a link is there, and links are not followed']);
    expect(readFileSync(join(outer, 'key'), 'utf8')).toBe('private');
    expect(lstatSync(join(target, 'top', 'a')).isFile()).toBe(true);
  });

  it('replaces a link that it has sent, and not what it leads to', async () => {
    await receive([dir('d'), link('a', join(outer, 'key')), file('a', 'text'), up, done]);
    expect(lstatSync(join(target, 'top', 'a')).isFile()).toBe(true);
    expect(readFileSync(join(outer, 'key'), 'utf8')).toBe('private');
  });

  it('cannot exchange the directory that it writes to for a link', async () => {
    const root = await HeldDirectory.open(target);
    try {
      rmSync(target, { recursive: true });
      symlinkSync(outer, target);
      await expect(root.open('key', 0)).rejects.toMatchObject({ code: 'ENOENT' });
      await expect(HeldDirectory.open(target)).rejects.toMatchObject({ code: 'ELOOP' });
    } finally {
      await root.close();
    }
  });

  it('cannot have a file opened through a link, in either way', async () => {
    symlinkSync(join(outer, 'key'), join(target, 'way'));
    const root = await HeldDirectory.open(target);
    try {
      await expect(root.open('way', constants.O_RDONLY)).rejects.toMatchObject({ code: 'ELOOP' });
      expect(() => root.openNow('way', constants.O_RDONLY)).toThrow(expect.objectContaining({ code: 'ELOOP' }));
    } finally {
      root.close();
    }
    // Another directory may get the descriptor of a closed one.
    expect(() => root.openNow('way', constants.O_RDONLY)).toThrow('the directory is closed');
  });

  it.each<readonly [string, readonly Buffer[]]>([
    ['a second entry', [file('a', 'x'), file('b', 'y')]],
    ['an end of no directory', [up]],
    ['data outside a file', [data('x')]],
    ['an end outside a file', [end('x')]],
    ['an entry within a file', [begin('a'), dir('b')]],
    ['an end of all within a directory', [dir('a'), done]],
    ['too deep directories', Array.from({ length: COPY_LIMITS.depth + 1 }, () => dir('d'))],
    ['a hole that costs more than it sends', [begin('a'), frame(9, { length: 2 ** 40 })]],
    ['a frame of four gigabytes', [Buffer.from([0xff, 0xff, 0xff, 0xff, 8])]],
    ['a long frame that is no data', [Buffer.from([0, 1, 0, 0, 4])]],
    ['a frame of an unknown kind', [frame(99, {})]],
    ['no JSON', [frame(5, Buffer.from('{'))]],
    ['a small file within a file', [begin('a'), whole('b', 'x')]],
    ['a small file that is none', [whole('a', 'x'.repeat(COPY_LIMITS.whole + 1))]],
    ['a small file without a hash', [frame(17, Buffer.concat([Buffer.from([0, 2]), Buffer.from('{}')]))]],
    ['a small file that ends early', [frame(17, Buffer.from([0, 9, 1]))]],
    ['a small file without a length', [frame(17, Buffer.from([0]))]],
    ['a mode of five digits', [frame(5, { name: 'a', mode: 0o10000, mtime: 0 })]],
    ['members of a prototype', [frame(5, Buffer.from('{"__proto__": {"name": "a", "mode": 1, "mtime": 0}}'))]],
    ['an answer in place of an entry', [frame(15, { count: 1 })]],
  ])('is cut off for %s', async (_, frames) => {
    await expect(receive(frames)).rejects.toMatchObject({ code: 'protocol_violation' });
    expect(readdirSync(target, { recursive: true }).filter((name) => `${name}`.includes('.orch-cp-'))).toEqual([]);
  });

  it('gives a file its name only when all of it is there and right', async () => {
    writeFileSync(join(target, 'top'), 'old');
    const wrong = await receive([begin('a'), data('new'), end('other'), done]);
    expect(wrong.failures).toEqual(['top: it changed while it was copied: copy it again']);
    const small = await receive([whole('a', 'new', sha256('other')), done]);
    expect(small.failures).toEqual(['top: it changed while it was copied: copy it again']);
    const early = await receive([begin('a'), data('new')]);
    expect(early.isDone).toBe(false);
    expect(all()).toEqual(['key', 'target', join('target', 'top')]);
    expect(readFileSync(join(target, 'top'), 'utf8')).toBe('old');
  });

  it('that is lost leaves one private incomplete file, which can be removed', async () => {
    const { partials } = await receive([begin('a'), data('part')], new Error('lost'));
    expect(partials.length).toBe(1);
    const [name = ''] = readdirSync(target);
    expect(name).toMatch(/^\.orch-cp-[0-9a-f]{24}$/);
    expect(lstatSync(join(target, name)).mode & 0o777).toBe(0o600);
    expect(existsSync(join(target, 'top'))).toBe(false);
    // The directory is held by the caller here, who has closed it; a new one removes the file.
    const root = await HeldDirectory.open(target);
    await removePartials([{ directory: root, name, close: () => root.close() }]);
    expect(readdirSync(target)).toEqual([]);
  });

  it('gives nobody the rights of the receiver', async () => {
    const setuid = frame(7, { name: 'a', mode: 0o6755, mtime: 0, resume: false });
    await receive([setuid, data('x'), end('x'), done]);
    expect(lstatSync(join(target, 'top')).mode & 0o7777).toBe(0o755);
    await receive([whole('a', 'x', sha256('x'), 0o6755), done]);
    expect(lstatSync(join(target, 'top')).mode & 0o7777).toBe(0o755);
  });
});

describe('an incomplete file of the same name', () => {
  it.each<readonly [string, (path: string) => void]>([
    ['a link', (path) => symlinkSync(join(outer, 'key'), path)],
    ['open to others', (path) => writeFileSync(path, 'evil', { mode: 0o666 })],
  ])('is not gone on with when it is %s', async (_, plant) => {
    await receive([begin('a'), data('part')], new Error('lost'));
    const [name = ''] = readdirSync(target);
    rmSync(join(target, name));
    plant(join(target, name));
    const resumed = frame(7, { name: 'a', mode: 0o644, mtime: 0, resume: true });
    const { failures } = await receive([resumed, data('whole'), end('whole'), done]);
    expect(failures).toEqual([]);
    expect(readFileSync(join(target, 'top'), 'utf8')).toBe('whole');
    expect(readFileSync(join(outer, 'key'), 'utf8')).toBe('private');
  });
});

describe('a receiver', () => {
  it.each<readonly [string, readonly Buffer[]]>([
    ['settles what was not sent', [frame(15, { count: 2 })]],
    ['settles backwards', [frame(15, { count: 1 }), frame(15, { count: 0 })]],
    ['refuses what was not sent', [frame(16, { entry: 7, reason: 'x' })]],
    ['sends entries itself', [begin('a')]],
  ])('is cut off when it %s', async (_, frames) => {
    const input = new PassThrough();
    const replies = new Replies({ reader: new CopyReader(input), onSettled: () => undefined });
    await replies.expect({ source: 0, path: 'a', position: { path: [], isDone: true }, content: null });
    for (const one of frames) input.write(one);
    await expect(replies.ended).rejects.toMatchObject({ code: 'protocol_violation' });
  });
});
