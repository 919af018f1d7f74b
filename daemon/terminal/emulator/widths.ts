/**
 * How many columns characters take: as the library has it, but with emoji as wide as terminals and programs have drawn them
 * for years.
 */
import type { WidthProvider } from './xterm-core.js';

const FIRST = 0x2300;
const LAST = 0x1ffff;

/** The emoji of the basic plane end long before the others begin. */
const isInGap = (codepoint: number): boolean => codepoint >= 0x2c00 && codepoint < 0x1f000;

function wideEmoji(): ReadonlySet<number> {
  const wide = new Set<number>();
  for (let codepoint = FIRST; codepoint <= LAST; codepoint += 1) {
    if (!isInGap(codepoint) && /\p{Emoji_Presentation}/u.test(String.fromCodePoint(codepoint))) wide.add(codepoint);
  }
  return wide;
}

/** @param base what tells the width of everything else */
export function createWidths(base: Pick<WidthProvider, 'wcwidth'>): WidthProvider {
  const wide = wideEmoji();
  const wcwidth = (codepoint: number): 0 | 1 | 2 =>
    codepoint >= FIRST && wide.has(codepoint) ? 2 : base.wcwidth(codepoint);
  return {
    version: 'orch',
    wcwidth,
    // The lowest bit tells that the character joins the cell before it, the next two how wide that cell is then.
    charProperties(codepoint, preceding) {
      const width = wcwidth(codepoint);
      const before = (preceding >> 1) & 3;
      return width === 0 && before > 0 ? (before << 1) | 1 : width << 1;
    },
  };
}
