/** Copies and forwarded connections, beside the programs of OpenSSH through a jump host. */
import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Part } from '../row.js';
import { startFleet } from '../terminal/fleet.js';
import { FIRST_CONNECTION_ROWS, measureFirstConnection } from './first-connection.js';
import { startJump } from './jump.js';
import { KEY_ROWS, measureKeys } from './keys-beside.js';
import { LARGE_ROWS, measureLarge } from './large-file.js';
import type { Place } from './place.js';
import { measureSmall, SMALL_ROWS } from './small-files.js';

export const copy: Part = {
  name: 'copy',
  summary:
    'orch cp and orch ssh-proxy: a large file, small files, keys meanwhile, a first byte; beside scp, rsync, ssh -W',
  run: async ({ missing, measure, shared }) => {
    const place = shared(
      () => startPlace((reason) => missing('ssh -J', reason)),
      async ({ fleet, jump, root }) => {
        await jump?.stop();
        await fleet.stop();
        rmSync(root, { recursive: true, force: true });
      },
    );
    await measure(LARGE_ROWS, async () => measureLarge(await place()));
    await measure(SMALL_ROWS, async () => measureSmall(await place()));
    await measure(KEY_ROWS, async () => measureKeys(await place()));
    await measure(FIRST_CONNECTION_ROWS, async () => measureFirstConnection(await place()));
  },
};

async function startPlace(missing: (reason: string) => void): Promise<Place> {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'orch-bench-copy-')));
  try {
    const settings = { copy: { read: [root], write: [root] }, ssh_proxy: { targets: ['localhost:*'] } };
    const fleet = await startFleet(settings);
    return { root, fleet, jump: await startJump(join(root, 'ssh'), missing) };
  } catch (error) {
    rmSync(root, { recursive: true, force: true });
    throw error;
  }
}
