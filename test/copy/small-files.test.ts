/** Which files a sender sends in one frame, and that it sends none so to a receiver that does not take them. */
import { mkdirSync, mkdtempSync, realpathSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { COPY_LIMITS, type CopyFrame, CopyReader, CopyWriter } from '../../src/copy/copy-frames.js';
import { HeldDirectory } from '../../src/copy/held-directory.js';
import { Replies } from '../../src/copy/replies.js';
import { sendEntry } from '../../src/copy/send-entry.js';

let root = '';

beforeEach(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), 'orch-copy-')));
  mkdirSync(join(root, 'tree'));
});

afterEach(() => rmSync(root, { recursive: true, force: true }));

/** Sends the tree to a receiver that says nothing. Returns the frames of its entries. */
async function sent(whole: boolean, resume = false): Promise<readonly CopyFrame[]> {
  const output = new PassThrough({ highWaterMark: 64 * 1024 * 1024 });
  const directory = await HeldDirectory.open(root);
  const answers = new PassThrough();
  if (resume) new CopyWriter(answers).write({ type: 'at', offset: 0 });
  try {
    await sendEntry(directory, 'tree', {
      out: new CopyWriter(output),
      replies: new Replies({ reader: new CopyReader(answers), onSettled: () => undefined }),
      recursive: true,
      whole,
      source: 0,
      label: 'tree',
      resume: { isPending: resume },
      after: null,
      onBytes: () => undefined,
      onFailed: (path, reason) => expect.fail(`${path}: ${reason}`),
    });
  } finally {
    directory.close();
  }
  output.end();
  const frames: CopyFrame[] = [];
  const reader = new CopyReader(output);
  for (let frame = await reader.next(); frame !== null; frame = await reader.next()) frames.push(frame);
  return frames;
}

/** Returns types of frames with the name of their entry. */
const outline = (frames: readonly CopyFrame[]) =>
  frames.map((frame) => ('name' in frame ? `${frame.type} ${frame.name}` : frame.type));

it('sends small files in one frame each, and larger ones and zeros in parts', async () => {
  writeFileSync(join(root, 'tree', 'empty'), '');
  writeFileSync(join(root, 'tree', 'large'), Buffer.alloc(COPY_LIMITS.whole + 1, 1));
  writeFileSync(join(root, 'tree', 'small'), Buffer.alloc(COPY_LIMITS.whole, 1), { mode: 0o640 });
  writeFileSync(join(root, 'tree', 'zeros'), '');
  truncateSync(join(root, 'tree', 'zeros'), 8192);
  const frames = await sent(true);
  expect(outline(frames)).toEqual([
    'dir tree',
    'whole empty',
    ...['file large', 'data', 'end'],
    'whole small',
    ...['file zeros', 'hole', 'end'],
    'up',
  ]);
  const small = frames[5];
  if (small?.type !== 'whole') throw new Error('another frame');
  expect(small.mode).toBe(0o640);
  expect(small.bytes.equals(Buffer.alloc(COPY_LIMITS.whole, 1))).toBe(true);
});

it('sends all files in parts to a receiver that takes no others', async () => {
  writeFileSync(join(root, 'tree', 'small'), 'text');
  expect(outline(await sent(false))).toEqual(['dir tree', 'file small', 'data', 'end', 'up']);
});

it('asks what is there of the first file of a copy that goes on', async () => {
  writeFileSync(join(root, 'tree', 'a'), 'text');
  writeFileSync(join(root, 'tree', 'b'), 'text');
  expect(outline(await sent(true, true))).toEqual(['dir tree', 'file a', 'data', 'end', 'whole b', 'up']);
});

it('sends a file whose size says nothing of its content', async () => {
  const directory = await HeldDirectory.open(`/proc/${process.pid}`);
  const output = new PassThrough();
  try {
    await sendEntry(directory, 'status', {
      out: new CopyWriter(output),
      replies: new Replies({ reader: new CopyReader(new PassThrough()), onSettled: () => undefined }),
      recursive: false,
      whole: true,
      source: 0,
      label: 'status',
      resume: { isPending: false },
      after: null,
      onBytes: () => undefined,
      onFailed: (path, reason) => expect.fail(`${path}: ${reason}`),
    });
  } finally {
    directory.close();
  }
  const frame = await new CopyReader(output).next();
  expect(frame?.type === 'whole' && frame.bytes.toString()).toContain('VmRSS');
});
