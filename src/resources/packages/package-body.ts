/** The body of packages of all managers, and names that no manager mistakes for options. */
import * as Type from 'typebox';
import { closed, optional } from '../../kernel/schema.js';
import { checkDownload } from '../file-content.js';
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

/** Of managers that install files too, and that can be ordered to leave a package as it is. */
export const IndexedPackageSchema = closed({
  ...members,
  source: optional(
    Type.String({ minLength: 1, description: 'File beside the module that holds the package in this `version`' }),
  ),
  url: optional(
    Type.String({
      minLength: 1,
      maxLength: 2048,
      description: 'Address that the machine downloads the package from, which has this `version`',
    }),
  ),
  sha256: optional(
    Type.String({
      pattern: '^[0-9a-f]{64}$',
      description: 'The SHA-256 of the file at `url`, in 64 hex digits; orch adds that of `source`',
    }),
  ),
  hold: optional(
    Type.Boolean({
      description: 'True: its version stays, and no upgrade changes it; false: it is not held; null: not managed',
    }),
  ),
});

export type PackageBody = Type.Static<typeof IndexedPackageSchema>;

/** Value of `version` with which any version will do. */
const ANY = 'installed';

/** Returns the wanted version; null for the newest, or for any. */
export const wantedVersion = ({ version }: PackageBody): string | null =>
  version == null || version === 'latest' || version === ANY ? null : version;

/** True when any version will do that is installed, also for a package that stays as it is; without one, the newest is. */
export const takesAnyVersion = (body: PackageBody): boolean =>
  body.version === ANY || (body.hold === true && wantedVersion(body) === null);

/** True for a package that comes from a file in place of a repository. */
export const isFromFile = ({ source, url }: PackageBody): boolean => source != null || url != null;

/** Returns the body that fulfils both declarations of a package; null if none does. */
export function agreedPackage(one: PackageBody, other: PackageBody): PackageBody | null {
  const hold = one.hold ?? other.hold;
  if (hold != null && other.hold != null && hold !== other.hold) return null;
  const version = one.version === ANY ? other.version : one.version;
  const isAgreed =
    [one, other].some((body) => body.version === ANY) || (one.version ?? null) === (other.version ?? null);
  const file = agreedFile(one, other);
  if (!isAgreed || file === null) return null;
  return { name: one.name, ...(version != null && { version }), ...file, ...(hold != null && { hold }) };
}

/** Returns the file of both declarations, or of the only one that has one; null if they name different ones. */
function agreedFile(one: PackageBody, other: PackageBody): Pick<PackageBody, 'source' | 'url' | 'sha256'> | null {
  const [first, second] = [one, other].filter(isFromFile);
  // Any version will do of a package from a file, and another declaration may want one that the file does not have.
  const isOther = second === undefined && one.version !== other.version && first?.version === ANY;
  if (isOther || (second !== undefined && second.sha256 !== first?.sha256)) return null;
  const { source, url, sha256 } = first ?? {};
  return { ...(source != null && { source }), ...(url != null && { url }), ...(sha256 != null && { sha256 }) };
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
  return [...problems, ...checkFile(body)];
}

/** Refuses a file without the version that it has, from which a plan tells without the file whether the package has to be installed. */
function checkFile(body: PackageBody): readonly BodyProblem[] {
  const field = body.url != null ? 'url' : 'source';
  const wrong = (path: string, message: string) => [{ path, message }];
  return [
    ...(body.source != null && body.url != null ? wrong('/url', 'source and url exclude each other') : []),
    ...checkDownload(body),
    ...(isFromFile(body) && wantedVersion(body) === null && body.version !== ANY
      ? wrong(`/${field}`, `${field} needs version, the version of the package in the file; version: installed for any`)
      : []),
  ];
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
