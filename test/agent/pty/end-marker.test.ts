/** The end of the output, however it is cut into pieces. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseStat } from '../../../src/agent/pty/process-table.js';
import { EndMarker } from '../../../src/agent/pty/pty.js';

describe('the marker of the end', () => {
  it('is found in any pieces, and nothing before it is lost or changed', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), fc.array(fc.integer({ min: 1, max: 40 })), (text, cuts) => {
        const marker = new EndMarker();
        // A beginning of the marker that is none.
        const whole = Buffer.concat([
          text,
          marker.bytes.subarray(0, 7),
          Buffer.from('x'),
          marker.bytes,
          Buffer.from('late'),
        ]);
        const out: Buffer[] = [];
        let at = 0;
        let isFound = false;
        for (let turn = 0; at < whole.length && !isFound; turn += 1) {
          const size = cuts[turn % Math.max(1, cuts.length)] ?? 13;
          const { output, found } = marker.feed(whole.subarray(at, at + size));
          out.push(output);
          isFound = found;
          at += size;
        }
        expect(isFound).toBe(true);
        expect(Buffer.concat(out)).toEqual(whole.subarray(0, text.length + 8));
      }),
    );
  });

  it('gives back what it held when it never comes', () => {
    const marker = new EndMarker();
    const beginning = marker.bytes.subarray(0, 10);
    expect(marker.feed(beginning)).toEqual({ output: Buffer.alloc(0), found: false });
    expect(marker.release()).toEqual(beginning);
    expect(marker.release().length).toBe(0);
  });
});

describe('a line of the process table', () => {
  it('is read whatever the name of the process is', () => {
    const rest = 'S 1 100 100 34816 200 4194560 1 2 3 4 5 6 7 8 20 0 1 0 98765 1 2 3';
    expect(parseStat(`123 (a) Z 9 (b) ${rest}`)).toEqual({
      pid: 123,
      state: 'S',
      group: 100,
      session: 100,
      tty: 34816,
      foreground: 200,
      startTime: 98765,
    });
    expect(parseStat('')).toBeNull();
    expect(parseStat('12 (x) S 1')).toBeNull();
  });
});
