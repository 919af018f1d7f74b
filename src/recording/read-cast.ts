/** Reads a recording: its head, then what happened in it, in order. */
import { Fault } from '../kernel/fault.js';
import { type CastEvent, type CastStream, parseEvent, parseSize } from './cast-event.js';
import { type CastHead, parseHead } from './cast-head.js';
import { castLines, isWhole } from './cast-lines.js';

/** `at` is in seconds from the start. */
export type CastItem =
  | {
      readonly at: number;
      readonly kind: 'output';
      readonly stream: CastStream;
      readonly text: string;
      /** The exact bytes; null when the text is all of them. */
      readonly bytes: Buffer | null;
    }
  | { readonly at: number; readonly kind: 'size'; readonly cols: number; readonly rows: number }
  | { readonly at: number; readonly kind: 'mark'; readonly text: string }
  /** The status with which the program ended. */
  | { readonly at: number; readonly kind: 'exit'; readonly status: string };

export interface OpenCast {
  readonly head: CastHead;
  readonly items: AsyncIterable<CastItem>;
}

/**
 * A last line that a crash left torn is passed over.
 * @param chunks of the plain file: see `openCastFile`
 * @throws Fault `transcript_invalid`, from the items too
 */
export async function readCast(chunks: AsyncIterable<Uint8Array>): Promise<OpenCast> {
  const lines = castLines(chunks);
  const first = await lines.next();
  try {
    const head = parseHead(first.done ? '' : first.value.toString('utf8'));
    return { head, items: withItems(eventsOf(lines)) };
  } catch (error) {
    await lines.return(undefined);
    throw error;
  }
}

/** The bytes of a piece of output. */
export const bytesOf = ({ text, bytes }: Extract<CastItem, { kind: 'output' }>): Buffer =>
  bytes ?? Buffer.from(text, 'utf8');

async function* eventsOf(lines: AsyncIterable<Buffer>): AsyncGenerator<CastEvent> {
  let number = 1;
  for await (const line of lines) {
    number += 1;
    const text = line.toString('utf8');
    if (text.trim() === '') continue;
    const event = parseEvent(text);
    if (event !== null) yield event;
    else if (isWhole(line)) throw new Fault('transcript_invalid', `line ${number} of the recording is no event`);
  }
}

/** Joins output with its exact bytes, which follow it. */
async function* withItems(events: AsyncIterable<CastEvent>): AsyncGenerator<CastItem> {
  let stream: CastStream = 'out';
  let output: { readonly at: number; readonly text: string } | null = null;
  for await (const event of events) {
    if (output !== null) {
      const bytes = event.code === 'b' ? Buffer.from(event.data, 'base64') : null;
      yield { ...output, kind: 'output', stream, bytes };
      output = null;
    }
    if (event.code === 'o') output = { at: event.at, text: event.data };
    else if (event.code === 's') stream = event.data;
    else yield* itemOf(event);
  }
  if (output !== null) yield { ...output, kind: 'output', stream, bytes: null };
}

function* itemOf(event: CastEvent): Generator<CastItem> {
  if (event.code === 'm') yield { at: event.at, kind: 'mark', text: event.data };
  if (event.code === 'x') yield { at: event.at, kind: 'exit', status: event.data };
  const size = event.code === 'r' ? parseSize(event.data) : null;
  if (size !== null) yield { at: event.at, kind: 'size', ...size };
}
