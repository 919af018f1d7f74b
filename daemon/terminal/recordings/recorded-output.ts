/** Reads back the output of a recording that goes on, from a place in its file on. */
import { closeSync, openSync, readSync } from 'node:fs';
import { parseEvent } from '../../../src/terminal/recording/cast-format.js';

export interface RecordedOutputOptions {
  readonly path: string;
  /** Bytes of the file before it; a line begins there. */
  readonly position: number;
  /** Of the first output behind it. */
  readonly offset: number;
}

/** Read in one go, in bytes. */
const PORTION = 128 * 1024;
/** Stands for bytes that are no text; the exact ones are in the next line then. */
const REPLACEMENT = '\ufffd';

/** Holds the file itself, so that it can be read whatever becomes of its name. */
export class RecordedOutput {
  private readonly descriptor: number;
  private position: number;
  private rest: Buffer = Buffer.alloc(0);
  /** Of the next output that is given. */
  offset: number;

  /** Throws the system's error. */
  constructor({ path, position, offset }: RecordedOutputOptions) {
    this.descriptor = openSync(path, 'r');
    this.position = position;
    this.offset = offset;
  }

  /** What follows, in order; nothing while no more of it is in the file. */
  next(): readonly Buffer[] {
    const chunk = Buffer.allocUnsafe(PORTION);
    const count = readSync(this.descriptor, chunk, 0, PORTION, this.position);
    if (count === 0) return [];
    this.position += count;
    const text = Buffer.concat([this.rest, chunk.subarray(0, count)]);
    const outputs: Buffer[] = [];
    let from = 0;
    let doubtful: number | null = null;
    for (let end = text.indexOf(10); end >= 0; end = text.indexOf(10, from)) {
      const event = parseEvent(text.toString('utf8', from, end));
      if (event?.code === 'b' && doubtful !== null) outputs.push(Buffer.from(event.data, 'base64'));
      else if (doubtful !== null) outputs.push(this.textOf(text, doubtful, from));
      doubtful = null;
      if (event?.code === 'o' && event.data.includes(REPLACEMENT)) doubtful = from;
      else if (event?.code === 'o') outputs.push(Buffer.from(event.data, 'utf8'));
      from = end + 1;
    }
    this.rest = text.subarray(doubtful ?? from);
    for (const { length } of outputs) this.offset += length;
    return outputs;
  }

  close(): void {
    closeSync(this.descriptor);
  }

  private textOf(text: Buffer, from: number, to: number): Buffer {
    const event = parseEvent(text.toString('utf8', from, to - 1));
    return Buffer.from(event?.code === 'o' ? event.data : '', 'utf8');
  }
}
