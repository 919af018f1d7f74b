/** A screen that is drawn anew again and again, and gives the terminal back as it was, however the program ends. */
import type { Streams } from '../context.js';

/** The alternate screen, no cursor, and no wrapping: what is too long is cut by the terminal. */
const ENTER = '\u001b[?1049h\u001b[?25l\u001b[?7l\u001b[2J';
const LEAVE = '\u001b[?7h\u001b[?25h\u001b[0m\u001b[?1049l';
const HOME = '\u001b[H';
const ERASE_LINE = '\u001b[K';
const ERASE_BELOW = '\u001b[J';

export interface LiveScreen {
  readonly columns: number;
  readonly rows: number;
  /** Harmless lines; those that do not fit below are left out. */
  draw(lines: readonly string[]): void;
  close(): void;
}

export interface ScreenEvents {
  onKey(key: string): void;
  onResize(): void;
  /** The terminal is gone. */
  onGone(): void;
}

export function openScreen({ stdin, stdout }: Streams, { onKey, onResize, onGone }: ScreenEvents): LiveScreen {
  let isOpen = true;
  const onData = (chunk: Buffer | string) => {
    for (const key of keysOf(chunk.toString())) onKey(key);
  };
  const close = () => {
    if (!isOpen) return;
    isOpen = false;
    process.off('exit', close);
    stdin.off('data', onData);
    stdin.off('end', onGone);
    stdout.off('resize', onResize);
    stdin.setRawMode?.(false);
    stdin.pause();
    stdout.write(LEAVE);
  };
  // Of an end that passes everything by.
  process.once('exit', close);
  stdin.setRawMode?.(true);
  stdin.on('data', onData);
  stdin.on('end', onGone);
  stdin.on('error', onGone);
  stdout.on('error', onGone);
  stdout.on('resize', onResize);
  stdout.write(ENTER);
  return {
    get columns() {
      return stdout.columns ?? 80;
    },
    get rows() {
      return stdout.rows ?? 24;
    },
    draw: (lines) => {
      if (!isOpen) return;
      const shown = lines.slice(0, stdout.rows ?? 24).map((line) => line + ERASE_LINE);
      stdout.write(`${HOME}${shown.join('\r\n')}${ERASE_BELOW}`);
    },
    close,
  };
}

const NAMED: Readonly<Record<string, string>> = {
  '\u001b[A': 'up',
  '\u001bOA': 'up',
  '\u001b[B': 'down',
  '\u001bOB': 'down',
  '\u001b[5~': 'page-up',
  '\u001b[6~': 'page-down',
  '\u0003': 'ctrl-c',
};

/** Sequences of special keys stay whole. */
const keysOf = (text: string): readonly string[] =>
  (text.match(/\u001b(?:\[[0-9;]*[A-Za-z~]|O[A-Z])|[\s\S]/g) ?? []).map((key) => NAMED[key] ?? key);
