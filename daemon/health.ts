/** Whether the orchestrator can do its work: for now, whether its disk has room. */
import { statfs } from 'node:fs/promises';
import type { Status } from '../src/contract/status.js';
import { PROTOCOL_VERSION, VERSION } from '../src/kernel/version.js';

/** Less free disk than this is a warning (`security.md` c7), in bytes. */
const ENOUGH_DISK = 1024 ** 3;

export async function healthOf({
  dataDir,
  publicKey,
}: {
  readonly dataDir: string;
  readonly publicKey: string;
}): Promise<Status> {
  const { bavail, bsize } = await statfs(dataDir);
  const status = bavail * bsize < ENOUGH_DISK ? 'degraded' : 'ok';
  return { status, protocol_version: PROTOCOL_VERSION, public_key: publicKey, version: VERSION };
}
