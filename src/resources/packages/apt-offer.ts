/** What the index of apt offers: one query for all packages. */

import type { Command } from '../command.js';
import { architectureOf, plainName } from './apt-installed.js';
import type { PackageOffer } from './indexed-package.js';

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

const NOTHING: PackageOffer = { newest: null, versions: [] };

/** What is offered under a name. */
export function offeredAs(name: string, offers: ReadonlyMap<string, PackageOffer>, native: string): PackageOffer {
  const architecture = architectureOf(name);
  const exact = offers.get(name);
  if (exact) return exact;
  if (architecture !== null) return (architecture === native ? offers.get(plainName(name)) : undefined) ?? NOTHING;
  // Where the machine's own architecture has none, apt takes that of another.
  const foreign = [...offers.keys()].find((key) => plainName(key) === name);
  return (foreign === undefined ? undefined : offers.get(foreign)) ?? NOTHING;
}
