/** Unified diffs of text, bounded in length and in the work they take. */
import { formatPatch, OMIT_HEADERS, structuredPatch } from 'diff';
import { MAX_DIFF_CHARACTERS } from '../../resources/result.js';

interface TextChange {
  readonly path: string;
  /** Null for a missing file and for content that is no text. */
  readonly before: string | null;
  readonly after: string | null;
}

const CONTEXT = 3;
/** Maximum edited lines; beyond it the diff shows all old lines replaced by all new ones. */
const MAX_EDITS = 600;
/** Maximum characters of a diff as JSON, where control characters take six. */
const MAX_JSON_CHARACTERS = 2 * MAX_DIFF_CHARACTERS;
const NO_NEWLINE = '\\ No newline at end of file';

/** Returns the diff, or null when the texts are equal. */
export function unifiedDiff({ path, before, after }: TextChange): string | null {
  const [old, young] = [before ?? '', after ?? ''];
  const hunks = old === young ? '' : hunksOf(old, young);
  if (hunks === '') return null;
  const label = printable(path);
  const header = `--- ${before === null ? '/dev/null' : `a${label}`}\n+++ ${after === null ? '/dev/null' : `b${label}`}\n`;
  return bounded(header + hunks);
}

function hunksOf(old: string, young: string): string {
  if (old === '' || young === '') return replaced(old, young);
  const patch = structuredPatch('', '', old, young, undefined, undefined, {
    context: CONTEXT,
    maxEditLength: MAX_EDITS,
  });
  return patch === undefined ? replaced(old, young) : formatPatch(patch, OMIT_HEADERS);
}

/** Returns one hunk that replaces all old lines by all new ones. */
function replaced(old: string, young: string): string {
  const gone = linesOf(old, '-');
  const come = linesOf(young, '+');
  return `@@ -${rangeOf(gone.count)} +${rangeOf(come.count)} @@\n${gone.text}${come.text}`;
}

function linesOf(text: string, sign: string): { readonly count: number; readonly text: string } {
  if (text === '') return { count: 0, text: '' };
  const isEnded = text.endsWith('\n');
  const lines = (isEnded ? text.slice(0, -1) : text).split('\n');
  const shown = `${lines.map((line) => sign + line).join('\n')}\n`;
  return { count: lines.length, text: isEnded ? shown : `${shown}${NO_NEWLINE}\n` };
}

const rangeOf = (count: number): string => (count === 0 ? '0,0' : `1,${count}`);

/** Cuts a diff that is too long at a line end and adds a last line that says so. */
function bounded(diff: string): string {
  let room = MAX_DIFF_CHARACTERS;
  if (diff.length <= room && jsonLength(diff) <= MAX_JSON_CHARACTERS) return diff;
  for (;;) {
    const shown = cutAtLine(diff, room - 80);
    const cut = `${shown}… ${diff.length - shown.length} more characters are not shown\n`;
    if (jsonLength(cut) <= MAX_JSON_CHARACTERS) return cut;
    room = Math.floor(room / 2);
  }
}

function cutAtLine(text: string, length: number): string {
  const end = text.lastIndexOf('\n', length);
  if (end > length / 2) return text.slice(0, end + 1);
  // Half of a surrogate pair cannot be encoded.
  const cut = text.slice(0, length).replace(/[\ud800-\udbff]$/, '');
  return `${cut}\n`;
}

const jsonLength = (text: string): number => (text.length * 6 <= MAX_JSON_CHARACTERS ? 0 : JSON.stringify(text).length);

const printable = (path: string): string =>
  path.replace(/[\u0000-\u001f\u007f-\u009f]/g, (character) => JSON.stringify(character).slice(1, -1));
