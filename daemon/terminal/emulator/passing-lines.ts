/**
 * Lines that a flood scrolls out of the screen before anybody can see them. They need no emulator: of plain text only what is
 * on the screen in the end leaves a trace.
 */
import { isAscii } from 'node:buffer';
import type { Core } from './xterm-core.js';

const LF = 10;
const CR = 13;
/** What begins a sequence or selects a character set. */
const LASTING = [0x1b, 0x0e, 0x0f];
/** Less than that is not worth the look. */
const WORTH = 4 * 1024;

/**
 * How many bytes at the beginning are such lines; zero when it cannot be told. They leave the cursor at the beginning of the
 * last row, and what follows them leaves nothing of what was on the screen then.
 */
export function passingLines(bytes: Buffer, core: Core, rows: number): number {
  if (bytes.length < WORTH || !scrollsAll(core, rows)) return 0;
  if (!isAscii(bytes) || LASTING.some((byte) => bytes.includes(byte))) return 0;
  const last = endOfLine(bytes, bytes.length, rows + 1);
  // Behind another end than that of a line with its return, the column is not known.
  if (last < 1 || bytes[last - 1] !== CR) return 0;
  // So many bring the cursor to the last row, wherever it was.
  return endOfLine(bytes, last, rows) < 0 ? 0 : last + 1;
}

/** Where the end of a line is that is so many before `from`; negative when there are not so many. */
function endOfLine(bytes: Buffer, from: number, count: number): number {
  let at = from;
  for (let left = count; left > 0 && at >= 0; left -= 1) at = at === 0 ? -1 : bytes.lastIndexOf(LF, at - 1);
  return at;
}

/** Nothing is half read, and the end of a line in the last row moves the whole screen up. */
function scrollsAll({ _inputHandler, buffers, coreService }: Core, rows: number): boolean {
  const { scrollTop, scrollBottom } = buffers.active;
  const isWhole = scrollTop === 0 && scrollBottom === rows - 1;
  // Going back over the beginning of a line moves up.
  return isWhole && _inputHandler._parser.currentState === 0 && !coreService.decPrivateModes.reverseWraparound;
}
