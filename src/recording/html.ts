/** The page that a recording becomes: text and colours, escaped, without any script. */
import type { CastHead } from './cast-head.js';
import type { StyledText } from './screen-line.js';
import type { TextLine } from './text-lines.js';
import { hexOf, PLAIN, type TextStyle } from './text-style.js';

const INK = '#d0d0d0';
const PAPER = '#101010';

export function htmlStart({ orch, timestamp }: CastHead): string {
  const began = typeof timestamp === 'number' ? dateOf(timestamp) : '';
  const title = orch ? `${orch.operator} on ${orch.node_name ?? orch.node} ${began}` : `Terminal recording ${began}`;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>${escapeHtml(title.trim())}</title>
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
  const escaped = escapeHtml(text);
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

const escapeHtml = (text: string): string => text.replace(/[&<>"']/g, (found) => ENTITIES[found] ?? '');

/** Empty for a time that no calendar has. */
function dateOf(seconds: number): string {
  const date = new Date(seconds * 1000);
  return Number.isNaN(date.getTime()) ? '' : date.toISOString();
}
