/** Runs dnf, which waits for its lock for ever or not at all, with a bound of its own. */
import { type Command, type CommandResult, exitedWith } from '../command.js';
import { commandFailure } from '../command-failure.js';
import type { CommandRefusal } from '../kind.js';

const PATIENCE_SECS = 120;

/**
 * Tries again for the seconds of the first argument while the rest of them ends with 200, dnf's status for a held lock. A
 * script of a package that fails is only a warning to dnf; here it is an error.
 */
const WHEN_FREE = `end=$(($(date +%s) + $1))
shift
while :; do
  said=$("$@" 2>&1 >&3)
  status=$?
  [ "$status" -eq 200 ] && [ "$(date +%s)" -lt "$end" ] || break
  sleep 2
done 3>&1
printf '%s\\n' "$said" >&2
case $said in
  *' scriptlet in rpm package '*) [ "$status" -ne 0 ] || status=1 ;;
esac
exit "$status"`;

const LOCKED_STATUS = 200;

/** Why dnf has failed, as far as its status and its last lines tell. */
export function dnfFailure(result: CommandResult): CommandRefusal {
  if (!exitedWith(result, LOCKED_STATUS)) return commandFailure({ argv: ['dnf'] }, result);
  const [, pid] = /already locked by (\d+)/.exec(result.stderr) ?? [];
  const [, program] = /The application with PID \d+ is: (.+)/.exec(result.stderr) ?? [];
  const holder =
    pid === undefined ? 'another process' : `process ${pid}${program === undefined ? '' : ` (${program})`}`;
  return { code: 'package_manager_locked', message: `${holder} holds dnf's lock, which orch has waited for in vain` };
}

/** dnf with these arguments, and no questions. */
export const dnf = (...args: readonly string[]): Command => ({
  argv: ['sh', '-c', WHEN_FREE, 'dnf', String(PATIENCE_SECS), 'dnf', '-y', '--setopt=exit_on_lock=True', ...args],
  timeoutSecs: 600,
});

/** What dnf is to do; the end of the agent does not take it along. */
export const dnfChange = (verb: 'install' | 'remove'): Command => ({
  ...dnf('--setopt=clean_requirements_on_remove=False', verb),
  timeoutSecs: 3600,
  lifetime: 'outlive',
});

export const isRemovalByDnf = ({ argv }: Command): boolean => argv.includes('remove');
