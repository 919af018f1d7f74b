/** Splits the input of a terminal into keys. */

const NAMED: Readonly<Record<string, string>> = {
  '\u001b[A': 'up',
  '\u001bOA': 'up',
  '\u001b[B': 'down',
  '\u001bOB': 'down',
  '\u001b[C': 'right',
  '\u001bOC': 'right',
  '\u001b[D': 'left',
  '\u001bOD': 'left',
  '\u001b[5~': 'page-up',
  '\u001b[6~': 'page-down',
  '\u001b[H': 'home',
  '\u001bOH': 'home',
  '\u001b[1~': 'home',
  '\u001b[7~': 'home',
  '\u001b[F': 'end',
  '\u001bOF': 'end',
  '\u001b[4~': 'end',
  '\u001b[8~': 'end',
  '\u001b': 'escape',
  '\r': 'enter',
  '\n': 'enter',
  '\u007f': 'backspace',
  '\b': 'backspace',
  '\u0002': 'page-up',
  '\u0003': 'ctrl-c',
  '\u0006': 'page-down',
  '\f': 'ctrl-l',
  '\u0015': 'ctrl-u',
  '\u001a': 'ctrl-z',
};

export interface Keys {
  /** Names of special keys, and the characters of others. A sequence without a name is `unknown`. */
  readonly keys: readonly string[];
  /** The beginning of a sequence whose end has not arrived yet. */
  readonly rest: string;
}

/** A key: a control sequence, a key of the application mode, or one character. */
const KEY = /\u001b\[[0-?]*[ -/]*[@-~]|\u001bO[A-Z]|[\s\S]/gu;
/** A sequence that may continue in the next chunk; a lone Escape key looks the same. */
const UNFINISHED = /\u001b(?:\[[0-?]*[ -/]*|O)?$/;

export function readKeys(text: string): Keys {
  const rest = UNFINISHED.exec(text)?.[0] ?? '';
  const whole = text.slice(0, text.length - rest.length);
  return { keys: (whole.match(KEY) ?? []).map(nameOf), rest };
}

/** Returns the keys of an unfinished sequence that did not continue, such as the Escape key. */
export const finishKeys = (rest: string): readonly string[] => (rest.match(KEY) ?? []).map(nameOf);

const nameOf = (key: string): string => NAMED[key] ?? (key.length > 1 && key.startsWith('\u001b') ? 'unknown' : key);
