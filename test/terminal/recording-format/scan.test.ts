/** Reads a recording after a crash as far as it is whole, and detects changes to it. */
import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CastEncoder } from '../../../src/terminal/recording/cast-encoder.js';
import { toRaw } from '../../../src/terminal/recording/convert-cast.js';
import { scanCast } from '../../../src/terminal/recording/scan-cast.js';
import { all, bytesOfChunks, encode, head, inPieces, read, type Step, steps } from '../../support/recording-format.js';

const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');

const given: readonly Step[] = [
  { do: 'output', stream: 'out', bytes: Buffer.from('one ö\r\n') },
  { do: 'checkpoint' },
  { do: 'output', stream: 'err', bytes: Buffer.from([0xff, 0x41, 0xc3]) },
  { do: 'resize', cols: 90, rows: 30 },
  { do: 'output', stream: 'err', bytes: Buffer.from([0xa4, 0x0a]) },
  { do: 'checkpoint' },
  { do: 'output', stream: 'out', bytes: Buffer.from('three') },
];
const output = Buffer.concat(given.map((step) => (step.do === 'output' ? step.bytes : Buffer.alloc(0))));

describe('a recording with much between two checkpoints', () => {
  it('is refused before all of that is in memory', async () => {
    const marks = Buffer.from(`[1,"m","${'x'.repeat(988)}"]\n`.repeat(1_000));
    let taken = 0;
    async function* endless() {
      yield Buffer.from(encode([]));
      for (; taken < 1_000; taken += 1) yield marks;
    }
    await expect(scanCast(endless(), () => {})).rejects.toMatchObject({ code: 'transcript_invalid' });
    expect(taken).toBeLessThan(40);
  });
});

describe('a recording that was cut off', () => {
  it('is whole up to its last checkpoint, wherever it was cut', async () => {
    const file = Buffer.from(encode(given));
    const whole = head.length + (encode([]).length - head.length) / 2;
    for (let length = 0; length <= file.length; length += 1) {
      const cut = file.subarray(0, length);
      if (length < whole) {
        await expect(scanCast(inPieces(cut, 64)), `${length} bytes`).rejects.toMatchObject({
          code: 'transcript_invalid',
        });
        continue;
      }
      const scanned = await scanCast(inPieces(cut, 64));
      const kept = cut.subarray(0, scanned.size);
      const raw = bytesOfChunks(await all(toRaw(await read(kept))));
      expect(raw.equals(output.subarray(0, scanned.offset)), `${length} bytes`).toBe(true);
      expect(scanned.fileSize).toBe(length);
      expect(scanned.sha256).toBe(sha256(cut));
      expect(kept.toString().trimEnd().split('\n').at(-1)).toContain(`"offset":${scanned.offset}`);
    }
  });

  it('is gone on with so that nothing shows the seam', async () => {
    await fc.assert(
      fc.asyncProperty(steps, fc.nat(), async (some, place) => {
        const file = Buffer.from(encode(some));
        const cut = file.subarray(0, encode([]).length + (place % file.length));
        const scanned = await scanCast(inPieces(cut, 64));
        const encoder = new CastEncoder(scanned);
        const more = [...encoder.output(1e6, 'err', Buffer.from('and on')), ...encoder.checkpoint(1e6)];
        const again = await scanCast(inPieces(Buffer.concat([cut.subarray(0, scanned.size), ...more])));
        expect(again.offset).toBe(scanned.offset + 6);
        expect(again.size).toBe(again.fileSize);
        expect(encoder.sha256).toBe(again.sha256);
      }),
      { numRuns: 50 },
    );
  });

  it('is not taken for whole when any byte before a checkpoint was changed', async () => {
    const file = Buffer.from(encode(given));
    const { size } = await scanCast(inPieces(file));
    const last = file.subarray(0, size - 1).lastIndexOf(10) + 1;
    for (let at = 0; at < last; at += 1) {
      const changed = Buffer.from(file);
      changed[at] = (changed[at] as number) ^ 1;
      await expect(scanCast(inPieces(changed, 64)), `byte ${at}`).rejects.toMatchObject({ code: 'transcript_invalid' });
    }
  });

  it('is not taken for whole when a line was taken out or put in', async () => {
    const lines = encode(given).trimEnd().split('\n');
    for (let at = 1; at < lines.length - 1; at += 1) {
      const without = `${lines.filter((_, index) => index !== at).join('\n')}\n`;
      await expect(scanCast(inPieces(without, 64)), `without line ${at}`).rejects.toMatchObject({
        code: 'transcript_invalid',
      });
      const doubled = `${lines.flatMap((line, index) => (index === at ? [line, line] : [line])).join('\n')}\n`;
      await expect(scanCast(inPieces(doubled, 64)), `line ${at} twice`).rejects.toMatchObject({
        code: 'transcript_invalid',
      });
    }
  });
});
