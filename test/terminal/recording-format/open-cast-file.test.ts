import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { openCastFile } from '../../../src/terminal/recording/read-cast.js';

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'orch-cast-'));
});
afterEach(() => rmSync(directory, { recursive: true }));

it('refuses all but regular files, a FIFO without a writer among them', async () => {
  const fifo = join(directory, 'fifo.cast');
  execFileSync('mkfifo', [fifo]);
  await expect(openCastFile(fifo)).rejects.toMatchObject({ code: 'transcript_invalid' });
  await expect(openCastFile(directory)).rejects.toMatchObject({ code: 'transcript_invalid' });
  await expect(openCastFile(join(directory, 'gone.cast'))).rejects.toMatchObject({ code: 'ENOENT' });
});

it.each([
  ['no gzip data', Buffer.from([0x1f, 0x8b, 8, 0, 1, 2, 3])],
  ['half of it', gzipSync('a recording').subarray(0, -9)],
])('says that a compressed recording is damaged: %s', async (_, bytes) => {
  const path = join(directory, 'damaged.cast.gz');
  writeFileSync(path, bytes);
  const read = async () => {
    for await (const _chunk of await openCastFile(path));
  };
  await expect(read()).rejects.toMatchObject({ code: 'transcript_invalid' });
});
