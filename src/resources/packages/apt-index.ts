/** The index of apt: how old it is, how to refresh it, and what it offers. */
import { type Command, commandFailure, exitedWith } from '../command.js';
import type { Host } from '../host.js';
import { architectureOf, plainName, unanswered } from './apt-installed.js';
import { MINUTES_OF_A_DAY, NO_OFFER, type PackageIndex, type PackageOffer } from './indexed-package.js';

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

/** What the index of apt offers: one query for all packages. */
export const askPolicy = (names: readonly string[]): Command => ({ argv: ['apt-cache', 'policy', ...new Set(names)] });

const HEADER = /^(\S+):$/;
const CANDIDATE = /^ {2}Candidate: (\S+)$/;
/** Five columns, of which three mark what is installed. */
const VERSION = /^ (?:\*\*\*| {3}) (\S+)/;
/** The priority of a source, and what it is. */
const SOURCE = /^ {6,}-?\d+ (.+)$/;

const INSTALLED_ONLY = '/var/lib/dpkg/status';

/** By the names that apt gives: with the architecture when it is not the machine's. */
export function parsePolicy(text: string): ReadonlyMap<string, PackageOffer> {
  const offers = new Map<string, PackageOffer>();
  for (const block of blocksOf(text)) offers.set(block.name, offerOf(block.lines));
  return offers;
}

interface Block {
  readonly name: string;
  readonly lines: string[];
}

function blocksOf(text: string): readonly Block[] {
  const blocks: Block[] = [];
  for (const line of text.split('\n')) {
    const name = HEADER.exec(line)?.[1];
    if (name !== undefined) blocks.push({ name, lines: [] });
    else blocks.at(-1)?.lines.push(line);
  }
  return blocks;
}

function offerOf(lines: readonly string[]): PackageOffer {
  const versions: string[] = [];
  let candidate = '(none)';
  let version = '';
  for (const line of lines) {
    candidate = CANDIDATE.exec(line)?.[1] ?? candidate;
    version = VERSION.exec(line)?.[1] ?? version;
    const source = SOURCE.exec(line)?.[1];
    if (source !== undefined && source !== INSTALLED_ONLY && !versions.includes(version)) versions.push(version);
  }
  const newest = candidate === '(none)' ? null : candidate;
  if (newest !== null) return { newest, versions };
  const why =
    versions.length > 0
      ? 'is in the index of this machine, and the preferences of apt forbid every version of it'
      : 'is not a package that can be installed, only a name that others provide or refer to; give the name of one that does';
  return { newest, versions, why };
}

/** What is offered under a name. */
export function offeredAs(name: string, offers: ReadonlyMap<string, PackageOffer>, native: string): PackageOffer {
  const architecture = architectureOf(name);
  const exact = offers.get(name);
  if (exact) return exact;
  if (architecture !== null) return (architecture === native ? offers.get(plainName(name)) : undefined) ?? NO_OFFER;
  // Where the machine's own architecture has none, apt takes that of another.
  const foreign = [...offers.keys()].find((key) => plainName(key) === name);
  return (foreign === undefined ? undefined : offers.get(foreign)) ?? NO_OFFER;
}
