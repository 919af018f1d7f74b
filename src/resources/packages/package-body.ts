/** The body of packages of all managers, and names that no manager mistakes for options. */
import * as Type from 'typebox';
import { closed, optional } from '../../kernel/schema.js';
import type { BodyProblem } from '../kind.js';

const members = {
  name: Type.String({ minLength: 1, maxLength: 256, description: 'Name of the package as its manager knows it' }),
  version: optional(
    Type.String({
      minLength: 1,
      maxLength: 256,
      description:
        'Exactly this version; installed: any version; latest, null or left out: the newest that the index of the machine offers',
    }),
  ),
};

export const PackageBodySchema = closed(members);

/** Of managers that can be ordered to leave a package as it is. */
export const HeldPackageSchema = closed({
  ...members,
  hold: optional(
    Type.Boolean({
      description: 'True: its version stays, and no upgrade changes it; false: it is not held; null: not managed',
    }),
  ),
});

export type PackageBody = Type.Static<typeof PackageBodySchema> & Pick<Type.Static<typeof HeldPackageSchema>, 'hold'>;

/** Value of `version` with which any version will do. */
const ANY = 'installed';

/** Returns the wanted version; null for the newest, or for any. */
export const wantedVersion = ({ version }: PackageBody): string | null =>
  version == null || version === 'latest' || version === ANY ? null : version;

/** True when any version will do that is installed, also for a package that stays as it is; without one, the newest is. */
export const takesAnyVersion = (body: PackageBody): boolean =>
  body.version === ANY || (body.hold === true && wantedVersion(body) === null);

/** Returns the body that fulfils both declarations of a package; null if none does. */
export function agreedPackage(one: PackageBody, other: PackageBody): PackageBody | null {
  const hold = one.hold ?? other.hold;
  if (hold != null && other.hold != null && hold !== other.hold) return null;
  const version = one.version === ANY ? other.version : one.version;
  const isAgreed =
    [one, other].some((body) => body.version === ANY) || (one.version ?? null) === (other.version ?? null);
  if (!isAgreed) return null;
  return { name: one.name, ...(version != null && { version }), ...(hold != null && { hold }) };
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
