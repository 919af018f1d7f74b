/** The options of the commands that put a session on this terminal. */
import { choice, flag, text } from '../option.js';
import { escapeCharacter } from './escape-character.js';

export const CLIPBOARD_CHOICES = ['never', 'copy'] as const;
/** `never`: programs neither set nor read the clipboard. `copy`: they may set it. */
export type ClipboardChoice = (typeof CLIPBOARD_CHOICES)[number];

export const sessionOptions = {
  escapeChar: text('CHAR', 'the character that begins escapes, ~ when left out; "none" for none', { short: 'e' }),
  queueInput: flag('keep what is typed without a connection for as long as it takes'),
  clipboard: choice('WHEN', CLIPBOARD_CHOICES, 'let programs set your clipboard; never when left out'),
};

export interface SessionSettings {
  /** One byte, or null for no escapes. Without a terminal to type at there are none anyway. */
  readonly escapeCharacter: string | null;
  readonly queueInput: boolean;
  readonly clipboard: ClipboardChoice;
}

interface Given {
  readonly escapeChar: string | undefined;
  readonly queueInput: boolean;
  readonly clipboard: ClipboardChoice | undefined;
}

/** Throws `usage`. */
export const sessionSettings = ({ escapeChar, queueInput, clipboard = 'never' }: Given): SessionSettings => ({
  escapeCharacter: escapeCharacter(escapeChar),
  queueInput,
  clipboard,
});
