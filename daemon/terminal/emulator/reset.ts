/**
 * The sequences that bring a terminal in any state, even in the middle of a sequence, to an empty screen without margins and
 * modes. The full reset would do it too, but flashes, and forgets what belongs to the terminal's owner.
 */
export const RESET = [
  // Whatever was begun is cancelled.
  '\x18\x1b\\',
  // Nothing is shown until all is drawn, where the terminal can do that.
  '\x1b[?2026h',
  // The normal screen, then the soft reset: cursor keys, keypad, margins, insert, origin, looks, saved cursor.
  '\x1b[?1049l\x1b[!p',
  '\x1b[?25l',
  '\x1b[?1;6;45;69l\x1b[?7h\x1b[4;20l\x1b>\x1b[r',
  // Mouse, focus, pasting.
  '\x1b[?9;1000;1002;1003;1005;1006;1015;1016;1004;2004l',
  // Keyboard protocols beyond the standard.
  '\x1b[>4m\x1b[=0u',
  '\x1b[?12l\x1b[0 q',
  // Character sets, looks.
  '\x1b(B\x1b)B\x1b*B\x1b+B\x0f\x1b[m',
  '\x1b[?5W\x1b[H\x1b[2J',
].join('');

/** What is drawn is shown. */
export const SHOW = '\x1b[?2026l';
