/** The shown output of a program is bounded, and without secrets even where it was cut. */
import { describe, expect, it } from 'vitest';
import { OutputScrub } from '../../../src/agent/converge/discretion.js';
import { shownOutput } from '../../../src/agent/converge/run-item.js';
import { Capture } from '../../../src/agent/host/capture.js';
import { MAX_OUTPUT_BYTES } from '../../../src/resources/command.js';
import { LINK_LIMITS } from '../../../src/wire/limits.js';

const SECRET = 'SUPERSECRET-token-of-length';
const secrets = [{ value: SECRET, shown: '‹secret TOK #1a2b›' }];
const net = new OutputScrub(secrets);

function shown(...chunks: readonly string[]) {
  const capture = new Capture();
  for (const chunk of chunks) capture.add(Buffer.from(chunk));
  const end = { how: 'exited', code: 0 } as const;
  return shownOutput({ end, stdout: capture.text(), stderr: '', truncated: capture.isCut }, net);
}

describe('the output of a program', () => {
  it.each([1, 4, 10, 20, 26])('shows no piece of a secret that the cut went through after %i characters', (at) => {
    const half = MAX_OUTPUT_BYTES / 2;
    const cutInHead = shown('x'.repeat(half - at), SECRET, 'y'.repeat(2 * half));
    const cutInTail = shown('x'.repeat(2 * half), SECRET, 'y'.repeat(half - (SECRET.length - at)));
    for (const { stdout, truncated } of [cutInHead, cutInTail]) {
      expect(truncated).toBe(true);
      expect(stdout).toContain('bytes are left out');
      for (let from = 0; from + 4 <= SECRET.length; from += 1) {
        expect(stdout).not.toContain(SECRET.slice(from, from + 4));
      }
    }
  });

  it('fits into a frame, however many escapes it needs', () => {
    const output = shown('\u0001'.repeat(MAX_OUTPUT_BYTES));
    expect(output.truncated).toBe(true);
    expect(Buffer.byteLength(JSON.stringify(output))).toBeLessThan(LINK_LIMITS.outputSize);
  });
});
