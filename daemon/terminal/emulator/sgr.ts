/** The sequence that selects how the following characters look (SGR). */
import type { Attributes } from './xterm-core.js';

const INDEXED_16 = 0x1000000;
const INDEXED_256 = 0x2000000;
const RGB = 0x3000000;

const SINGLE_UNDERLINE = 1;

/** The whole look, whatever was selected before. */
export function sgr(attributes: Attributes): string {
  const codes: (number | string)[] = [];
  if (attributes.isBold()) codes.push(1);
  if (attributes.isDim()) codes.push(2);
  if (attributes.isItalic()) codes.push(3);
  if (attributes.isUnderline()) codes.push(underline(attributes));
  if (attributes.isBlink()) codes.push(5);
  if (attributes.isInverse()) codes.push(7);
  if (attributes.isInvisible()) codes.push(8);
  if (attributes.isStrikethrough()) codes.push(9);
  if (attributes.isOverline()) codes.push(53);
  codes.push(...color(attributes.getFgColorMode(), attributes.getFgColor(), 30));
  codes.push(...color(attributes.getBgColorMode(), attributes.getBgColor(), 40));
  codes.push(...underlineColor(attributes));
  return codes.length === 0 ? '\x1b[m' : `\x1b[0;${codes.join(';')}m`;
}

/** Whether two look the same. */
export const isSameLook = (one: Attributes, other: Attributes): boolean =>
  one.fg === other.fg &&
  one.bg === other.bg &&
  one.extended.underlineStyle === other.extended.underlineStyle &&
  one.extended.underlineColor === other.extended.underlineColor;

/** @param base 30 for the foreground, 40 for the background */
function color(mode: number, value: number, base: 30 | 40): readonly number[] {
  switch (mode) {
    case INDEXED_16:
      return [value < 8 ? base + value : base + 60 + value - 8];
    case INDEXED_256:
      return [base + 8, 5, value];
    case RGB:
      return [base + 8, 2, (value >> 16) & 255, (value >> 8) & 255, value & 255];
    default:
      return [];
  }
}

/** With colons what goes beyond a single line, so that a terminal that does not know it skips it as a whole. */
function underline(attributes: Attributes): string {
  const style = attributes.getUnderlineStyle();
  return style <= SINGLE_UNDERLINE ? '4' : `4:${style}`;
}

/** Without a colour of its own a line has that of the text. */
function underlineColor({ extended }: Attributes): readonly string[] {
  const value = extended.underlineColor & 0xffffff;
  switch (extended.underlineColor & RGB) {
    case 0:
      return [];
    case RGB:
      return [`58:2::${value >> 16}:${(value >> 8) & 255}:${value & 255}`];
    default:
      return [`58:5:${value & 255}`];
  }
}
