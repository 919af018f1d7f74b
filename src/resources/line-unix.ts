/** `line-unix`: one line of a file that others own. */
import * as Type from 'typebox';
import { readPattern } from '../kernel/pattern.js';
import { closed, optional } from '../kernel/schema.js';
import { afterField, checkPattern, insertAfter, matching } from './edits/after-line.js';
import { checkOneLine, defineFileEdit } from './edits/file-edit.js';
import { lineNumbers, positionsOf, replaceRange, withoutLines } from './edits/text-lines.js';
import { validateField } from './file-check.js';
import type { Body, BodyProblem } from './kind.js';

const pathField = Type.String({ minLength: 1, description: 'Absolute path of the file' });
const matchField = Type.String({ minLength: 1, description: 'Pattern of the line that it replaces' });

const schema = closed({
  path: pathField,
  line: Type.String({ minLength: 1, description: 'The line, without its line break' }),
  match: optional(matchField),
  after: afterField,
  create: optional(Type.Boolean({ description: 'true: makes the file if it is missing' })),
  validate: validateField,
});

type LineBody = Type.Static<typeof schema>;

/** An absence names its lines by text or by pattern. */
type AnyLine = Omit<LineBody, 'line'> & { readonly line?: string | null };

export const lineUnix = defineFileEdit<AnyLine>({
  kind: 'line-unix',
  schema,
  check: ({ line, match, after }) => [
    ...checkOneLine('line', line),
    ...checkPattern('match', match),
    ...checkPattern('after', after),
  ],
  path: ({ path }) => path,
  part: ({ line, match }) => match ?? line ?? '',
  creates: ({ create }) => create === true,
  validate: ({ validate }) => validate,

  has: ({ line, match }, lines) =>
    lines.lines.some(({ text }) => text === line) || (match != null && matching(lines, match).length > 0),

  put(body, lines) {
    const { path, match, line = '' } = body;
    const text = line ?? '';
    if (positionsOf(lines, (one) => one === text).length > 0) return null;
    const found = match == null ? [] : matching(lines, match);
    const [at] = found;
    if (at !== undefined && found.length > 1) {
      const refusal = `"match" (${match}) finds lines ${lineNumbers(found)} of ${path}; change the pattern so that it finds one`;
      return { refusal };
    }
    if (at !== undefined) {
      const changes = [{ field: 'line', before: lines.lines[at]?.text ?? null, after: text }];
      return { lines: replaceRange(lines, at, at + 1, [text]), changes };
    }
    const inserted = insertAfter(body, lines, [text]);
    if ('refusal' in inserted) return inserted;
    return { lines: inserted, changes: [{ field: 'line', before: null, after: text }] };
  },

  take({ line, match }, lines) {
    const gone = new Set(line == null && match != null ? matching(lines, match) : []);
    const rest = withoutLines(lines, (text, at) => text === line || gone.has(at));
    return rest === lines ? null : rest;
  },

  // A line that the pattern of another one finds would be replaced by it.
  forbids({ line, match }) {
    const finds = match == null ? null : finderOf(match);
    return finds && ((other) => other.kind === 'line-unix' && other.body.line !== line && finds(other.body.line));
  },
});

/** Members of the absence: the text of the line, or a pattern. */
export const absentLine = {
  schema: closed({
    path: pathField,
    line: optional(Type.String({ minLength: 1, description: 'The line, wherever it stands' })),
    match: optional(Type.String({ minLength: 1, description: 'Pattern of the lines' })),
  }),
  check(body: Body): readonly BodyProblem[] {
    const { path, line, match } = body;
    if (line != null && match != null) return [{ path: '/match', message: 'line and match exclude each other' }];
    if (line == null && match == null) {
      return [{ path: '', message: 'an absent line-unix needs "line", or "match" for all lines that match' }];
    }
    return lineUnix.check({ path: String(path), line: line as string | null, match: match as string | null });
  },
  forbids({ line, match }: Body): ((other: { readonly kind: string; readonly body: Body }) => boolean) | null {
    const finds = typeof match === 'string' ? finderOf(match) : (text: unknown) => text === line;
    return finds && ((other) => other.kind === 'line-unix' && finds(other.body.line));
  },
};

/** Returns a test for texts that a pattern finds; null for a pattern that is wrong. */
function finderOf(source: string): ((text: unknown) => boolean) | null {
  const pattern = readPattern(source);
  return typeof pattern === 'string' ? null : (text) => typeof text === 'string' && pattern.test(text);
}
