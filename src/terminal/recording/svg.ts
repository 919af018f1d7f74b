/** Draws the screen of a recording at one time as an SVG picture, without scripts, links and external fonts. */
import xterm, { type IBufferCell } from '@xterm/headless';
import { escapeMarkup, INK, PAPER, titleOf } from './convert-cast.js';
import type { OpenCast } from './read-cast.js';
import { hexOf } from './text-lines.js';

/** Columns and rows of the largest screen that is drawn. */
const LARGEST = 1_000;
/** Font size, width of a column, height of a row, and the margin in pixels. */
const FONT = 14;
const COLUMN = 8.4;
const ROW = 19;
const MARGIN = 16;
const FONTS = 'ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace';

/** Yields the picture of the screen at `at` seconds, or of the last one. Rows below the last text are left out. */
export async function* toSvg({ head, items }: OpenCast, at = Number.POSITIVE_INFINITY): AsyncGenerator<string> {
  const size = (cells: number, standard: number) => Math.min(LARGEST, Math.max(1, cells || standard));
  const screen = new xterm.Terminal({
    cols: size(head.width, 80),
    rows: size(head.height, 24),
    scrollback: 0,
    allowProposedApi: true,
  });
  try {
    for await (const item of items) {
      if (item.at > at) break;
      if (item.kind === 'size') screen.resize(size(item.cols, 80), size(item.rows, 24));
      if (item.kind === 'output') await new Promise<void>((resolve) => screen.write(item.text, resolve));
    }
    yield picture(screen, titleOf(head));
  } finally {
    screen.dispose();
  }
}

function picture(screen: xterm.Terminal, title: string): string {
  const buffer = screen.buffer.active;
  const rows = Array.from({ length: screen.rows }, (_, row) => runsOf(buffer.getLine(buffer.baseY + row)));
  const height = Math.max(1, rows.findLastIndex((runs) => runs.length > 0) + 1);
  const [wide, high] = [round(screen.cols * COLUMN + 2 * MARGIN), height * ROW + 2 * MARGIN];
  const drawn = rows.slice(0, height).flatMap((runs, row) => runs.map((run) => drawRun(run, row)));
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${wide}" height="${high}" viewBox="0 0 ${wide} ${high}" role="img">
<title>${escapeMarkup(title)}</title>
<style>text { font: ${FONT}px ${FONTS}; fill: ${INK}; white-space: pre; unicode-bidi: isolate-override; direction: ltr; }</style>
<rect width="${wide}" height="${high}" rx="8" fill="${PAPER}"/>
${drawn.join('\n')}
</svg>
`;
}

/** Neighbouring cells of one look. */
interface Run {
  readonly column: number;
  readonly columns: number;
  readonly text: string;
  readonly look: Look;
}

/** The style attribute of the text, and the colour behind it; null for that of the picture. */
interface Look {
  readonly text: string;
  readonly paper: string | null;
}

/** Returns the runs of a line, without blank ones that show nothing. */
function runsOf(line: xterm.IBufferLine | undefined): readonly Run[] {
  const runs: Run[] = [];
  for (let column = 0; column < (line?.length ?? 0); column += 1) {
    const cell = line?.getCell(column);
    const columns = cell?.getWidth() ?? 0;
    if (cell === undefined || columns === 0) continue;
    const look = lookOf(cell);
    const text = cell.isInvisible() ? ' ' : cell.getChars() || ' ';
    const last = runs.at(-1);
    if (last === undefined || last.look.text !== look.text || last.look.paper !== look.paper) {
      runs.push({ column, columns, text, look });
    } else runs[runs.length - 1] = { ...last, columns: last.columns + columns, text: last.text + text };
  }
  return runs.filter(({ text, look }) => text.trim() !== '' || look.paper !== null);
}

function lookOf(cell: IBufferCell): Look {
  const color = colorOf(cell.isFgDefault(), cell.isFgRGB(), cell.getFgColor());
  const paper = colorOf(cell.isBgDefault(), cell.isBgRGB(), cell.getBgColor());
  const fill = cell.isInverse() ? (paper ?? PAPER) : color;
  const lines = [cell.isUnderline() ? 'underline' : '', cell.isStrikethrough() ? 'line-through' : ''].filter(Boolean);
  // Attributes of their own would yield to the style of all texts.
  const style = [
    fill === null ? '' : `fill:${fill}`,
    cell.isBold() ? 'font-weight:bold' : '',
    cell.isDim() ? 'opacity:.7' : '',
    cell.isItalic() ? 'font-style:italic' : '',
    lines.length === 0 ? '' : `text-decoration:${lines.join(' ')}`,
  ].filter(Boolean);
  return {
    text: style.length === 0 ? '' : ` style="${style.join(';')}"`,
    paper: cell.isInverse() ? (color ?? INK) : paper,
  };
}

const colorOf = (isDefault: boolean, isRgb: boolean, value: number): string | null => {
  if (isDefault) return null;
  return hexOf(isRgb ? `#${value.toString(16).padStart(6, '0')}` : value);
};

/** Draws a run. Its length is given, so that the columns stay in line with every font. */
function drawRun({ column, columns, text, look }: Run, row: number): string {
  const [x, y] = [round(MARGIN + column * COLUMN), MARGIN + row * ROW];
  const paper =
    look.paper === null
      ? ''
      : `<rect x="${x}" y="${y}" width="${round(columns * COLUMN)}" height="${ROW}" fill="${look.paper}"/>`;
  const start = text.length - text.trimStart().length;
  const shown = text.trim();
  if (shown === '') return paper;
  // Blanks around the text are left out, because some viewers drop them.
  const left = round(x + start * COLUMN);
  const width = round((columns - start - (text.length - text.trimEnd().length)) * COLUMN);
  return `${paper}<text x="${left}" y="${y + FONT}" textLength="${width}"${look.text}>${escapeMarkup(withoutUnseen(shown))}</text>`;
}

/** Removes characters that XML does not allow, or that change the order or the form of others. */
const withoutUnseen = (text: string): string => text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\ufffe\uffff]/gu, '');

const round = (value: number): number => Math.round(value * 10) / 10;
