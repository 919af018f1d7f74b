/** How configuration files write their settings. Lines are cut by hand, so that the time grows only with their length. */
import type { TextLines } from './text-lines.js';

/** `ini`: `key = value` in sections; `env`: shell variables; `key-value`: key and value with a blank in between. */
export const FORMATS = ['ini', 'env', 'key-value'] as const;
export type SettingFormat = (typeof FORMATS)[number];

/** A line with a setting. */
export interface Setting {
  readonly key: string;
  /** The line before the separator, such as `  export KEY`. */
  readonly head: string;
  /** Text between key and value, with its blanks. */
  readonly separator: string;
  /** Without the quotes of `env`. */
  readonly value: string;
}

const EXPORT = 'export';

/** Parses a line; null for comments, headers of sections, blank lines, and lines of another form. */
export function settingIn(format: SettingFormat, line: string): Setting | null {
  const text = line.trimStart();
  if (text === '' || isComment(text)) return null;
  const indent = line.slice(0, line.length - text.length);
  if (format === 'key-value') {
    const key = text.slice(0, endOfWord(text));
    const rest = text.slice(key.length);
    const value = rest.trim();
    return { key, head: indent + key, separator: separatorIn(rest, value), value };
  }
  const equals = text.indexOf('=');
  if (equals < 1 || (format === 'ini' && text.startsWith('['))) return null;
  const head = text.slice(0, equals).trimEnd();
  const rest = text.slice(head.length);
  const raw = text.slice(equals + 1).trim();
  const separator = separatorIn(rest, raw);
  if (format === 'ini') return { key: head, head: indent + head, separator, value: raw };
  const isExported = head.startsWith(EXPORT) && /^\s/.test(head.slice(EXPORT.length));
  const key = isExported ? head.slice(EXPORT.length).trimStart() : head;
  return { key, head: indent + head, separator, value: unquoted(raw) };
}

const isComment = (text: string): boolean => text.startsWith('#') || text.startsWith(';');

function endOfWord(text: string): number {
  const at = text.search(/\s/);
  return at < 0 ? text.length : at;
}

/** Returns what precedes the value; of a setting without one, all but blanks at the end. */
const separatorIn = (rest: string, value: string): string =>
  value === '' ? rest.trimEnd() : rest.slice(0, rest.indexOf(value, rest.indexOf('=') + 1));

interface LineParts {
  readonly format: SettingFormat;
  readonly key: string;
  readonly separator: string;
}

/** Returns the line of a setting. */
export function lineOf({ format, key, separator }: LineParts, value: string): string {
  if (format === 'env') return `${key}${separator}${quotedForShell(value)}`;
  if (value === '') return `${key}${separator}`.trimEnd();
  return `${key}${withBlank(format, separator)}${value}`;
}

/** A value that comes to a key without one gets the blank that `key =` or `key` lacks behind it. */
function withBlank(format: SettingFormat, separator: string): string {
  if (format === 'key-value') return separator === '' ? ' ' : separator;
  return /^\s+=$/.test(separator) ? `${separator} ` : separator;
}

/** Returns the separator of new settings: that of the first setting in the file. */
export function separatorOf(format: SettingFormat, { lines }: TextLines): string {
  if (format !== 'ini') return format === 'env' ? '=' : ' ';
  for (const { text } of lines) {
    const setting = settingIn(format, text);
    if (setting !== null && setting.value !== '') return setting.separator;
  }
  return ' = ';
}

/** Returns the key of a setting that is commented out; null for every other line. */
export function exampleOf(format: SettingFormat, line: string): string | null {
  const text = line.trimStart();
  if (!isComment(text)) return null;
  const setting = settingIn(format, text.slice(1));
  // Prose begins with a word too: an example of `key-value` is one without a blank behind the comment character.
  return setting === null || (format === 'key-value' && /^\s/.test(text.slice(1))) ? null : setting.key;
}

/** A line with its section. The header of a section counts as its first line. */
interface PlacedLine {
  readonly at: number;
  readonly text: string;
  readonly section: string | null;
  readonly setting: Setting | null;
}

/** Returns all lines with their sections, which only `ini` has. */
export function settingsIn(format: SettingFormat, { lines }: TextLines): readonly PlacedLine[] {
  let section: string | null = null;
  return lines.map(({ text }, at) => {
    const line = text.trim();
    if (format === 'ini' && line.startsWith('[') && line.includes(']'))
      section = line.slice(1, line.indexOf(']')).trim();
    return { at, text, section, setting: settingIn(format, text) };
  });
}

const PLAIN = /^[A-Za-z0-9_@%+:,./-]*$/;

/** Quotes a value for a shell, and for `EnvironmentFile=` of systemd. */
function quotedForShell(value: string): string {
  if (PLAIN.test(value)) return value;
  if (!value.includes("'")) return `'${value}'`;
  return `"${value.replace(/["\\$`]/g, '\\$&')}"`;
}

/** Returns the text that a quoted value means; other values as they are. */
function unquoted(raw: string): string {
  const inner = raw.slice(1, -1);
  if (raw.length < 2 || raw.at(0) !== raw.at(-1)) return raw;
  if (raw.startsWith("'") && !inner.includes("'")) return inner;
  if (raw.startsWith('"')) return inner.replace(/\\(["\\$`])/g, '$1');
  return raw;
}
