/** `orch exec` as the remote shell of rsync: `rsync -e 'orch exec'`. */
import { Fault } from '../../kernel/fault.js';

const RSYNC = /(?:^|[\s/])rsync$/;

/**
 * Returns the words of `orch exec` with the command behind `--`. rsync calls a remote shell as `NODE rsync --server …`, and escapes
 * its arguments for a shell on the machine. All other command lines are returned as they are. Throws `usage` for a user of the machine.
 */
export function asRemoteShell(words: readonly string[]): readonly string[] {
  const at = words.findIndex((word, index) => RSYNC.test(word) && words[index + 1] === '--server');
  if (at < 1 || words.slice(0, at).includes('--')) return words;
  if (words[at - 3] === '-l') {
    throw new Fault('usage', `orch exec does not choose a user, so "${words[at - 2]}@" is not for it`, {
      hint: 'name the agent alone; its setting remote_terminal.user says which user commands run as',
    });
  }
  return [...words.slice(0, at), '--', 'sh', '-c', words.slice(at).join(' ')];
}
