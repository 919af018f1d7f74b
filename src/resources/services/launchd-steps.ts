/** What is done to the services of launchd. */
import type { RunStep } from '../host.js';

const run = (...args: readonly string[]): RunStep => ({ do: 'run', command: { argv: ['launchctl', ...args] } });

/** Whether launchd loads it is remembered apart from its property list, and survives that. */
export const enable = (name: string): RunStep => run('enable', `system/${name}`);
export const disable = (name: string): RunStep => run('disable', `system/${name}`);
export const bootstrap = (path: string): RunStep => run('bootstrap', 'system', path);

/** ESRCH: it is not loaded; EINPROGRESS: it is about to go. */
export const bootout = (name: string): RunStep => ({ ...run('bootout', `system/${name}`), ok: [0, 3, 36] });

/** EALREADY: it has been started by its load. */
export const kickstart = (name: string): RunStep => ({ ...run('kickstart', `system/${name}`), ok: [0, 37] });

/** Ends its process and starts it again. */
export const restart = (name: string): RunStep => run('kickstart', '-k', `system/${name}`);

/** `bootout` returns before the service is gone, and until then a `bootstrap` of the same label fails. */
export const waitUntilGone = (name: string): RunStep => ({
  do: 'run',
  command: { argv: ['/bin/sh', '-s', '--', `system/${name}`], input: WAIT },
});

const WAIT = `tries=0
while launchctl print "$1" >/dev/null 2>&1; do
  tries=$((tries + 1))
  if [ "$tries" -gt 60 ]; then
    echo "launchd has not let go of $1 after 60 seconds" >&2
    exit 1
  fi
  sleep 1
done
`;
