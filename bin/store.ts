/** `orch serve backup`, `restore` and `recover-admin`, and `orch store copy`: commands on the store of an orchestrator. */
import { createReadStream, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { monotonicFactory } from 'ulid';
import type { BackupReport } from '../daemon/backup/backup-target.js';
import type { Deliver } from '../daemon/backup/backups.js';
import { CallerFile } from '../daemon/backup/caller-file.js';
import { copyStore } from '../daemon/backup/copy-store.js';
import { restoreStore } from '../daemon/backup/restore-store.js';
import {
  isStoppedCommand,
  recoverAdmin as runRecovery,
  type StoppedOptions,
  stoppedBackup,
} from '../daemon/backup/stopped-store.js';
import { storeLocationOf } from '../daemon/database/store-location.js';
import { receiveBackup } from '../daemon/streamed-backup.js';
import { asCaller, asOwner, type Owner } from '../src/identity/as-owner.js';
import { holderOf } from '../src/identity/data-directory.js';
import { silentLogger } from '../src/kernel/logger.js';
import type { ServeFlags } from '../src/programs/serve.js';
import type {
  BackupRequest,
  CopiedStore,
  CopyRequest,
  RecoveredAdmin,
  RecoverRequest,
  Restored,
  RestoreRequest,
} from '../src/programs/store.js';
import { serviceOwner } from '../src/service/installed-serve.js';
import { serveSettingsOf } from './serve-requests.js';
import { systemClock } from './this-process.js';

/**
 * Makes a backup. A running orchestrator sends it to this process, so that neither the sandbox nor the user of its
 * service matters for the place of the file. For a stopped one this process makes the copy, as the owner of the store.
 * Throws `data_dir_locked` while another command holds the data directory.
 */
export async function backup({ flags, file, force }: BackupRequest): Promise<BackupReport> {
  const stopped = stoppedOf(flags);
  const { dataDir } = stopped;
  const target = { file, force };
  const holder = holderOf(dataDir);
  const owner = serviceOwner(dataDir);
  const isStopped = holder === null || isStoppedCommand(holder.program);
  if (isStopped && owner === null) return stoppedBackup(stopped, target);
  const writer = writerOf(file, owner);
  const own = await asOwner(writer, () => new CallerFile(target, dataDir));
  try {
    if (!isStopped) return await asOwner(writer, () => receiveBackup(dataDir, file, own));
    const deliver: Deliver = (copy, sealed) =>
      asCaller(owner, () => asOwner(writer, () => own.take(createReadStream(copy), sealed)));
    const report = await asOwner(owner, () => stoppedBackup(stopped, target, deliver));
    await asOwner(writer, () => own.putInPlace());
    return report;
  } finally {
    await asOwner(writer, () => own.discard());
  }
}

/** Returns the user that writes the file: the service's own user in its directories, and the caller elsewhere. */
function writerOf(file: string, owner: Owner | null): Owner | null {
  const directory = statSync(dirname(file), { throwIfNoEntry: false });
  return owner !== null && directory?.uid === owner.uid ? owner : null;
}

export const restore = ({ flags, file, newIdentity, confirm }: RestoreRequest): Promise<Restored> => {
  const stopped = stoppedOf(flags);
  const owner = serviceOwner(stopped.dataDir);
  const read = <T>(work: () => T) => asCaller(owner, work);
  return asOwner(owner, () => restoreStore({ ...stopped, file, newIdentity, confirm, asCaller: read }));
};

export const recoverAdmin = ({ flags, publicKey, username, confirm }: RecoverRequest): Promise<RecoveredAdmin> => {
  const stopped = stoppedOf(flags);
  const wanted = { publicKey, username: username ?? null };
  return asOwner(serviceOwner(stopped.dataDir), () => runRecovery({ ...stopped, wanted, confirm }));
};

export const copy = (request: CopyRequest): Promise<CopiedStore> => {
  process.umask(0o077);
  return copyStore({
    ...request,
    env: process.env,
    clock: systemClock,
    newId: monotonicFactory(),
    logger: silentLogger,
  });
};

function stoppedOf(flags: ServeFlags): StoppedOptions {
  process.umask(0o077);
  const settings = serveSettingsOf(flags);
  const dataDir = resolve(settings.data_dir);
  const location = storeLocationOf({ ...settings, data_dir: dataDir }, process.env);
  return { dataDir, location, clock: systemClock, newId: monotonicFactory(), logger: silentLogger };
}
