/** A recording in other forms, piece by piece. */
import { eventLine } from './cast-event.js';
import { htmlEnd, htmlLine, htmlStart } from './html.js';
import { Neutralizer } from './neutralizer.js';
import { bytesOf, type CastItem, type OpenCast } from './read-cast.js';
import { TextLines } from './text-lines.js';

/** The output as it was, byte for byte. */
export async function* toRaw({ items }: OpenCast): AsyncGenerator<Buffer> {
  for await (const item of items) if (item.kind === 'output') yield bytesOf(item);
}

/** The output without what acts on a terminal instead of drawing. */
export async function* toHarmless({ items }: OpenCast): AsyncGenerator<string> {
  const neutralizer = new Neutralizer();
  for await (const item of items) if (item.kind === 'output') yield neutralizer.write(item.text);
}

/** Lines of text. */
export async function* toText({ items }: OpenCast): AsyncGenerator<string> {
  for await (const lines of textOf(items, false)) yield lines.map(({ text }) => `${text}\n`).join('');
}

/** A page that needs nothing else and runs nothing. */
export async function* toHtml({ head, items }: OpenCast): AsyncGenerator<string> {
  yield htmlStart(head);
  for await (const lines of textOf(items, true)) yield lines.map(htmlLine).join('');
  yield htmlEnd();
}

/** A recording whose output is harmless for whoever plays it, with the codes that every player knows. */
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
  for await (const item of items) if (item.kind === 'output') yield lines.write(item.at, item.text);
  yield lines.end();
}
