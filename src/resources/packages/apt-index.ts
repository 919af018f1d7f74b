/** The index of apt: how old it is, how to refresh it, and what it offers. */

import { type Command, exitedWith } from '../command.js';
import { commandFailure } from '../command-failure.js';
import type { Host } from '../host.js';
import { unanswered } from './apt-installed.js';
import { askPolicy, offeredAs, parsePolicy } from './apt-offer.js';
import { MINUTES_OF_A_DAY, type PackageIndex } from './package-index.js';

/** Where apt's own timer, and the hooks of Ubuntu, leave word of a refresh that has worked. */
const STAMP = '/var/lib/apt/periodic/update-success-stamp';

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

/** Leaves that word itself, because files in the index carry the times of the repository. */
const REFRESH: Command = {
  argv: [
    ...(['apt-get', 'update', '-q'] as const),
    ...['-o', 'DPkg::Lock::Timeout=120', '-o', `APT::Update::Post-Invoke-Success::=touch ${STAMP}`],
  ],
  env: { DEBIAN_FRONTEND: 'noninteractive' },
  timeoutSecs: 600,
};

/** apt does not wait for another refresh to end, so it is tried for two minutes. */
const PAUSE: Command = { argv: ['sleep', '5'] };
const TRIES = 25;
const LOCKED = /Could not get lock|Unable to lock/;
/** Who may not open the lock is told that he cannot have it, too; no waiting helps. */
const DENIED = /\(13: Permission denied\)/;

/** @param native the architecture of the machine */
export const aptIndex = (native: string): PackageIndex => ({
  look: LOOK,
  refresh,
  async offers(host, names) {
    const command = askPolicy(names);
    const result = await host.run(command);
    const refusal = unanswered(command, result, 0);
    if (refusal !== null) return refusal;
    const offers = parsePolicy(result.stdout);
    return (name) => offeredAs(name, offers, native);
  },
});

async function refresh(host: Host): Promise<string | null> {
  for (let tries = 1; ; tries += 1) {
    const result = await host.run(REFRESH);
    if (exitedWith(result, 0)) return null;
    const isLocked = LOCKED.test(result.stderr) && !DENIED.test(result.stderr);
    if (tries === TRIES || !isLocked) return commandFailure(REFRESH, result).message;
    await host.run(PAUSE);
  }
}
