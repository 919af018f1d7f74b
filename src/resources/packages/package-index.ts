/** When a package manager's index is asked, and when it is refreshed first. */
import type { Command } from '../command.js';
import type { Host } from '../host.js';
import type { CommandRefusal, ReadPurpose } from '../kind.js';
import { type IndexedManager, isUnanswered, type PackageOffer } from './indexed-package.js';
import type { PackageBody } from './package-body.js';

export interface PackageIndex {
  /** Lists the times of the sources, and of what has come into the index within a day, for `readsAsOld`. */
  readonly look: Command;
  /** Null when the index is as new as its sources; else why not. */
  refresh(host: Host): Promise<string | null>;
  /** What is offered under a name of a body. */
  offers(host: Host, names: readonly string[]): Promise<((name: string) => PackageOffer) | CommandRefusal>;
}

export const MINUTES_OF_A_DAY = 1440;

/** What the index says, and how much that is worth. */
export interface IndexAnswer {
  readonly isIndexOld: boolean;
  readonly staleBecause: string | null;
  readonly offer: (name: string) => PackageOffer;
}

/** Refreshes the index, in an apply, when it is older than a day or has no answer for one of the packages. */
export async function askIndex(
  host: Host,
  wants: readonly PackageBody[],
  index: PackageIndex,
  { purpose, matches }: { readonly purpose: ReadPurpose } & Pick<IndexedManager, 'matches'>,
): Promise<IndexAnswer | CommandRefusal> {
  const names = wants.map(({ name }) => name);
  const isIndexOld = readsAsOld((await host.run(index.look)).stdout);
  const mayRefresh = purpose === 'apply';
  const early = mayRefresh && isIndexOld ? await index.refresh(host) : null;
  const offer = await index.offers(host, names);
  if (typeof offer !== 'function') return offer;
  const isAnswered = !wants.some((want) => isUnanswered(want, offer(want.name), { matches }));
  if (!mayRefresh || isIndexOld || isAnswered) return { isIndexOld, staleBecause: early, offer };
  const staleBecause = await index.refresh(host);
  const again = await index.offers(host, names);
  return typeof again === 'function' ? { isIndexOld, staleBecause, offer: again } : again;
}

/** True when nothing has come into the index within a day, or a source has changed since. */
export function readsAsOld(text: string): boolean {
  const newest = (what: string) =>
    text
      .split('\n')
      .reduce((most, line) => (line.startsWith(what) ? Math.max(most, Number(line.split(' ')[1])) : most), 0);
  const index = newest('index');
  return index === 0 || index < newest('source');
}
