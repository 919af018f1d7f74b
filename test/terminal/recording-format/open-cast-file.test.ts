import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
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
