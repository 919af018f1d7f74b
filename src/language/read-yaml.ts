/** From a module's text to located data: guard, syntax, keys. */
import { Composer, type Document, isScalar } from 'yaml';
import { type Located, locate } from './located.js';
import type { MistakeList } from './mistake.js';
import type { TextLines } from './text-lines.js';
import { checkCharacters } from './yaml-characters.js';
import { guardYaml, YAML_LIMITS } from './yaml-guard.js';
import { checkSyntax } from './yaml-syntax.js';

/** What a file is to hold, for messages. */
export interface FileNoun {
  /** Such as `module`. */
  readonly noun: string;
  /** The key that it begins with. */
  readonly begin: string;
}

const MODULE: FileNoun = { noun: 'module', begin: 'name' };

/** The data of a text (without its byte order mark), or null when it is not YAML that a module may be; then errors say why. */
export function readYaml(
  text: string,
  lines: TextLines,
  mistakes: MistakeList,
  { noun, begin }: FileNoun = MODULE,
): Located | null {
  if (isLongerThan(text, YAML_LIMITS.bytes)) {
    mistakes.error('too_large', `the ${noun} is larger than ${YAML_LIMITS.bytes} bytes`, '', { start: 0, end: 0 });
    return null;
  }
  if (!checkCharacters(text, mistakes)) return null;
  const tokens = guardYaml(text, mistakes);
  if (tokens === null) return null;
  const document = compose(tokens, text.length);
  if (!checkSyntax(document, { text, lines, mistakes })) return null;
  if (isEmpty(document)) {
    mistakes.error('empty_module', `the file holds no ${noun}; begin with "${begin}:"`, '', { start: 0, end: 0 });
    return null;
  }
  const root = locate(document.contents, { text, lines, mistakes });
  // Without the values of its aliases, whatever else is wrong would be told wrongly.
  return mistakes.found.some(({ code, severity }) => code === 'yaml_alias' && severity === 'error') ? null : root;
}

function compose(tokens: Parameters<Composer['compose']>[0], length: number): Document {
  // The library's own check for doubled keys is quadratic; `locate` makes it.
  const composer = new Composer({ version: '1.2', schema: 'core', uniqueKeys: false, stringKeys: true, merge: false });
  const [document] = composer.compose(tokens, true, length);
  if (document === undefined) throw new Error('the composer gave no document');
  return document;
}

const isEmpty = ({ contents }: Document): boolean =>
  contents === null || (isScalar(contents) && contents.value === null && !contents.source);

/** UTF-8 length, without making the bytes. */
function isLongerThan(text: string, bytes: number): boolean {
  if (text.length > bytes) return true;
  let size = text.length;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code >= 0x80) size += code >= 0x800 && (code < 0xd800 || code > 0xdfff) ? 2 : 1;
  }
  return size > bytes;
}
