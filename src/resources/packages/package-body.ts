/** The body of packages of all managers, and names that no manager mistakes for options. */
import * as Type from 'typebox';
import { closed, optional } from '../../kernel/schema.js';
import type { BodyProblem } from '../kind.js';

export const PackageBodySchema = closed({
  name: Type.String({ minLength: 1, maxLength: 256, description: 'Name of the package as its manager knows it' }),
  version: optional(
    Type.String({
      minLength: 1,
      maxLength: 256,
      description:
        'Exactly this version; installed: any version; latest, null or left out: the newest that the index of the machine offers',
    }),
  ),
});

export type PackageBody = Type.Static<typeof PackageBodySchema>;

/** Value of `version` with which any version will do. */
const ANY = 'installed';

/** Returns the wanted version; null for the newest, or for any. */
export const wantedVersion = ({ version }: PackageBody): string | null =>
  version == null || version === 'latest' || version === ANY ? null : version;

/** True when any version will do that is installed; without one, the newest is. */
export const takesAnyVersion = ({ version }: PackageBody): boolean => version === ANY;

/** Returns the body that fulfils both declarations of a package; null if none does. */
export function agreedPackage(one: PackageBody, other: PackageBody): PackageBody | null {
  if (takesAnyVersion(one)) return other;
  return takesAnyVersion(other) ? one : null;
}

/**
 * Refuses texts that could become an option or two arguments of a command. `name` and `version` are the forms that a manager
 * accepts.
 */
export function checkPackage(body: PackageBody, name: PackageText, version: PackageText): readonly BodyProblem[] {
  const problems: BodyProblem[] = [];
  if (!name.pattern.test(body.name)) problems.push({ path: '/name', message: `name ${name.described}` });
  if (body.version != null && !version.pattern.test(body.version)) {
    problems.push({ path: '/version', message: `version ${version.described}` });
  }
  return problems;
}

/** A form of text, and its description after the name of the member. */
export interface PackageText {
  readonly pattern: RegExp;
  readonly described: string;
}

/** One word that is no option, for managers without a documented alphabet. */
export const ONE_WORD: PackageText = {
  pattern: /^[^\s\p{Cc}\p{Surrogate}-][^\s\p{Cc}\p{Surrogate}]*$/u,
  described: 'must be one word without blanks or control characters that does not begin with "-"',
};
