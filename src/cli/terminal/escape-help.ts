/** What `~?` says. */
import { shownCharacter } from './escape-character.js';

const ESCAPES: readonly (readonly [key: string, meaning: string])[] = [
  ['.', 'detach: the session goes on'],
  ['K', 'end the session and its program'],
  ['r', 'draw the screen anew'],
  ['s', 'how long the way there and back takes'],
  ['w', 'ask for the pen: a free one is yours at once'],
  ['^Z', 'suspend orch; fg comes back'],
  ['?', 'this'],
];

/** One line each. @param character that begins escapes */
export function escapeHelp(character: string): readonly string[] {
  const shown = shownCharacter(character);
  return [
    'at the beginning of a line:',
    ...ESCAPES.map(([key, meaning]) => ` ${shown}${key}`.padEnd(6) + meaning),
    `${` ${shown}${shown}`.padEnd(6)}a ${shown} itself`,
  ];
}
