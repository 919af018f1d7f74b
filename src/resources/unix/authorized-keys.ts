/** Public keys that may log in as a user: their lines, the file with them in the user's home, and when sshd trusts it. */
import type { CommandRefusal } from '../command.js';
import { checkTextFile } from '../edits/text-file.js';
import type { Metadata, ObserveRequest, PathFact, Step } from '../host.js';
import { problemOfUnixPath } from './unix-path.js';

export interface AuthorizedKey {
  /** The whole line, with options and comment. */
  readonly line: string;
  /** Type and key, which tell keys apart. */
  readonly id: string;
  /** Comment, or the end of the key, for display. */
  readonly label: string;
}

/** Maximum characters of a line, as in sshd. */
export const MAX_KEY_LINE = 8192;

/** Options, which may quote blanks, then the type, the key and a comment. */
const LINE =
  /^(?:(?:[^\s"]|"(?:[^"\\]|\\.)*")+[ \t]+)?((?:ssh|ecdsa|sk-ssh|sk-ecdsa)-[a-z0-9@.-]+)[ \t]+(AAAA[A-Za-z0-9+/]+={0,2})(?:[ \t]+(.*))?$/;
const CONTROL = /\p{Cc}/u;

/** Parses one line; null for comments, empty lines and everything else that is no key. */
export function parseAuthorizedKey(text: string): AuthorizedKey | null {
  const line = text.trim();
  const [, type, data, comment = ''] = (line.length <= MAX_KEY_LINE && LINE.exec(line)) || [];
  if (type === undefined || data === undefined || line.startsWith('#')) return null;
  return { line, id: `${type} ${data}`, label: comment.trim() || `${type} …${data.slice(-12)}` };
}

/** Returns why a text is no key, or null. */
export function problemOfKey(text: string): string | null {
  if (!CONTROL.test(text) && parseAuthorizedKey(text) !== null) return null;
  return 'must be one line of a public key, such as "ssh-ed25519 AAAA… name"';
}

/** Returns the keys of a text, each once. */
export function keysIn(text: string): readonly AuthorizedKey[] {
  const keys = text.split('\n').flatMap((line) => parseAuthorizedKey(line) ?? []);
  return [...new Map(keys.map((key) => [key.id, key])).values()];
}

/** Returns the text with each key once, in place of the line that has it or at the end. All other lines stay. */
export function withKeys(text: string, keys: readonly AuthorizedKey[]): string {
  const missing = new Map(keys.map((key) => [key.id, key]));
  const wanted = new Map(missing);
  const lines = text.split('\n').flatMap((line) => {
    const id = parseAuthorizedKey(line)?.id ?? '';
    const key = missing.get(id);
    if (!wanted.has(id)) return [line];
    missing.delete(id);
    return key === undefined ? [] : [line.trim() === key.line ? line : key.line];
  });
  const kept = lines.join('\n');
  const end = kept === '' || kept.endsWith('\n') ? '' : '\n';
  return missing.size === 0 ? kept : kept + end + textOf([...missing.values()]);
}

/** Returns the text without a key. */
export const withoutKey = (text: string, { id }: AuthorizedKey): string =>
  text
    .split('\n')
    .filter((line) => parseAuthorizedKey(line)?.id !== id)
    .join('\n');

export const textOf = (keys: readonly AuthorizedKey[]): string => keys.map(({ line }) => `${line}\n`).join('');

/** The home directory of a user, the directory in it, and the file in that. */
export interface KeyPlaces {
  readonly home: string;
  readonly facts: readonly PathFact[];
}

export const keyFile = (home: string): string => `${home}/.ssh/authorized_keys`;

/** Returns what to observe of a home directory, for `KeyPlaces`. */
export const keyRequests = (home: string): readonly ObserveRequest[] =>
  [home, `${home}/.ssh`, keyFile(home)].map((path, at) => ({ path, content: at === 2, entries: false }));

/** Returns why no keys can be in a home directory, or null. */
export const problemOfHome = (name: string, home: string | null): CommandRefusal | null => {
  if (home !== null && problemOfUnixPath(home) === null) return null;
  const message = `the user ${name} has no home directory of its own${home === null ? '' : `, only ${home}`}`;
  return { code: 'parent_missing', message };
};

/** The file as it is: its text, empty without one, or why it must not be used. */
export type KeysRead = { readonly text: string } | CommandRefusal;

interface Owner {
  readonly name: string;
  /** Null for a user that is made first. */
  readonly uid: number | null;
}

/** Reads the file, unless sshd would not trust it, or another user could have written to it. */
export function readKeys({ home, facts }: KeyPlaces, owner: Owner): KeysRead {
  const paths = keyRequests(home).map(({ path }) => path);
  for (const [at, path] of paths.entries()) {
    const fact = facts[at];
    const refusal = fact === undefined ? null : refusalOf(path, fact, at === 2 ? 'file' : 'directory', owner);
    if (refusal !== null) return refusal;
  }
  const [there, , file] = facts;
  if (there?.type === 'absent' && owner.uid !== null) {
    return { code: 'parent_missing', message: `the home directory ${home} of ${owner.name} does not exist` };
  }
  if (file?.type !== 'file') return { text: '' };
  const refusal = checkTextFile(keyFile(home), file);
  return refusal ?? { text: file.content.kind === 'text' ? file.content.text : '' };
}

const OTHERS = 0o022;

function refusalOf(path: string, fact: PathFact, type: 'file' | 'directory', owner: Owner): CommandRefusal | null {
  if (fact.type === 'absent') return null;
  if (fact.type === 'unreadable') return { code: fact.code, message: fact.message };
  if (fact.type !== type) {
    const found = fact.type === 'other' ? fact.what : fact.type;
    return { code: 'wrong_type', message: `${path} is a ${found}, not a ${type}, and sshd's keys are only in one` };
  }
  const problem = distrust(fact, owner);
  if (problem === null) return null;
  return { code: 'unsafe_path', message: `${path} ${problem}, so sshd trusts no keys there and orch adds none` };
}

function distrust({ uid, mode }: Metadata, owner: Owner): string | null {
  if (uid !== 0 && uid !== owner.uid) return `belongs to user ${uid}, not to ${owner.name}`;
  return (mode & OTHERS) === 0 ? null : 'can be written by other users (chmod go-w)';
}

/** Returns the steps that write the file for a user. @param group null for that of the agent's user */
export function keySteps(
  { home, facts }: KeyPlaces,
  owner: string,
  group: string | null,
  content: string,
): readonly Step[] {
  const [, directory, file] = facts;
  const metadata = { owner, group };
  return [
    ...(directory?.type === 'directory'
      ? []
      : [{ do: 'make-directory', path: `${home}/.ssh`, ...metadata, mode: 0o700 } as const]),
    { do: 'write-file', path: keyFile(home), content, ...metadata, mode: file?.type === 'file' ? null : 0o600 },
  ];
}
