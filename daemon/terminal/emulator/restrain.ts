/**
 * Keeps what a program sends from costing the emulator more than it is worth: repetitions without end, strings without end,
 * cells that grow. Whatever has no effect on a picture is not kept at all.
 */
import type { Core } from './xterm-core.js';

/** Combining characters that one cell takes; real text has a handful. */
const MOST_COMBINING = 32;
const LONGEST_TITLE = 256;

/** Colours, links and the names of icons. */
const UNUSED_OSC = [0, 1, 2, 4, 8, 10, 11, 12, 104, 110, 111, 112];

export interface Restrained {
  /** As the program has set it last; null when it never did. */
  title(): string | null;
}

/** @param widthOf columns that a character takes */
export function restrain(core: Core, widthOf: (codepoint: number) => number): Restrained {
  limitCounts(core);
  limitCombining(core, widthOf);
  mendErasure(core);
  mendReset(core);
  return keepTitle(core);
}

/** These count a loop of their handlers; more than the screen has changes nothing. */
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
 * One that has no character before it to join takes a cell in the library, even beyond the last one; terminals show it in the
 * cell before, or not at all.
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

/** Erasing everything up to the last cell fails in the library, and is the same as erasing all. */
function mendErasure(core: Core): void {
  core._inputHandler._parser.registerCsiHandler({ final: 'J' }, ({ params }) => {
    const { active } = core.buffers;
    const { length = 0 } = active.lines.get(active.ybase + active.y) ?? {};
    const isLast = active.lines.get(active.y + 1) === undefined;
    if (params[0] === 1 && isLast && active.x + 1 >= length) params[0] = 2;
    return false;
  });
}

/** A full reset shows the cursor again, which the library leaves as it was. */
function mendReset(core: Core): void {
  core._inputHandler._parser.registerEscHandler({ final: 'c' }, () => {
    core.coreService.isCursorHidden = false;
    core.options.cursorBlink = false;
    core.options.convertEol = false;
    return false;
  });
}

function keepTitle(core: Core): Restrained {
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
