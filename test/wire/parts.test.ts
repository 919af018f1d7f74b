import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { DesiredResource } from '../../src/resources/desired.js';
import { encode } from '../../src/wire/codec.js';
import { LINK_LIMITS } from '../../src/wire/limits.js';
import { cutRun, RunAssembly, type RunContent } from '../../src/wire/parts.js';

const HEAD = { run_id: '01JD0000000000000000000000', mode: 'apply', epoch: 1, generation: 1 } as const;

const file = (index: number, content: unknown): DesiredResource => ({
  module: 'web',
  kind: 'file-unix',
  identity: `/srv/file-${index}`,
  id: null,
  name: null,
  body: { path: `/srv/file-${index}`, content },
  after: index === 0 ? [] : [index - 1],
});

/** Sends a content in parts and puts it together again. */
function overTheLink(
  content: RunContent,
  partSize?: number,
): { parts: readonly string[]; received: RunContent | null } {
  const [run, ...parts] = cutRun(HEAD, content, partSize === undefined ? {} : { partSize });
  if (run?.type !== 'run') throw new Error('a run begins with its head');
  const assembly = new RunAssembly(run);
  let received: RunContent | null = null;
  for (const part of parts) if (part.type === 'run_part') received = assembly.add(part);
  return { parts: parts.map(encode), received };
}

describe('a run in parts', () => {
  it('arrives whole and in order (property)', () => {
    const contents = fc.array(fc.jsonValue(), { maxLength: 40 });
    fc.assert(
      fc.property(contents, fc.integer({ min: 1, max: 2_000 }), (values, partSize) => {
        const content = { resources: values.map((value, index) => file(index, value)), removals: [] };
        expect(overTheLink(content, partSize).received).toEqual(content);
      }),
    );
  });

  it.each([
    ['plain text', 'x'],
    ['characters that JSON escapes', '\u0001'],
    ['characters of three bytes', '\u20ac'],
    ['lone surrogates', '\ud800'],
  ])('has several parts of which each fits into a frame: %s', (_, character) => {
    const resources = Array.from({ length: 3_000 }, (__, index) => file(index, character.repeat(500)));
    const { parts, received } = overTheLink({ resources, removals: [] });
    expect(received?.resources).toEqual(resources);
    expect(parts.length).toBeGreaterThan(2);
    for (const part of parts) expect(Buffer.byteLength(part)).toBeLessThan(LINK_LIMITS.orchestratorFrame);
  });
});
