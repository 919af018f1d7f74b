/** Recordings made of given bytes, and what comes in when they are read. */
import fc from 'fast-check';
import { CastEncoder } from '../../src/terminal/recording/cast-encoder.js';
import { type CastStream, headLine } from '../../src/terminal/recording/cast-format.js';
import { type CastItem, type OpenCast, readCast } from '../../src/terminal/recording/read-cast.js';

export const head = headLine({
  cols: 80,
  rows: 24,
  openedAt: Date.parse('2026-03-01T12:00:00Z'),
  term: 'xterm-256color',
  session: {
    session: '01JQ2Z6T0V5X8Y4M3N7P9R1S2T',
    node: 'ab',
    node_name: 'web-01',
    operator: 'ada',
    shell: '/bin/bash',
    command: null,
  },
});

export type Step =
  | { readonly do: 'output'; readonly stream: CastStream; readonly bytes: Buffer }
  | { readonly do: 'resize'; readonly cols: number; readonly rows: number }
  | { readonly do: 'mark'; readonly text: string }
  | { readonly do: 'checkpoint' };

/** The file, with a checkpoint at its end, unless `isTorn`. */
export function encode(steps: readonly Step[], { isTorn = false } = {}): string {
  const encoder = CastEncoder.begin(Buffer.from(head));
  let at = 0;
  const file: Buffer[] = [Buffer.from(head), ...encoder.checkpoint(0)];
  for (const step of steps) {
    at += 0.0107;
    if (step.do === 'output') file.push(...encoder.output(at, step.stream, step.bytes));
    else if (step.do === 'resize') file.push(...encoder.resize(at, step.cols, step.rows));
    else if (step.do === 'mark') file.push(...encoder.mark(at, step.text));
    else file.push(...encoder.checkpoint(at));
  }
  if (!isTorn) file.push(...encoder.flush(at), ...encoder.checkpoint(at));
  return Buffer.concat(file).toString();
}

/** Text of all kinds, and bytes that are none. */
const someBytes = fc.oneof(
  fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes)),
  fc.string({ unit: 'grapheme', maxLength: 20 }).map((text) => Buffer.from(text)),
  fc.constantFrom('é', '€', '😀', '\x1b[31m', '\u009b31m', '\ufeff', '\r\n').map((text) => Buffer.from(text)),
);

/** Bytes cut anywhere, in the middle of characters too. */
export const chunks = fc
  .tuple(fc.array(someBytes, { maxLength: 12 }), fc.array(fc.nat(64), { maxLength: 12 }))
  .map(([parts, cuts]) => {
    const all = Buffer.concat(parts);
    const places = [...new Set([0, ...cuts.map((cut) => Math.min(cut, all.length)), all.length])].sort((a, b) => a - b);
    return places.slice(1).map((end, index) => all.subarray(places[index], end));
  });

export const steps: fc.Arbitrary<readonly Step[]> = fc.array(
  fc.oneof(
    {
      weight: 6,
      arbitrary: fc.record({
        do: fc.constant('output' as const),
        stream: fc.constantFrom<CastStream>('out', 'err'),
        bytes: someBytes,
      }),
    },
    {
      weight: 1,
      arbitrary: fc.record({
        do: fc.constant('resize' as const),
        cols: fc.integer({ min: 1, max: 1000 }),
        rows: fc.integer({ min: 1, max: 1000 }),
      }),
    },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('mark' as const), text: fc.string() }) },
    { weight: 2, arbitrary: fc.constant({ do: 'checkpoint' as const }) },
  ),
  { maxLength: 20 },
);

/** The bytes of a file, in pieces of that size. */
export async function* inPieces(file: Uint8Array | string, size = 7): AsyncGenerator<Uint8Array> {
  const bytes = Buffer.from(file as string);
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

export const read = (file: Uint8Array | string, size?: number): Promise<OpenCast> => readCast(inPieces(file, size));

export async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const item of items) found.push(item);
  return found;
}

export const itemsOf = async (file: Uint8Array | string): Promise<readonly CastItem[]> => all((await read(file)).items);

export const bytesOfChunks = (given: readonly (string | Uint8Array)[]): Buffer =>
  Buffer.concat(given.map((part) => Buffer.from(part as string)));
