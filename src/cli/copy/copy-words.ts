/** The words of `orch cp`: what is copied, from where, and to where. */
import { posix } from 'node:path';
import { Fault } from '../../kernel/fault.js';

/** A path of machines: `NODE:PATH`, or `:PATH` of the machines of a selector (`node` is empty). */
export interface RemoteWord {
  readonly node: string;
  readonly path: string;
}

export type CopyPlan =
  | { readonly direction: 'write'; readonly sources: readonly string[]; readonly target: RemoteWord }
  | { readonly direction: 'read'; readonly sources: readonly RemoteWord[]; readonly target: string };

/** Maximum paths that one session copies from a machine. */
const MOST_PATHS = 32;
/** A slash before the colon makes a word a local path, as for scp. */
const REMOTE = /^([^/:]*):(.*)$/s;
/** On Windows a drive, elsewhere never: an agent may have a name of one letter. */
const DRIVE = /^[A-Za-z]:(?:[\\/]|$)/;

/** Parses the words, of which the last one is the target. Throws `usage`. */
export function planOf(words: readonly string[], hasSelector: boolean): CopyPlan {
  const parsed = words.map(parseWord);
  const target = parsed.at(-1);
  const sources = parsed.slice(0, -1);
  if (target === undefined || sources.length === 0) {
    throw new Fault('usage', 'orch cp needs something to copy and a target', { hint: 'orch cp FILE NODE:PATH' });
  }
  const locals = sources.flatMap((word) => (typeof word === 'string' ? [word] : []));
  const remotes = sources.flatMap((word) => (typeof word === 'string' ? [] : [word]));
  if (locals.length > 0 && remotes.length > 0) {
    throw new Fault('usage', 'the sources are on this machine and on others: copy them one after the other');
  }
  for (const word of [...remotes, target]) if (typeof word !== 'string') checkRemote(word, hasSelector);
  if (remotes.length === 0) {
    if (typeof target === 'string') {
      throw new Fault('usage', 'neither the sources nor the target are on another machine', {
        hint: 'a path of a machine is NODE:PATH, such as web-01:/srv/site',
      });
    }
    return { direction: 'write', sources: locals, target };
  }
  if (typeof target !== 'string') {
    throw new Fault('usage', 'orch cp does not copy from machine to machine', {
      hint: 'copy to this machine first, and from here to the other',
    });
  }
  const paths = new Map<string, number>();
  for (const { node } of remotes) paths.set(node, (paths.get(node) ?? 0) + 1);
  if (Math.max(...paths.values()) > MOST_PATHS) {
    throw new Fault('usage', `more than ${MOST_PATHS} paths of one machine`, {
      hint: 'copy their directory with --recursive, or in several calls',
    });
  }
  return { direction: 'read', sources: remotes, target };
}

function parseWord(word: string): string | RemoteWord {
  if (process.platform === 'win32' && DRIVE.test(word)) return word;
  const [, node, path] = REMOTE.exec(word) ?? [];
  return node === undefined || path === undefined ? word : { node, path };
}

function checkRemote({ node, path }: RemoteWord, hasSelector: boolean): void {
  if (hasSelector && node !== '') {
    throw new Fault('usage', `with --selector a path has no name before it: :${path}`);
  }
  if (!hasSelector && node === '') {
    throw new Fault('usage', `":${path}" names no machine`, {
      hint: 'put its name before it, or choose machines with --selector; a file of that name is ./:NAME',
    });
  }
  if (!posix.isAbsolute(path)) {
    throw new Fault('usage', `"${node}:${path}" needs an absolute path on the machine`, {
      hint: `${node}:/${path}; a local file with a colon in its name is ./${node}:${path}`,
    });
  }
}
