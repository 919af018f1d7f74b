/** Saves what an archive replaces or removes in its directory, and the record of what was unpacked there before. */
import { isFault } from '../../kernel/fault.js';
import { archiveOf } from '../../resources/archive-unix.js';
import type { ChangedPaths, Host } from '../../resources/host.js';
import type { Keeper, SaveTools } from './keeper.js';
import type { SavedPath } from './saved-path.js';

interface SavedArchive {
  /** The directory, each directory in it before its entries, and the record. */
  readonly paths: readonly SavedPath[];
}

export const archiveKeeper: Keeper<SavedArchive> = {
  async save(bodies, tools) {
    const saved: (SavedArchive | string)[] = [];
    for (const body of bodies) saved.push(await saveOne(body, tools));
    return saved;
  },

  async restore({ paths }, phase, tools) {
    if (phase !== 'state') return null;
    // What was not there goes from the inside outwards, and what was there comes back from the outside inwards.
    const gone = paths.filter(({ type }) => type === 'absent').toReversed();
    const there = paths.filter(({ type }) => type !== 'absent');
    const reasons: string[] = [];
    for (const one of [...gone, ...there]) {
      const reason = await tools.paths.restore(one);
      if (reason !== null) reasons.push(`${one.path}: ${reason}`);
    }
    const [first = null] = reasons;
    return reasons.length < 2 ? first : `${first}, and ${reasons.length - 1} more`;
  },
};

async function saveOne(body: object, { host, paths }: SaveTools): Promise<SavedArchive | string> {
  const changed = await changedBy(host, body);
  if (changed === null) return 'this platform unpacks no archives';
  const all = [changed.record, ...changed.paths];
  paths.requireRoom(all);
  const saved = await paths.save(all);
  const lost = saved.find((one) => typeof one === 'string');
  return lost ?? { paths: saved.filter((one) => typeof one !== 'string') };
}

/** Without the archive, nothing of it is unpacked, and only what was unpacked before can go. */
async function changedBy(host: Host, body: object): Promise<ChangedPaths | null> {
  const { path, ...archive } = archiveOf(body);
  try {
    return (
      (await host.unpackedPaths?.(path, archive.content === null ? null : { ...archive, content: archive.content })) ??
      null
    );
  } catch (error) {
    if (!isFault(error)) throw error;
    return (await host.unpackedPaths?.(path, null)) ?? null;
  }
}
