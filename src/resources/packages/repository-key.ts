/** The key that signs a repository of packages: the fields that give it, and the file that it goes to. */
import * as Type from 'typebox';
import { optional } from '../../kernel/schema.js';
import { problemOfUrl } from '../file-content.js';
import type { BodyProblem } from '../kind.js';
import { problemOfUnixPath } from '../unix/unix-path.js';

/** Maximum characters of a key; those of distributions have a tenth of it. */
const MAX_KEY = 262_144;

export const keyFields = {
  key: optional(
    Type.String({ minLength: 1, maxLength: MAX_KEY, description: 'The public key that signs it, as armoured text' }),
  ),
  key_url: optional(
    Type.String({ minLength: 1, maxLength: 2048, description: 'Address that the machine downloads the key from' }),
  ),
  key_sha256: optional(
    Type.String({ pattern: '^[0-9a-f]{64}$', description: 'The SHA-256 of the file at `key_url`, in 64 hex digits' }),
  ),
  key_file: optional(
    Type.String({
      minLength: 1,
      description: 'Path of a key that is on the machine, such as one of a package or of a file-unix',
    }),
  ),
  trusted: optional(Type.Boolean({ description: 'True: its packages are installed without any signature' })),
};

export interface KeyBody {
  readonly key?: string | null;
  readonly key_url?: string | null;
  readonly key_sha256?: string | null;
  readonly key_file?: string | null;
  readonly trusted?: boolean | null;
}

/** Returns why the fields do not name one key, or say in the open that there is none. */
export function checkKey(body: KeyBody): readonly BodyProblem[] {
  const problems: BodyProblem[] = [];
  const add = (path: string, message: string | null) => {
    if (message !== null) problems.push({ path, message });
  };
  const [first, second] = (['key', 'key_url', 'key_file'] as const).filter((name) => body[name] != null);
  if (second !== undefined) add(`/${second}`, `${first} and ${second} exclude each other`);
  if (first === undefined && body.trusted !== true) {
    add('', 'a repository needs "key", "key_url" with "key_sha256", or "key_file"; without a key, write trusted: true');
  }
  if (first !== undefined && body.trusted === true) {
    add('/trusted', `trusted: true takes packages without a signature, so ${first} would have no effect`);
  }
  if (body.key != null) add('/key', problemOfArmour(body.key));
  if (body.key_url != null) {
    add('/key_url', problemOfUrl(body.key_url, 'key_url'));
    if (body.key_sha256 == null) {
      add('/key_url', 'key_url needs key_sha256, the SHA-256 of the key, as sha256sum prints it');
    }
  } else if (body.key_sha256 != null) add('/key_sha256', 'key_sha256 belongs to key_url, the address of the key');
  if (body.key_file != null) add('/key_file', problemOfKeyFile(body.key_file));
  return problems;
}

function problemOfKeyFile(path: string): string | null {
  const problem = problemOfUnixPath(path);
  if (problem !== null) return `key_file ${problem}`;
  return /^[!-+\--~]+$/.test(path) ? null : 'key_file must hold no blanks, commas or special characters';
}

const ARMOURED = /^-----BEGIN PGP PUBLIC KEY BLOCK-----\n[\n\x20-\x7e]*\n-----END PGP PUBLIC KEY BLOCK-----\n$/;

function problemOfArmour(key: string): string | null {
  if (key.includes('PRIVATE KEY BLOCK')) return 'key is a private key, which belongs to its owner alone';
  if (ARMOURED.test(keyText(key))) return null;
  return 'key must be a whole armoured key, from "-----BEGIN PGP PUBLIC KEY BLOCK-----" to its END line';
}

/** Returns the content of the file of a key that is given as text. */
const keyText = (key: string): string => `${key.replaceAll('\r\n', '\n').trim()}\n`;

/** Returns the content of a file-unix for the key that a body gives; null for a key that is there by other means, or none. */
export function keyContent({ key, key_url, key_sha256 }: KeyBody) {
  if (key != null) return { content: keyText(key) };
  return key_url == null ? null : { url: key_url, sha256: key_sha256 ?? '' };
}
