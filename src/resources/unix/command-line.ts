/** Commands that modules write as one text and that run without a shell: words, quotes, and `%s` for a file. */

/** Stands for the path of the file that a command checks. */
const FILE = '%s';

/** Returns the words of a command, or why the text is none. */
export function wordsOf(text: string): readonly [string, ...string[]] | string {
  const words: string[] = [];
  let word: string | null = null;
  for (let at = 0; at < text.length; at += 1) {
    const character = text.charAt(at);
    if (/\s/.test(character)) {
      if (word !== null) words.push(word);
      word = null;
      continue;
    }
    word ??= '';
    if (character === "'" || character === '"') {
      const end = text.indexOf(character, at + 1);
      if (end < 0) return `has a ${character} without its end`;
      const quoted = text.slice(at + 1, end);
      if (character === '"' && /[$`\\]/.test(quoted)) return NO_SHELL;
      word += quoted;
      at = end;
    } else if (character === '\\' && at + 1 < text.length) {
      at += 1;
      word += text.charAt(at);
    } else if (/[|&;<>()$`*?\\]/.test(character)) return NO_SHELL;
    else word += character;
  }
  if (word !== null) words.push(word);
  const [program, ...rest] = words;
  if (program === undefined || program === '') return 'names no program';
  if (program.includes(FILE)) return `must begin with the name of a program, not with ${FILE}`;
  if (program.includes('/') && !program.startsWith('/')) return 'needs the name of a program or its absolute path';
  if (/\p{Cc}/u.test(words.join(''))) return 'holds a control character';
  return [program, ...rest];
}

const NO_SHELL = `runs without a shell; put such characters into '…', or write sh -c '…'`;

/** True for a command that checks a copy of one file. */
export const checksCopy = (text: string): boolean => text.includes(FILE);

/** Puts the path of the checked file into the words of a command. */
export const withFile = (argv: readonly [string, ...string[]], path: string): readonly [string, ...string[]] => [
  argv[0],
  ...argv.slice(1).map((word) => word.replaceAll(FILE, () => path)),
];
