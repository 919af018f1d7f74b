/** Starts programs in a booted host. */
import { inCgroup } from './cgroup.js';
import { type Command, signal, start } from './command.js';
import type { Machine } from './machine.js';
import { childrenOf, isShuttingDown, isStopped } from './processes.js';

/** The program is nsenter's only child, and ends at the latest with the host's first process. */
export function enter({ initPid, cgroup }: Machine, argv: readonly string[], env: NodeJS.ProcessEnv): Command {
  const nsenter = ['nsenter', '--target', String(initPid), '--all', '--', ...argv];
  const command = start(inCgroup(`${cgroup}/entered`, nsenter), env);
  const { child } = command;
  const { pid = 0 } = child;
  // nsenter stops itself with its child, and has to be resumed when the child goes on or is dead.
  const timer = setInterval(() => {
    if (isStopped(pid) && !childrenOf(pid).some(isStopped)) child.kill('SIGCONT');
  }, 50);
  child.once('error', () => clearInterval(timer));
  child.once('exit', () => {
    clearInterval(timer);
    // The host's first process, not being the parent, would look for the end only every ten seconds.
    if (isShuttingDown(initPid)) signal(initPid, 'SIGCHLD');
  });
  return command;
}
