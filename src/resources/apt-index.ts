/** How old the index of apt is, and how to refresh it. */
import { type Command, exitedWith } from './command.js';
import { commandFailure } from './command-failure.js';
import type { Host } from './host.js';

/** Where apt's own timer, and the hooks of Ubuntu, leave word of a refresh that has worked. */
const STAMP = '/var/lib/apt/periodic/update-success-stamp';
const MINUTES_OF_A_DAY = 1440;

/** The times of the sources, and of all that has come into the index within a day. */
const LOOK: Command = {
  argv: [
    'find',
    ...['/etc/apt/sources.list', '/etc/apt/sources.list.d', STAMP, '/var/lib/apt/lists'],
    ...['-maxdepth', '1', '-type', 'f', '('],
    ...['-path', '/etc/apt/*', '-printf', 'source %T@\\n'],
    ...['-o', '-not', '-name', 'lock', '-mmin', `-${MINUTES_OF_A_DAY}`, '-printf', 'index %T@\\n'],
    ')',
  ],
};

/** True when nothing has come into the index within a day, or a source has changed since. */
export async function isAptIndexOld(host: Host): Promise<boolean> {
  const { stdout } = await host.run(LOOK);
  const newest = (what: string) =>
    Math.max(0, ...stdout.split('\n').flatMap((line) => (line.startsWith(what) ? [Number(line.split(' ')[1])] : [])));
  const index = newest('index');
  return index === 0 || index < newest('source');
}

/** Keeps the word of the refresh itself, because files in the index carry the times of the repository. */
const REFRESH: Command = {
  argv: [
    ...(['apt-get', 'update', '-q'] as const),
    ...['-o', 'DPkg::Lock::Timeout=120', '-o', `APT::Update::Post-Invoke-Success::=touch ${STAMP}`],
  ],
  env: { DEBIAN_FRONTEND: 'noninteractive' },
  timeoutSecs: 600,
};

/** apt does not wait for another refresh to end. */
const PAUSE_SECS = 5;
const TRIES = 25;
const LOCKED = /Could not get lock|Unable to lock/;

/** Null when the index is as new as its sources; else why not. */
export async function refreshAptIndex(host: Host): Promise<string | null> {
  for (let tries = 1; ; tries += 1) {
    const result = await host.run(REFRESH);
    if (exitedWith(result, 0)) return null;
    if (tries === TRIES || !LOCKED.test(result.stderr)) return commandFailure(REFRESH, result).message;
    await host.run({ argv: ['sleep', String(PAUSE_SECS)] });
  }
}
