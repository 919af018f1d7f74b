/** `setting-unix`: one key of a configuration file that others own. */
import * as Type from 'typebox';
import { closed, optional } from '../kernel/schema.js';
import { checkOneLine, defineFileEdit, type Edited, type EditRefusal } from './edits/file-edit.js';
import { exampleOf, FORMATS, lineOf, separatorOf, settingIn, settingsIn } from './edits/setting-format.js';
import { insertAt, lineNumbers, replaceRange, type TextLines, withoutLines } from './edits/text-lines.js';
import { validateField } from './file-check.js';
import type { BodyProblem } from './kind.js';

/** Members that name a setting, which its absence has too. */
export const settingName = {
  path: Type.String({ minLength: 1, description: 'Absolute path of the file' }),
  format: Type.Enum(FORMATS, { description: 'How the file writes its settings' }),
  section: optional(
    Type.String({ minLength: 1, description: 'Section of an ini file [default: before all sections]' }),
  ),
  key: Type.String({ minLength: 1, description: 'Name of the setting' }),
} as const;

const schema = closed({
  ...settingName,
  value: Type.Union([Type.String(), Type.Number(), Type.Boolean()], { description: 'Its value, on one line' }),
  create: optional(Type.Boolean({ description: 'true: makes the file if it is missing' })),
  validate: validateField,
});

type SettingBody = Omit<Type.Static<typeof schema>, 'value'> & { readonly value?: string | number | boolean };

export const settingUnix = defineFileEdit<SettingBody>({
  kind: 'setting-unix',
  schema,
  check: checkSetting,
  path: ({ path }) => path,
  part: ({ section, key }) => (section == null ? key : `[${section}] ${key}`),
  creates: ({ create }) => create === true,
  validate: ({ validate }) => validate,
  has: (body, lines) => scopeOf(body, lines).positions.length > 0,

  put: putSetting,

  take(body, lines) {
    const gone = new Set(scopeOf(body, lines).positions);
    const rest = withoutLines(lines, (_, at) => gone.has(at));
    return rest === lines ? null : rest;
  },
});

/** Sets the value of a key in a text; null when it has that value. */
export function putSetting(body: SettingBody, lines: TextLines): Edited | EditRefusal | null {
  const { path, format, section, key } = body;
  const value = String(body.value);
  const { positions, values, end, isThere } = scopeOf(body, lines);
  const [at, second] = positions;
  if (at === undefined) {
    const line = lineOf({ format, key, separator: separatorOf(format, lines) }, value);
    const changes = [{ field: 'value', before: null, after: value }];
    if (isThere) return { lines: insertAt(lines, end, [line]), changes };
    const last = lines.lines.at(-1)?.text.trim() ?? '';
    const added = [...(last === '' ? [] : ['']), `[${section}]`, line];
    return { lines: insertAt(lines, lines.lines.length, added), changes };
  }
  if (values.every((one) => one === value)) return null;
  if (second !== undefined) {
    const refusal = `${key} stands on lines ${lineNumbers(positions)} of ${path} with several values; leave one of them`;
    return { refusal };
  }
  const text = lines.lines[at]?.text ?? '';
  const present = settingIn(format, text);
  if (present === null) return null;
  const line = lineOf({ format, key: present.head, separator: present.separator }, value);
  const changes = [{ field: 'value', before: present.value, after: value }];
  return { lines: replaceRange(lines, at, at + 1, [line]), changes };
}

interface SettingScope {
  /** Positions of the key. */
  readonly positions: readonly number[];
  readonly values: readonly string[];
  /** Position of a new setting. */
  readonly end: number;
  /** False when the file lacks the section. */
  readonly isThere: boolean;
}

/** Finds a key within its section. A new one comes behind its commented example, or at the end of the section. */
function scopeOf({ format, section, key }: SettingBody, lines: TextLines): SettingScope {
  const wanted = section ?? null;
  const own = settingsIn(format, lines).filter((one) => one.section === wanted);
  const found = own.filter((one) => one.setting?.key === key);
  const example = own.findLast(({ text }) => exampleOf(format, text) === key);
  const last = own.findLast(({ text }) => text.trim() !== '');
  const isBeforeSections = wanted === null && own.length < lines.lines.length;
  const end = wanted !== null || isBeforeSections ? (last?.at ?? -1) + 1 : lines.lines.length;
  return {
    positions: found.map(({ at }) => at),
    values: found.map(({ setting }) => setting?.value ?? ''),
    end: example === undefined ? end : example.at + 1,
    isThere: wanted === null || own.length > 0,
  };
}

function checkSetting({ format, section, key, value }: Partial<SettingBody>): readonly BodyProblem[] {
  const problem = (path: string, message: string): BodyProblem => ({ path, message });
  const problems = [...checkOneLine('section', section), ...checkOneLine('key', key), ...checkOneLine('value', value)];
  if (section != null && format !== undefined && format !== 'ini') {
    problems.push(problem('/section', `only files of the format ini have sections, not ${format}`));
  }
  if (section != null && (/[[\]]/.test(section) || section.trim() !== section)) {
    problems.push(problem('/section', 'section must be the name without brackets and outer blanks'));
  }
  if (typeof key === 'string' && format !== undefined && !KEYS[format].test(key)) {
    problems.push(problem('/key', KEY_RULES[format]));
  }
  if (typeof value === 'string' && format !== 'env' && value.trim() !== value) {
    problems.push(
      problem('/value', 'value must not begin or end with a blank, which files of this format do not keep'),
    );
  }
  return problems;
}

const KEYS = {
  ini: /^[^\s=#;[](?:[^=]*[^\s=])?$/,
  env: /^[A-Za-z_][A-Za-z0-9_]*$/,
  'key-value': /^[^\s#;][^\s]*$/,
} as const;

const KEY_RULES = {
  ini: 'key must not contain "=", begin with "#", ";" or "[", or begin or end with a blank',
  env: 'key must be a name of letters, digits and "_" that does not begin with a digit',
  'key-value': 'key must not contain blanks, or begin with "#" or ";"',
} as const;
