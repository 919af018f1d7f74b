/** The options of commands that run a session at this terminal, and the size and type of this terminal. */
import { Fault } from '../../kernel/fault.js';
import { choice, flag, text } from '../options.js';
import type { OutputStream } from '../render/streams.js';

const CLIPBOARD_CHOICES = ['never', 'copy'] as const;
/** `never`: programs can neither set nor read the clipboard. `copy`: they can set it. */
export type ClipboardChoice = (typeof CLIPBOARD_CHOICES)[number];

const PREDICT_CHOICES = ['auto', 'always', 'never'] as const;
/** `auto`: predict if the round-trip time is noticeable. */
export type PredictChoice = (typeof PREDICT_CHOICES)[number];

export const sessionOptions = {
  escapeChar: text('CHAR', 'escape character, or "none" [~]', { short: 'e' }),
  queueInput: flag('keep keys typed without a connection until it is back, instead of 10 s'),
  clipboard: choice('WHEN', CLIPBOARD_CHOICES, 'let programs set your clipboard [never]'),
  predict: choice('WHEN', PREDICT_CHOICES, 'show keys before the agent has echoed them [auto]'),
};

export interface SessionSettings {
  /** Escape character (one byte); null for none. */
  readonly escapeCharacter: string | null;
  readonly queueInput: boolean;
  readonly clipboard: ClipboardChoice;
  readonly predict: PredictChoice;
}

interface Given {
  readonly escapeChar: string | undefined;
  readonly queueInput: boolean;
  readonly clipboard: ClipboardChoice | undefined;
  readonly predict: PredictChoice | undefined;
}

/** Returns the settings of a session. Throws `usage`. */
export const sessionSettings = ({
  escapeChar,
  queueInput,
  clipboard = 'never',
  predict = 'auto',
}: Given): SessionSettings => ({
  escapeCharacter: escapeCharacter(escapeChar),
  queueInput,
  clipboard,
  predict,
});

/** Parses the option for the escape character. Returns one byte, or null for none. Throws `usage`. */
export function escapeCharacter(given: string | undefined): string | null {
  if (given === undefined) return '~';
  if (given === 'none') return null;
  const control = /^\^([@-_a-z])$/.exec(given)?.[1];
  if (control !== undefined) return String.fromCharCode(control.toUpperCase().charCodeAt(0) & 0x1f);
  if (/^[\x21-\x7e]$/.test(given)) return given;
  throw new Fault('usage', `-e takes one character, such as ~, or one like ^], or none; not ${JSON.stringify(given)}`);
}

/** Renders an escape character as it is typed: `^]` for a control character. */
export const shownCharacter = (character: string): string =>
  character.charCodeAt(0) < 0x20 ? `^${String.fromCharCode(character.charCodeAt(0) | 0x40)}` : character;

/** Returns a terminal type that the API accepts; null for an unset or invalid TERM. */
export const openableTerm = (term: string | undefined): string | null =>
  term !== undefined && /^[A-Za-z0-9][A-Za-z0-9+._-]{0,63}$/.test(term) ? term : null;

export interface Size {
  readonly cols: number;
  readonly rows: number;
}

/** Milliseconds without a resize before the new size counts, because windows are dragged. */
const QUIET_MS = 50;
const STANDARD: Size = { cols: 80, rows: 24 };

/** Returns the size of the first stream that is a terminal; 80 by 24 without one. */
export function sizeOf(streams: readonly OutputStream[]): Size {
  const terminal = streams.find(({ isTTY }) => isTTY);
  if (!terminal?.columns || !terminal.rows) return STANDARD;
  return { cols: Math.min(terminal.columns, 1_000), rows: Math.min(terminal.rows, 1_000) };
}

/** Calls the listener after a resize has settled, until the returned function is called. */
export function watchSize(streams: readonly OutputStream[], onSize: (size: Size) => void): () => void {
  const terminal = streams.find(({ isTTY }) => isTTY);
  let timer: NodeJS.Timeout | undefined;
  const changed = () => {
    clearTimeout(timer);
    timer = setTimeout(() => onSize(sizeOf(streams)), QUIET_MS);
  };
  terminal?.on('resize', changed);
  return () => {
    clearTimeout(timer);
    terminal?.off('resize', changed);
  };
}
