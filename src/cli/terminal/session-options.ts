/** The options of the commands that put a session on this terminal. */
import { choice, flag, text } from '../option.js';
import { escapeCharacter } from './escape-character.js';

export const CLIPBOARD_CHOICES = ['never', 'copy'] as const;
/** `never`: programs neither set nor read the clipboard. `copy`: they may set it. */
export type ClipboardChoice = (typeof CLIPBOARD_CHOICES)[number];

export const PREDICT_CHOICES = ['auto', 'always', 'never'] as const;
/** `auto`: where the round trip to the agent can be felt. */
export type PredictChoice = (typeof PREDICT_CHOICES)[number];

export const sessionOptions = {
  escapeChar: text('CHAR', 'the character that begins escapes, ~ when left out; "none" for none', { short: 'e' }),
  queueInput: flag('keep what is typed without a connection for as long as it takes'),
  clipboard: choice('WHEN', CLIPBOARD_CHOICES, 'let programs set your clipboard; never when left out'),
  predict: choice('WHEN', PREDICT_CHOICES, 'show keys before the agent has echoed them; auto when left out'),
};

export interface SessionSettings {
  /** One byte, or null for no escapes. Without a terminal to type at there are none anyway. */
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

/** Throws `usage`. */
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
