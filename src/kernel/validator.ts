/** Checks values against schemas and says in plain words what is wrong where. */
import type { Static, TSchema } from 'typebox';
import { Compile } from 'typebox/compile';
import { Settings } from 'typebox/system';

/** One mistake; `path` is a JSON pointer to the value, or to the member that is unknown or missing. */
export interface Problem {
  readonly path: string;
  readonly message: string;
}

export interface Validator<T> {
  /** What it checks against. */
  readonly schema: TSchema;
  /** True when the value has the type. */
  check(value: unknown): value is T;
  /** Every mistake (of very many the first 256), none twice; empty when `check` is true. */
  problems(value: unknown): readonly Problem[];
}

interface RawError {
  readonly keyword: string;
  readonly schemaPath: string;
  readonly instancePath: string;
  readonly params: Readonly<Record<string, unknown>>;
  readonly message: string;
}

/** Compiles a schema, at the first use, into a validator. */
export function validator<S extends TSchema>(schema: S): Validator<Static<S>> {
  let compiled: { Check(value: unknown): boolean; Errors(value: unknown): unknown } | undefined;
  const get = () => {
    compiled ??= Compile(schema);
    return compiled;
  };
  return {
    schema,
    check: (value): value is Static<S> => get().Check(value),
    problems: (value) =>
      get().Check(value) ? [] : describe(allErrors(() => get().Errors(value)) as readonly RawError[]),
  };
}

/** Most mistakes that are told of one value. */
export const MAX_PROBLEMS = 256;

/** The library stops after 8 errors unless told otherwise. */
function allErrors(errorsOf: () => unknown): unknown {
  const { maxErrors } = Settings.Get();
  Settings.Set({ maxErrors: MAX_PROBLEMS });
  try {
    return errorsOf();
  } finally {
    Settings.Set({ maxErrors });
  }
}

function describe(errors: readonly RawError[]): readonly Problem[] {
  const found = new Map<string, Problem>();
  const add = (path: string, message: string) => {
    const key = `${path}\0${message}`;
    if (found.size < MAX_PROBLEMS && !found.has(key)) found.set(key, { path, message });
  };
  // The branches of a union each complain; the union's own error stands for them when nothing more is known.
  const specific = errors.filter((error) => error.keyword !== 'anyOf' && !isNullBranch(error, errors));
  for (const error of specific.length > 0 ? specific : errors) {
    const { keyword, params, instancePath: path, message } = error;
    if (keyword === 'additionalProperties') {
      for (const name of (params.additionalProperties as readonly string[]).slice(0, MAX_PROBLEMS)) {
        add(`${path}/${escapePointer(name)}`, `unknown key "${name}"`);
      }
    } else if (keyword === 'required') {
      for (const name of params.requiredProperties as readonly string[]) {
        add(`${path}/${escapePointer(name)}`, `"${name}" is required`);
      }
    } else if (keyword === 'enum') {
      add(path, `must be one of ${(params.allowedValues as readonly unknown[]).join(', ')}`);
    } else if (keyword !== 'boolean') {
      add(path, message);
    } else if (error.schemaPath.endsWith('/additionalProperties')) {
      // Each unknown key is an error of its own too. Of very many only these fit into the list of errors.
      add(path, `unknown key "${unescapePointer(path.slice(path.lastIndexOf('/') + 1))}"`);
    }
  }
  // What is not valid must never look valid, whatever the library says of it.
  return found.size > 0 ? [...found.values()] : [{ path: '', message: 'is not valid' }];
}

/** `must be null` beside `must be string` only tells that the member is optional. */
function isNullBranch(error: RawError, errors: readonly RawError[]): boolean {
  return (
    error.keyword === 'type' &&
    error.params.type === 'null' &&
    errors.some((other) => other !== error && other.keyword !== 'anyOf' && isAtOrBelow(other, error))
  );
}

const isAtOrBelow = (error: RawError, place: RawError): boolean =>
  error.instancePath === place.instancePath || error.instancePath.startsWith(`${place.instancePath}/`);

const unescapePointer = (token: string): string => token.replaceAll('~1', '/').replaceAll('~0', '~');

/** A member name as a JSON pointer token (RFC 6901). */
export const escapePointer = (name: string): string => name.replaceAll('~', '~0').replaceAll('/', '~1');
