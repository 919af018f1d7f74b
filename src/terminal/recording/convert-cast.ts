/** Converts a recording to other formats, piece by piece: raw bytes, harmless output, text, HTML and a harmless recording. */
import { type CastHead, eventLine } from './cast-format.js';
import { Neutralizer } from './neutralizer.js';
import { bytesOf, type CastItem, type OpenCast } from './read-cast.js';
import { hexOf, PLAIN, type StyledText, type TextLine, TextLines, type TextStyle } from './text-lines.js';

/** Yields the original output bytes. */
export async function* toRaw({ items }: OpenCast): AsyncGenerator<Buffer> {
  for await (const item of items) if (item.kind === 'output') yield bytesOf(item);
}

/** Yields the output without sequences that do more than draw. */
export async function* toHarmless({ items }: OpenCast): AsyncGenerator<string> {
  const neutralizer = new Neutralizer();
  for await (const item of items) if (item.kind === 'output') yield neutralizer.write(item.text);
}

/** Yields the output as lines of text. */
export async function* toText({ items }: OpenCast): AsyncGenerator<string> {
  for await (const lines of textOf(items, false)) yield lines.map(({ text }) => `${text}\n`).join('');
}

/** Yields an HTML page without scripts and external resources. */
export async function* toHtml({ head, items }: OpenCast): AsyncGenerator<string> {
  yield htmlStart(head);
  for await (const lines of textOf(items, true)) yield lines.map(htmlLine).join('');
  yield htmlEnd();
}

/** Yields a recording with harmless output and standard event codes only. */
export async function* toHarmlessCast({ head, items }: OpenCast): AsyncGenerator<string> {
  const { version, width, height, timestamp, env } = head;
  yield `${JSON.stringify({ version, width, height, timestamp, env })}\n`;
  const neutralizer = new Neutralizer();
  for await (const item of items) {
    if (item.kind === 'size') yield eventLine(item.at, 'r', `${item.cols}x${item.rows}`);
    const output = item.kind === 'output' ? neutralizer.write(item.text) : '';
    if (output !== '') yield eventLine(item.at, 'o', output);
  }
}

async function* textOf(items: AsyncIterable<CastItem>, isStyled: boolean) {
  const lines = new TextLines(isStyled);
  for await (const item of withNotes(items)) if (item.kind === 'output') yield lines.write(item.at, item.text);
  yield lines.end();
}

type Omitted = Extract<CastItem, { kind: 'omitted' }>;

/** Puts a line of text in place of omitted output. */
async function* withNotes(items: AsyncIterable<CastItem>): AsyncGenerator<CastItem> {
  let omitted: Omitted[] = [];
  for await (const item of items) {
    if (item.kind === 'omitted') omitted.push(item);
    if (item.kind !== 'output') continue;
    yield* notesOf(omitted);
    omitted = [];
    yield item;
  }
  yield* notesOf(omitted);
}

function* notesOf(omitted: readonly Omitted[]): Generator<CastItem> {
  const [first] = omitted;
  if (first === undefined) return;
  const bytes = omitted.reduce((sum, item) => sum + item.bytes, 0);
  const { at, stream } = first;
  yield { at, kind: 'output', stream, text: `\r\n[${bytes} bytes of output are not kept]\r\n`, bytes: null };
}

export const INK = '#d0d0d0';
export const PAPER = '#101010';

/** Returns what was recorded, and when. */
export function titleOf({ orch, timestamp }: CastHead): string {
  const began = typeof timestamp === 'number' ? dateOf(timestamp) : '';
  const title = orch ? `${orch.operator} on ${orch.node_name ?? orch.node} ${began}` : `Terminal recording ${began}`;
  return title.trim();
}

export function htmlStart(head: CastHead): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>${escapeMarkup(titleOf(head))}</title>
<style>
body { background: ${PAPER}; color: ${INK}; }
pre { font-family: monospace; white-space: pre-wrap; overflow-wrap: anywhere; unicode-bidi: isolate-override; direction: ltr; }
</style>
</head>
<body>
<pre>
`;
}

export const htmlLine = ({ pieces }: TextLine): string => `${pieces.map(htmlPiece).join('')}\n`;

export const htmlEnd = (): string => '</pre>\n</body>\n</html>\n';

function htmlPiece({ text, style }: StyledText): string {
  const escaped = escapeMarkup(text);
  const looks = style === PLAIN ? '' : css(style);
  return looks === '' ? escaped : `<span style="${looks}">${escaped}</span>`;
}

function css({ color, background, bold, dim, italic, underlined, struck, inverse }: TextStyle): string {
  const ink = color === null ? INK : hexOf(color);
  const paper = background === null ? PAPER : hexOf(background);
  const lines = [underlined ? 'underline' : '', struck ? 'line-through' : ''].filter(Boolean).join(' ');
  return [
    inverse || color !== null ? `color:${inverse ? paper : ink}` : '',
    inverse || background !== null ? `background:${inverse ? ink : paper}` : '',
    bold ? 'font-weight:bold' : '',
    dim ? 'opacity:.7' : '',
    italic ? 'font-style:italic' : '',
    lines === '' ? '' : `text-decoration:${lines}`,
  ]
    .filter(Boolean)
    .join(';');
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

/** Escapes text of HTML and XML. */
export const escapeMarkup = (text: string): string => text.replace(/[&<>"']/g, (found) => ENTITIES[found] ?? '');

/** Returns an ISO date, or an empty string when the time is out of range. */
function dateOf(seconds: number): string {
  const date = new Date(seconds * 1000);
  return Number.isNaN(date.getTime()) ? '' : date.toISOString();
}
