/**
 * Bounds the cost of a program's output for the emulator: long repetitions, long strings, growing cells, and lines of a flood
 * that scroll away unseen. Drops state that no picture needs.
 */

import { isAscii } from 'node:buffer';
import type { Cell, Core } from '../../../src/terminal/xterm-core.js';

/** Maximum combining characters of a cell. Real text has a handful. */
const MOST_COMBINING = 32;
const LONGEST_TITLE = 256;

/** OSC numbers of colours, links and icon names, which no picture needs. */
const UNUSED_OSC = [0, 1, 2, 4, 8, 10, 11, 12, 104, 110, 111, 112];

export interface LimitedOutput {
  /** Returns the latest title of the program; null before the first. */
  title(): string | null;
}

export interface LimitOptions {
  /** Returns the columns of a character. */
  readonly widthOf: (codepoint: number) => number;
  /** A cell that the limits may overwrite. */
  readonly scratch: Cell;
}

/** Installs the limits. */
export function limitOutput(core: Core, { widthOf, scratch }: LimitOptions): LimitedOutput {
  limitCounts(core);
  limitCombining(core, widthOf);
  mendErasure(core);
  mendReset(core);
  mendSkippedCharacter(core, { widthOf, scratch });
  return keepTitle(core);
}

/** Clamps the repeat counts of sequences to the size of the screen. */
function limitCounts(core: Core): void {
  const { _parser: parser } = core._inputHandler;
  const rows = (): number => core.buffers.active.scrollBottom + 1;
  const cols = (): number => core.buffers.active.lines.get(0)?.length ?? 1;
  const limit = (final: string, most: () => number): void =>
    parser.registerCsiHandler({ final }, ({ params }) => {
      params[0] = Math.min(params[0] ?? 0, most());
      return false;
    });
  for (const final of ['L', 'M', 'S', 'T']) limit(final, rows);
  for (const final of ['I', 'Z']) limit(final, cols);
  limit('b', () => rows() * cols());
}

/**
 * Limits combining characters. xterm gives one without a base character a cell of its own, even after the last column. Terminals
 * show it in the cell before, or not at all.
 */
function limitCombining(core: Core, widthOf: (codepoint: number) => number): void {
  const input = core._inputHandler;
  let combined = 0;
  input._parser.setPrintHandler((data, start, end) => {
    let from = start;
    let canJoin = input._parser.precedingJoinState !== 0;
    for (let at = start; at < end; at += 1) {
      const codepoint = data[at] as number;
      if (codepoint < 0x300 || widthOf(codepoint) > 0) {
        combined = 0;
        canJoin = true;
        continue;
      }
      combined += 1;
      if (canJoin && combined <= MOST_COMBINING) continue;
      if (at > from) input.print(data, from, at);
      from = at + 1;
    }
    if (end > from) input.print(data, from, end);
  });
}

/** Works around a bug in xterm: erasing up to the last cell fails. It equals erasing all. */
function mendErasure(core: Core): void {
  core._inputHandler._parser.registerCsiHandler({ final: 'J' }, ({ params }) => {
    const { active } = core.buffers;
    const { length = 0 } = active.lines.get(active.ybase + active.y) ?? {};
    const isLast = active.lines.get(active.y + 1) === undefined;
    if (params[0] === 1 && isLast && active.x + 1 >= length) params[0] = 2;
    return false;
  });
}

/** Works around a bug in xterm: a full reset must show the cursor. */
function mendReset(core: Core): void {
  core._inputHandler._parser.registerEscHandler({ final: 'c' }, () => {
    core.coreService.isCursorHidden = false;
    core.options.cursorBlink = false;
    core.options.convertEol = false;
    return false;
  });
}

/**
 * Works around two bugs in xterm: without wraparound, a wide character that does not fit into the last column is skipped, but
 * erases the second half of the wide character there, and what combines with it makes the character before it a wide one. No
 * output can draw either.
 * @param scratch a cell that it may overwrite
 */
