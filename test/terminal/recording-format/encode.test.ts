/** A recording holds its session byte for byte, in a file that every player reads. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { toRaw } from '../../../src/terminal/recording/convert-cast.js';
import { all, bytesOfChunks, chunks, encode, itemsOf, read, type Step, steps } from '../../support/recording-format.js';

const outputs = (given: readonly Buffer[]): Step[] => given.map((bytes) => ({ do: 'output', stream: 'out', bytes }));

describe('a recording', () => {
  it('gives every byte back, wherever chunks were cut', async () => {
    await fc.assert(
      fc.asyncProperty(chunks, async (given) => {
        const raw = await all(toRaw(await read(encode(outputs(given)))));
        expect(bytesOfChunks(raw).equals(Buffer.concat(given))).toBe(true);
      }),
    );
  });

  it('keeps the streams of a command apart, and their bytes in order', async () => {
    await fc.assert(
      fc.asyncProperty(steps, async (given) => {
        const items = await itemsOf(encode(given));
        for (const stream of ['out', 'err'] as const) {
          const expected = given.flatMap((step) =>
            step.do === 'output' && step.stream === stream ? [step.bytes] : [],
          );
          const found = items.flatMap((item) =>
            item.kind === 'output' && item.stream === stream ? [item.bytes ?? Buffer.from(item.text)] : [],
          );
          expect(Buffer.concat(found).equals(Buffer.concat(expected))).toBe(true);
        }
      }),
    );
  });

  it('is lines of JSON whose times do not go back, and harmless itself on a terminal', async () => {
    await fc.assert(
      fc.property(steps, (given) => {
        const file = encode(given);
        expect(file.replaceAll('\n', '')).not.toMatch(/[\x00-\x1f\x7f-\x9f\u2028\u2029]/);
        const [first, ...lines] = file
          .trimEnd()
          .split('\n')
          .map((line) => JSON.parse(line) as [number, string, unknown]);
        expect(first).toMatchObject({
          version: 2,
          width: 80,
          height: 24,
          env: { TERM: 'xterm-256color', SHELL: '/bin/bash' },
        });
        const times = lines.map(([at]) => at);
        expect(times).toEqual([...times].sort((a, b) => a - b));
        expect(lines.every(([, code]) => /^[ohbsrmx]$/.test(code))).toBe(true);
      }),
    );
  });

  it('breaks no character that is whole in the end', async () => {
    const bytes = Buffer.from('naïve — 日本語 😀\r\n');
    const items = await itemsOf(encode(outputs([...bytes].map((byte) => Buffer.of(byte)))));
    const text = items.map((item) => (item.kind === 'output' ? item.text : '')).join('');
    expect(text).toBe('naïve — 日本語 😀\r\n');
  });

  it('tells sizes, marks and the exit', async () => {
    const file = `${encode([
      { do: 'resize', cols: 100, rows: 30 },
      { do: 'mark', text: 'ada joined' },
    ])}[9,"x","3"]\n[9.5,"i","typed"]\n`;
    expect(await itemsOf(file)).toEqual([
      { at: 0.011, kind: 'size', cols: 100, rows: 30 },
      { at: 0.021, kind: 'mark', text: 'ada joined' },
      { at: 9, kind: 'exit', status: '3' },
    ]);
  });

  it('refuses what is no recording, and passes over a torn last line', async () => {
    await expect(read('')).rejects.toMatchObject({ code: 'transcript_invalid' });
    await expect(read('{"version":3,"term":{}}\n')).rejects.toMatchObject({ code: 'transcript_invalid' });
    await expect(itemsOf(`${encode([])}nonsense\n[1,"o","x"]\n`)).rejects.toMatchObject({ code: 'transcript_invalid' });
    expect(await itemsOf(`${encode([])}[1,"o","x"]\n[2,"o","y`)).toEqual([
      { at: 1, kind: 'output', stream: 'out', text: 'x', bytes: null },
    ]);
  });
});
