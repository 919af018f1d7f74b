/**
 * A setting as data: type, default and help text. Flags, environment variables, YAML keys, help, the JSON Schema and the
 * documentation derive from tables of settings.
 */
import * as Type from 'typebox';

/** Text shared by every setting. */
interface Texts {
  /** Noun phrase or imperative for one line of help, without default and unit. */
  readonly summary: string;
  /** Additional text for documents and schemas. */
  readonly detail?: string;
  /** True when a reload applies a new value; false when only a restart does. */
  readonly live?: boolean;
}

export interface Setting<S extends Type.TSchema = Type.TSchema> {
  /** Type, default and bounds. */
  readonly schema: S;
  readonly summary: string;
  readonly detail: string | null;
  /** Unit of a number, such as `seconds`; null without one. */
  readonly unit: string | null;
  /** Meaning of 0, such as `never`; null when 0 is an ordinary value. */
  readonly zero: string | null;
  /** Default in words where it depends on the machine; null for the schema's default. */
  readonly computedDefault: string | null;
  /** Summary of the flag that turns off a setting that is on by default. */
  readonly off: string | null;
  /** Name of the flag's value in the help. */
  readonly placeholder: string;
  /** True for the path of a file or directory. */
  readonly isPath: boolean;
  readonly live: boolean;
}

/** Settings by dotted key; the part before the dot is a mapping in the YAML file. */
export type SettingTable = Readonly<Record<string, Setting>>;

/** The value of every setting of a table. */
export type ValuesOf<T extends SettingTable> = { readonly [K in keyof T]: Type.Static<T[K]['schema']> };

const setting = <S extends Type.TSchema>(
  schema: S,
  { summary, detail, live = false }: Texts,
  own: Partial<Setting<S>>,
): Setting<S> => ({
  schema,
  summary,
  detail: detail ?? null,
  live,
  unit: null,
  zero: null,
  computedDefault: null,
  off: null,
  placeholder: 'TEXT',
  isPath: false,
  ...own,
});

export const text = ({
  default: standard = '',
  placeholder = 'TEXT',
  computedDefault,
  pattern,
  maxLength,
  ...texts
}: Texts & {
  readonly default?: string;
  readonly placeholder?: string;
  readonly computedDefault?: string;
  readonly pattern?: string;
  readonly maxLength?: number;
}) => {
  return setting(Type.String({ default: standard, ...present({ pattern, maxLength }) }), texts, {
    placeholder,
    computedDefault: computedDefault ?? null,
  });
};

/** Defines the path of a file or directory. */
export const path = ({ placeholder = 'FILE', ...rest }: Parameters<typeof text>[0]) => ({
  ...text({ placeholder, ...rest }),
  isPath: true,
});

export const flag = ({
  default: standard,
  off,
  ...texts
}: Texts & { readonly default: boolean; readonly off?: string }) =>
  setting(Type.Boolean({ default: standard }), texts, { off: off ?? null });

export const integer = ({
  default: standard,
  minimum,
  maximum,
  unit,
  zero,
  placeholder = unit?.toUpperCase() ?? 'N',
  ...texts
}: Texts & {
  readonly default: number;
  readonly minimum: number;
  readonly maximum: number;
  readonly unit?: string;
  readonly zero?: string;
  readonly placeholder?: string;
}) =>
  setting(Type.Integer({ minimum, maximum, default: standard }), texts, {
    unit: unit ?? null,
    zero: zero ?? null,
    placeholder,
  });

export const port = (own: Texts & { readonly default: number }) =>
  integer({ minimum: 0, maximum: 65_535, placeholder: 'PORT', zero: 'picks a free one', ...own });

export const oneOf = <const C extends string>(
  choices: readonly C[],
  { default: standard, placeholder, ...texts }: Texts & { readonly default: C; readonly placeholder: string },
) => setting(Type.Enum([...choices], { default: standard }), texts, { placeholder });

