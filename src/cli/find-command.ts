/** Finds the command that a command line names, without loading it. */
import { COMMANDS, type CommandEntry, GROUPS, type Group } from './commands/index.js';
import { globalOptionLength } from './global-options.js';

export type Found =
  | {
      readonly kind: 'command';
      readonly entry: CommandEntry;
      readonly rest: readonly string[];
      /** The group whose bare name stands for the command; null if the command was named or a word follows. */
      readonly group: string | null;
    }
  | {
      readonly kind: 'group';
      readonly path: string;
      /** The word that is not a command of the group. */
      readonly stray: string | null;
      /** The unknown option that stands where a command of the group is expected. */
      readonly unknown: string | null;
      readonly rest: readonly string[];
    };

/**
 * Global options may stand anywhere, other options and arguments only after the command's words. `rest` is the line
 * without the command's words.
 */
export function findCommand(argv: readonly string[]): Found {
  const rest: string[] = [];
  let path = '';
  let index = 0;
  while (index < argv.length) {
    const word = argv[index] ?? '';
    const length = globalOptionLength(word);
    if (length > 0) rest.push(...argv.slice(index, index + length));
    else if (!word.startsWith('-') && isPath(join(path, word))) path = join(path, word);
    else break;
    index += Math.max(length, 1);
  }
  const next = argv[index];
  rest.push(...argv.slice(index));
  const stray = next === undefined || next.startsWith('-') ? null : next;
  const named = entryOf(path);
  const entry = named ?? impliedBy(path, stray);
  if (entry === undefined) {
    const unknown = next === undefined || next === '--' || stray !== null ? null : next;
    return { kind: 'group', path, stray, unknown, rest };
  }
  return { kind: 'command', entry, rest, group: named === undefined && stray === null ? path : null };
}

const join = (path: string, word: string): string => (path === '' ? word : `${path} ${word}`);

export const entryOf = (path: string): CommandEntry | undefined => COMMANDS.find((entry) => entry.path === path);

export const groupOf = (path: string): Group | undefined => GROUPS.find((group) => group.path === path);

/** Returns the default command of a group, for its bare name or before a word that is none of its commands. */
function impliedBy(path: string, stray: string | null): CommandEntry | undefined {
  const group = groupOf(path);
  const word = stray === null ? group?.standard : group?.fallback;
  return word === undefined ? undefined : entryOf(join(path, word));
}

const isPath = (path: string): boolean => entryOf(path) !== undefined || groupOf(path) !== undefined;

/** Returns the words that may follow a path, in index order, without hidden commands. */
export function wordsBelow(path: string): readonly string[] {
  const depth = path === '' ? 0 : path.split(' ').length;
  const prefix = path === '' ? '' : `${path} `;
  const listed = COMMANDS.filter(({ hidden }) => !hidden);
  const all = [...listed, ...GROUPS].map((entry) => entry.path).filter((below) => below.startsWith(prefix));
  const words = all.map((below) => below.split(' ')[depth]).filter((word) => word !== undefined);
  return [...new Set(words)];
}
