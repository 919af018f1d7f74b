/** How text looks: what `ESC [ … m` sets. */

/** One of the 256 colours of terminals, or `#rrggbb`; null is the standard one. */
export type Color = number | string | null;

export interface TextStyle {
  readonly color: Color;
  readonly background: Color;
  readonly bold: boolean;
  readonly dim: boolean;
  readonly italic: boolean;
  readonly underlined: boolean;
  readonly struck: boolean;
  readonly inverse: boolean;
}

export const PLAIN: TextStyle = {
  color: null,
  background: null,
  bold: false,
  dim: false,
  italic: false,
  underlined: false,
  struck: false,
  inverse: false,
};

const SET: Readonly<Record<number, Partial<TextStyle>>> = {
  0: PLAIN,
  1: { bold: true },
  2: { dim: true },
  3: { italic: true },
  4: { underlined: true },
  7: { inverse: true },
  9: { struck: true },
  21: { underlined: true },
  22: { bold: false, dim: false },
  23: { italic: false },
  24: { underlined: false },
  27: { inverse: false },
  29: { struck: false },
  39: { color: null },
  49: { background: null },
};

/** @param params of the sequence: digits, `;` and `:` */
export function applyStyle(style: TextStyle, params: string): TextStyle {
  let next = style;
  const codes = params.split(';');
  for (let at = 0; at < codes.length; at += 1) {
    const [code = 0, ...parts] = (codes[at] ?? '').split(':').map(Number);
    if (code === 38 || code === 48) {
      const isLong = parts.length === 0;
      const rest = isLong ? codes.slice(at + 1, at + 5).map(Number) : parts;
      if (isLong) at += rest[0] === 5 ? 2 : 4;
      next = { ...next, [code === 38 ? 'color' : 'background']: extendedColor(rest, isLong) };
    } else {
      next = { ...next, ...(code === 4 && parts[0] === 0 ? { underlined: false } : (SET[code] ?? basicColor(code))) };
    }
  }
  return next;
}

function basicColor(code: number): Partial<TextStyle> {
  if (code >= 30 && code <= 37) return { color: code - 30 };
  if (code >= 40 && code <= 47) return { background: code - 40 };
  if (code >= 90 && code <= 97) return { color: code - 82 };
  return code >= 100 && code <= 107 ? { background: code - 92 } : {};
}

/** `5;N`, `2;R;G;B`, and `2:SPACE:R:G:B` with colons. */
function extendedColor([kind, ...values]: readonly number[], isLong: boolean): Color {
  if (kind === 5) return within(values[0]);
  if (kind !== 2) return null;
  const [red, green, blue] = isLong || values.length < 4 ? values : values.slice(1);
  const hex = [red, green, blue].map((part) => (within(part) ?? 0).toString(16).padStart(2, '0'));
  return `#${hex.join('')}`;
}

const within = (value: number | undefined): number | null =>
  value !== undefined && Number.isInteger(value) && value >= 0 && value <= 255 ? value : null;

const BASIC = [
  ...['#000000', '#cd0000', '#00cd00', '#cdcd00', '#1e90ff', '#cd00cd', '#00cdcd', '#e5e5e5'],
  ...['#7f7f7f', '#ff0000', '#00ff00', '#ffff00', '#5c9dff', '#ff00ff', '#00ffff', '#ffffff'],
];
const LEVELS = [0, 95, 135, 175, 215, 255] as const;

/** `#rrggbb` of a colour that is not the standard one. */
export function hexOf(color: number | string): string {
  if (typeof color === 'string') return color;
  if (color < 16) return BASIC[color] ?? '#000000';
  const gray = 8 + (color - 232) * 10;
  const index = color - 16;
  const cube = [Math.floor(index / 36), Math.floor(index / 6) % 6, index % 6].map((step) => LEVELS[step] ?? 0);
  const parts = color < 232 ? cube : [gray, gray, gray];
  return `#${parts.map((part) => part.toString(16).padStart(2, '0')).join('')}`;
}
