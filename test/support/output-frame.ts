/** A frame of output in one piece; programs send its head and its bytes apart. */
import { type OutputStream, outputHead } from '../../src/terminal/frames.js';

export const outputFrame = (stream: OutputStream, offset: number, bytes: Uint8Array): Buffer =>
  Buffer.concat([outputHead(stream, offset), bytes]);
