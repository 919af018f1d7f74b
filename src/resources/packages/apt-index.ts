/** The index of apt: its age, its refresh, and the offered versions. */
import { type Command, commandFailure, exitedWith } from '../command.js';
import type { Host } from '../host.js';
import { architectureOf, plainName, unanswered } from './apt-installed.js';
import {
  type InstalledAnswer,
  MINUTES_OF_A_DAY,
  NO_OFFER,
  type PackageIndex,
  type PackageOffer,
} from './indexed-package.js';

/** File that apt's timer and Ubuntu's hooks touch after a successful refresh. */
const STAMP = '/var/lib/apt/periodic/update-success-stamp';

const LOOK: Command = {
  argv: [
    'find',
    ...['/etc/apt/sources.list', '/etc/apt/sources.list.d', '/etc/apt/keyrings', STAMP, '/var/lib/apt/lists'],
    ...['-maxdepth', '1', '-type', 'f', '('],
    ...['-path', '/etc/apt/*', '-printf', 'source %T@\\n'],
    ...['-o', '-not', '-name', 'lock', '-mmin', `-${MINUTES_OF_A_DAY}`, '-printf', 'index %T@\\n'],
    ')',
  ],
};

/** Touches that file too, because files in the index have the times of the repository. */
const REFRESH: Command = {
  argv: [
    ...(['apt-get', 'update', '-q'] as const),
    ...['-o', 'DPkg::Lock::Timeout=120', '-o', `APT::Update::Post-Invoke-Success::=touch ${STAMP}`],
  ],
  env: { DEBIAN_FRONTEND: 'noninteractive' },
  timeoutSecs: 600,
};

/** Pause between attempts; apt does not wait for another refresh, so orch retries for two minutes. */
const PAUSE: Command = { argv: ['sleep', '5'] };
const TRIES = 25;
const LOCKED = /Could not get lock|Unable to lock/;
/** Without permission for the lock, apt reports it as held too, but waiting does not help. */
const DENIED = /\(13: Permission denied\)/;

export const aptIndex = ({ native }: Pick<InstalledAnswer, 'native'>): PackageIndex => ({
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

/** Returns the query for all packages. */
const askPolicy = (names: readonly string[]): Command => ({ argv: ['apt-cache', 'policy', ...new Set(names)] });

const HEADER = /^(\S+):$/;
const CANDIDATE = /^ {2}Candidate: (\S+)$/;
/** A version line; three of its five leading columns mark the installed one. */
const VERSION = /^ (?:\*\*\*| {3}) (\S+)/;
/** A source line: priority and name. */
const SOURCE = /^ {6,}-?\d+ (.+)$/;

const INSTALLED_ONLY = '/var/lib/dpkg/status';

/** Returns offers by apt's names, which include a foreign architecture. */
function parsePolicy(text: string): ReadonlyMap<string, PackageOffer> {
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

/** Returns the offer for a name. */
function offeredAs(name: string, offers: ReadonlyMap<string, PackageOffer>, native: string): PackageOffer {
  const architecture = architectureOf(name);
  const exact = offers.get(name);
  if (exact) return exact;
  if (architecture !== null) return (architecture === native ? offers.get(plainName(name)) : undefined) ?? NO_OFFER;
  // Without a package of the machine's architecture, apt takes one of another.
  const foreign = [...offers.keys()].find((key) => plainName(key) === name);
  return (foreign === undefined ? undefined : offers.get(foreign)) ?? NO_OFFER;
}