/** Defines a list of words, empty by default. `pattern` and `maxLength` apply to each word. */
export const words = ({
  placeholder,
  default: standard = [],
  maxItems,
  pattern,
  maxLength,
  ...texts
}: Texts & {
  readonly placeholder: string;
  readonly default?: readonly string[];
  readonly maxItems?: number;
  readonly pattern?: string;
  readonly maxLength?: number;
}) => {
  const word = Type.String(present({ pattern, maxLength }));
  return setting(Type.Array(word, { default: [...standard], ...present({ maxItems }) }), texts, { placeholder });
};

/** Removes undefined members. */
const present = (options: Readonly<Record<string, unknown>>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));

/** Returns the default of every setting. */
export const defaultsOf = <T extends SettingTable>(table: T): ValuesOf<T> =>
  Object.fromEntries(Object.entries(table).map(([key, one]) => [key, defaultOf(one)])) as ValuesOf<T>;

export const defaultOf = ({ schema }: Setting): unknown => (schema as { default?: unknown }).default;

/** Converts `drift.max_concurrent` to `drift_max_concurrent`. */
export const flatName = (key: string): string => key.replace('.', '_');

/** Converts `log.level` to `ORCH_SERVE_LOG_LEVEL`, with prefix `ORCH_SERVE_`. */
export const variableOf = (prefix: string, key: string): string => prefix + flatName(key).toUpperCase();

/** Returns the flag of a setting. A setting that is on by default has a flag that turns it off: `tls_enabled` has `--no-tls`. */
export function flagOf(key: string, { off }: Pick<Setting, 'off'>): { readonly name: string; readonly flag: string } {
  if (off === null) return { name: flatName(key), flag: `--${flatName(key).replaceAll('_', '-')}` };
  const name = flatName(key).replace(/_enabled$/, '');
  return { name, flag: `--no-${name.replaceAll('_', '-')}` };
}

/** Returns the default for people; null without a default. */
export function shownDefault(one: Setting): string | null {
  if (one.computedDefault !== null) return one.computedDefault;
  const standard = defaultOf(one);
  return String(standard) === '' ? null : String(standard);
}

/** Returns a line of help: the summary with unit and default in brackets. */
export function helpOf(one: Setting): string {
  if (one.off !== null) return one.off;
  if (Type.IsBoolean(one.schema)) return one.summary;
  const standard = shownDefault(one);
  // The placeholder of the value names the unit.
  const notes = [...notesOf({ ...one, unit: null }), ...(standard === null ? [] : [`default: ${standard}`])];
  return notes.length === 0 ? one.summary : `${one.summary} [${notes.join('; ')}]`;
}

/** Returns the summary as a sentence with the unit, for documents and schemas, which show the default separately. */
export function meaningOf(one: Setting): string {
  const notes = notesOf(one);
  const summary = one.summary.charAt(0).toUpperCase() + one.summary.slice(1);
  const text = notes.length === 0 ? summary : `${summary} (${notes.join('; ')})`;
  return one.detail === null ? text : `${text}; ${one.detail}`;
}

const notesOf = ({ unit, zero, schema }: Setting): readonly string[] => [
  ...(unit === null ? [] : [unit]),
  ...(zero === null ? [] : [`0: ${zero}`]),
  ...(Type.IsEnum(schema) ? [schema.enum.join(', ')] : []),
];

/** Returns the JSON Schema of a YAML file of these settings, for editors. `id` is a `urn:…`. */
export function jsonSchemaOf(
  table: SettingTable,
  { id, title }: { readonly id: string; readonly title: string },
): object {
  const properties: Record<string, unknown> = {};
  for (const [key, one] of Object.entries(table)) {
    const schema = { ...one.schema, description: meaningOf(one) };
    const [section, member] = key.split('.') as [string, string?];
    if (member === undefined) {
      properties[section] = schema;
      continue;
    }
    properties[section] ??= { type: 'object', additionalProperties: false, properties: {} };
    (properties[section] as { properties: Record<string, unknown> }).properties[member] = schema;
  }
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    $id: id,
    title,
    type: 'object',
    additionalProperties: false,
    properties,
  };
}
