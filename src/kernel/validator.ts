/**
 * Validates values against schemas and reports mistakes in plain words. This is the only module that uses the schema
 * library's compiler, error objects and global settings; `test/kernel/schema-library.test.ts` names the version they fit.
 */
import type { Static, TSchema } from 'typebox';
import { Compile } from 'typebox/compile';
import { Settings } from 'typebox/system';

/** One mistake. `path` is a JSON pointer to the value, or to the unknown or missing member. */
export interface Problem {
  readonly path: string;
  readonly message: string;
}

export interface Validator<T> {
  readonly schema: TSchema;
  check(value: unknown): value is T;
  /** Returns up to `MAX_PROBLEMS` mistakes without duplicates; empty when `check` is true. */
  problems(value: unknown): readonly Problem[];
}

/** The part of a validator that the bundle can contain compiled (`scripts/bundle/evaluated-modules.mjs`). */
export type Check<T> = Pick<Validator<T>, 'check'>;

interface RawError {
  readonly keyword: string;
  readonly schemaPath: string;
  readonly instancePath: string;
  readonly params: Readonly<Record<string, unknown>>;
  readonly message: string;
}

/** Returns a validator that compiles the schema at its first use. */
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

/** Maximum number of mistakes reported for one value. */
export const MAX_PROBLEMS = 256;

/** Raises the library's limit of 8 errors, which is a global setting, for one synchronous call. */
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
  // Each branch of a union reports its own errors. The union's error is used only when no other error remains.
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
      // Each unknown key is also an error of its own; when there are very many, the list holds only these.
      add(path, `unknown key "${unescapePointer(path.slice(path.lastIndexOf('/') + 1))}"`);
    }
  }
  // An invalid value must never look valid, even without an error from the library.
  return found.size > 0 ? [...found.values()] : [{ path: '', message: 'is not valid' }];
}

/** `must be null` beside `must be string` only means that the member is optional. */
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

/** Escapes a member name as a JSON pointer token (RFC 6901). */
export const escapePointer = (name: string): string => name.replaceAll('~', '~0').replaceAll('/', '~1');
