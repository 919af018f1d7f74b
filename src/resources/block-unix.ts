/** `block-unix`: lines between two markers in a file that others own. */
import * as Type from 'typebox';
import { closed, optional } from '../kernel/schema.js';
import { afterField, checkPattern, insertAfter } from './edits/after-line.js';
import { checkOneLine, defineFileEdit, type EditRefusal } from './edits/file-edit.js';
import { lineNumbers, positionsOf, replaceRange, type TextLines } from './edits/text-lines.js';
import { validateField } from './file-check.js';
import { checkText } from './file-content.js';
import type { BodyProblem } from './kind.js';

/** Members that name a block, which its absence has too. */
export const blockName = {
  path: Type.String({ minLength: 1, description: 'Absolute path of the file' }),
  name: Type.String({
    pattern: '^[A-Za-z0-9](?:[A-Za-z0-9 ._/-]{0,126}[A-Za-z0-9])?$',
    description: 'Name in the markers, such as "limits of nginx"',
  }),
} as const;

const schema = closed({
  ...blockName,
  content: Type.String({ description: 'The lines between the markers' }),
  comment: optional(
    Type.String({ minLength: 1, maxLength: 16, description: 'What begins a comment in the file [default: #]' }),
  ),
  after: afterField,
  create: optional(Type.Boolean({ description: 'true: makes the file if it is missing' })),
  validate: validateField,
});

type BlockBody = Type.Static<typeof schema>;

export const blockUnix = defineFileEdit<BlockBody>({
  kind: 'block-unix',
  schema,
  check: (body) => [
    ...checkContent(body),
    ...checkOneLine('comment', body.comment),
    ...checkPattern('after', body.after),
  ],
  path: ({ path }) => path,
  part: ({ name }) => name,
  creates: ({ create }) => create === true,
  validate: ({ validate }) => validate,

  has: ({ name }, lines) => positionsOf(lines, isMarker('BEGIN', name)).length > 0,

  put(body, lines) {
    const { content } = body;
    const texts = textsOf(body);
    const place = placeOf(body, lines);
    if (place !== null && 'refusal' in place) return place;
    if (place === null) {
      const inserted = insertAfter(body, lines, texts);
      if ('refusal' in inserted) return inserted;
      return { lines: inserted, changes: [CONTENT], text: { before: null, after: content } };
    }
    const { from, to } = place;
    const present = lines.lines.slice(from, to).map(({ text }) => text);
    if (present.length === texts.length && present.every((text, at) => text === texts[at])) return null;
    const before = present.slice(1, -1).join('\n') + (present.length > 2 && content.endsWith('\n') ? '\n' : '');
    const isMarked = present[0] === texts[0] && present.at(-1) === texts.at(-1);
    const marks = isMarked ? [] : [{ field: 'comment', before: present[0] ?? null, after: texts[0] ?? null }];
    return {
      lines: replaceRange(lines, from, to, texts),
      changes: before === content ? marks : [CONTENT, ...marks],
      ...(before === content ? {} : { text: { before, after: content } }),
    };
  },

  take(body, lines) {
    const place = placeOf(body, lines);
    if (place === null || 'refusal' in place) return place;
    return { ...lines, lines: [...lines.lines.slice(0, place.from), ...lines.lines.slice(place.to)] };
  },
});

const CONTENT = { field: 'content', before: null, after: null };

type Marker = 'BEGIN' | 'END';

const markOf = (which: Marker, name: string): string => `${which} orch ${name}`;

/** Returns a test for the marker of a block behind any comment character. */
function isMarker(which: Marker, name: string): (line: string) => boolean {
  const mark = markOf(which, name);
  return (line) => {
    const text = line.trimEnd();
    return (
      text.endsWith(mark) && (text.length === mark.length || /\s/.test(text.charAt(text.length - mark.length - 1)))
    );
  };
}

/** Returns the lines of the block with its markers. */
function textsOf({ name, content, comment }: BlockBody): readonly string[] {
  const begin = comment ?? '#';
  const inner = content === '' ? [] : content.replace(/\n$/, '').split('\n');
  return [`${begin} ${markOf('BEGIN', name)}`, ...inner, `${begin} ${markOf('END', name)}`];
}

/** Returns where the block stands, null where there is none, or why its markers do not fit together. */
function placeOf(
  { path, name }: Pick<BlockBody, 'path' | 'name'>,
  lines: TextLines,
): { readonly from: number; readonly to: number } | EditRefusal | null {
  const begins = positionsOf(lines, isMarker('BEGIN', name));
  const ends = positionsOf(lines, isMarker('END', name));
  const [from, to] = [begins[0], ends[0]];
  if (from === undefined && to === undefined) return null;
  if (from !== undefined && to !== undefined && from < to && begins.length === 1 && ends.length === 1) {
    return { from, to: to + 1 };
  }
  const all = lineNumbers([...begins, ...ends].sort((a, b) => a - b));
  const refusal = `the markers of the block "${name}" in ${path} (line ${all}) are not one pair; mend or remove them by hand`;
  return { refusal };
}

function checkContent({ name, content }: Partial<BlockBody>): readonly BodyProblem[] {
  if (typeof content !== 'string') return [];
  const problem = (message: string) => [{ path: '/content', message }];
  const [unsuitable] = checkText(content);
  if (unsuitable) return [unsuitable];
  if (content.includes('\0')) return problem('content must not contain a NUL character');
  if (content.includes('\r')) {
    return problem('content must not contain carriage returns; the block gets the line ends of its file');
  }
  if (name === undefined) return [];
  const isOwn = content.split('\n').some((line) => isMarker('BEGIN', name)(line) || isMarker('END', name)(line));
  return isOwn ? problem('content must not contain the markers of the block, which orch writes') : [];
}
