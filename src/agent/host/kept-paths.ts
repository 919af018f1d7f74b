/** Keeps what is at paths while files are checked in their places, and puts it back. */
import type { KeptPaths } from '../../resources/host.js';
import { PathRestorer } from '../snapshot/path-restorer.js';
import { PathSaver } from '../snapshot/path-saver.js';
import type { HeldPrograms } from './held-programs.js';
import type { Reach } from './safe-walk.js';
import type { ScriptDirectories } from './script-directory.js';

interface KeepTools {
  readonly dataDir: string | undefined;
  readonly reach: Reach;
  /** Gives the directory of the copies, which a later process removes after a crash. */
  readonly workplaces: ScriptDirectories;
  readonly held: HeldPrograms | undefined;
}

/** Rejects with the Fault that says why what is there cannot be kept. */
export async function keepPaths(
  paths: readonly string[],
  { reach, workplaces, held, ...more }: KeepTools,
): Promise<KeptPaths> {
  const workplace = workplaces.open();
  const directory = workplace.path;
  const dataDir = more.dataDir ?? directory;
  try {
    const saver = new PathSaver({ dataDir, directory, reach });
    saver.requireRoom(paths);
    const saved = await saver.save(paths);
    const kept = new Map(paths.map((path, at) => [path, saved[at] ?? 'it was not kept']));
    const restorer = new PathRestorer({ dataDir, directory, held });
    return {
      restore: async (path) => {
        const one = kept.get(path) ?? 'it was not kept';
        return typeof one === 'string' ? one : restorer.restore(one);
      },
      drop: () => workplace.remove(),
    };
  } catch (error) {
    workplace.remove();
    throw error;
  }
}