export function mendSkippedCharacter(core: Core, { widthOf, scratch }: LimitOptions): void {
  const input = core._inputHandler;
  const { _parser: parser } = input;
  const print = input.print.bind(input);
  input.print = (data, start, end) => {
    const { active } = core.buffers;
    if (core.coreService.decPrivateModes.wraparound) return print(data, start, end);
    for (let at = start; at < end; at += 1) {
      const width = widthOf(data[at] as number);
      if (width === 0 && parser.precedingJoinState === 0) continue;
      const isSkipped = width === 2 && active.x + width > (active.lines.get(active.ybase + active.y)?.length ?? 0);
      print(data, at, at + 1);
      if (isSkipped) parser.precedingJoinState = 0;
    }
    const { lines, ybase, x, y } = active;
    const line = lines.get(ybase + y);
    if (line === undefined || x === 0 || x !== line.length - 1) return;
    const isCut = line.getWidth(x - 1) === 2 && line.getWidth(x) !== 0;
    if (isCut) line.setCellFromCodepoint(x, 0, 0, line.loadCell(x - 1, scratch));
  };
}

function keepTitle(core: Core): LimitedOutput {
  const { _parser: parser } = core._inputHandler;
  for (const ident of UNUSED_OSC) parser.clearOscHandler(ident);
  parser.clearDcsHandler({ intermediates: '$', final: 'q' });
  let title: string | null = null;
  let coming = '';
  const handler = {
    start: () => {
      coming = '';
    },
    put: (data: Uint32Array, start: number, end: number) => {
      const most = Math.min(end, start + LONGEST_TITLE - coming.length);
      if (most > start) coming += String.fromCodePoint(...data.subarray(start, most));
    },
    end: (isComplete: boolean) => {
      if (isComplete) title = coming;
      return true;
    },
  };
  for (const ident of [0, 2]) parser.registerOscHandler(ident, handler);
  return { title: () => title };
}

const LF = 10;
const CR = 13;
/** Bytes that start a sequence or select a character set. */
const LASTING = [0x1b, 0x0e, 0x0f];
/** Minimum bytes for which the search pays. */
const WORTH = 4 * 1024;

/**
 * Returns how many bytes at the start are lines of plain text that scroll out of the screen unseen, so that the emulator can skip
 * them; 0 when this is uncertain. They leave the cursor at the start of the last row, and later lines replace the whole screen.
 * Serves the benchmark rows "throughput" and "echo beside idle and flooding sessions".
 */
export function passingLines(bytes: Buffer, core: Core, rows: number): number {
  if (bytes.length < WORTH || !scrollsAll(core, rows)) return 0;
  if (!isAscii(bytes) || LASTING.some((byte) => bytes.includes(byte))) return 0;
  const last = endOfLine(bytes, bytes.length, rows + 1);
  // Without a carriage return before the line feed the column is unknown.
  if (last < 1 || bytes[last - 1] !== CR) return 0;
  // This many line feeds move the cursor to the last row from anywhere.
  return endOfLine(bytes, last, rows) < 0 ? 0 : last + 1;
}

/** Returns the position of the line feed that is `count` before `from`; negative without so many. */
function endOfLine(bytes: Buffer, from: number, count: number): number {
  let at = from;
  for (let left = count; left > 0 && at >= 0; left -= 1) at = at === 0 ? -1 : bytes.lastIndexOf(LF, at - 1);
  return at;
}

/** Reports whether no sequence is pending and a line feed in the last row scrolls the whole screen. */
function scrollsAll({ _inputHandler, buffers, coreService }: Core, rows: number): boolean {
  const { scrollTop, scrollBottom } = buffers.active;
  const isWhole = scrollTop === 0 && scrollBottom === rows - 1;
  // With reverse wraparound, a backspace can move up a row.
  return isWhole && _inputHandler._parser.currentState === 0 && !coreService.decPrivateModes.reverseWraparound;
}
