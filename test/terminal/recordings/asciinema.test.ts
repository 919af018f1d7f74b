/** Other programs read our recordings. */
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect } from 'vitest';
import { toHarmlessCast } from '../../../src/terminal/recording/convert-cast.js';
import { temporaryDirectory } from '../../support/database.js';
import { itNeeding } from '../../support/needing.js';
import { all, bytesOfChunks, read } from '../../support/recording-format.js';
import { newEvents, newHead, openRecordings, readPlain } from '../../support/recordings.js';

describe('asciinema', () => {
  itNeeding('asciinema', 'script')('shows what was shown', async () => {
    const { dataDir, recordings } = openRecordings();
    const recorder = await recordings.create(newHead(), newEvents());
    const output = Buffer.from('\x1b[32mnaïve\x1b[0m 日本語 😀\r\n');
    recorder.write('out', output.subarray(0, 8));
    recorder.resize(100, 30);
    recorder.write('out', output.subarray(8));
    recorder.mark('bob joined to watch');
    recorder.write('err', Buffer.from([0xff, 0x0a]));
    await recorder.close(0);
    const file = join(temporaryDirectory(), 'session.cast');
    const plain = readPlain(dataDir, recorder.path);
    for (const cast of [plain, bytesOfChunks(await all(toHarmlessCast(await read(plain))))]) {
      writeFileSync(file, cast);
      // It wants a terminal, and what it shows goes past that into a file.
      const env = { ...process.env, LC_ALL: 'C.UTF-8', FILE: file };
      const shown = spawnSync('script', ['-qec', 'asciinema cat "$FILE" >"$FILE.out"', '/dev/null'], { env });
      expect(shown.stdout.toString()).toBe('');
      expect(readFileSync(`${file}.out`, 'utf8')).toBe(`${output}\ufffd\n`);
      expect(shown.status).toBe(0);
    }
  });
});
