/** A backup of the store of an orchestrator that does not run. */
import { join } from 'node:path';
import { publicKeyOfKeyObject } from '../../src/identity/key-object.js';
import { loadKey } from '../../src/identity/private-key.js';
import { Fault } from '../../src/kernel/fault.js';
import { MIGRATIONS } from '../database/migrations/index.js';
import type { BackupReport } from './backup-report.js';
import type { BackupTarget } from './backup-target.js';
import { Backups } from './backups.js';
import { requireStore, STORE_FILE } from './own-directory.js';
import { readFacts, withRawStore } from './raw-store.js';
import { sealCopy } from './seal-copy.js';
import { type StoppedOptions, withStoppedStore } from './stopped-store.js';

/** Throws as `withStoppedStore` and `Backups` do, and `usage` for a store that an older program has made. */
export async function stoppedBackup(options: StoppedOptions, target: BackupTarget): Promise<BackupReport> {
  const { dataDir, clock } = options;
  requireStore(dataDir);
  await requireSameSchema(dataDir);
  const publicKey = publicKeyOfKeyObject(loadKey(join(dataDir, 'identity.key')));
  return withStoppedStore({ ...options, command: 'orch serve backup' }, ({ store, uow }) =>
    new Backups({ dataDir, store, uow, clock, publicKey, seal: sealCopy }).make(target),
  );
}

/** Opening an older store would bring it up to date, which nobody expects of a backup. */
async function requireSameSchema(dataDir: string): Promise<void> {
  const file = join(dataDir, STORE_FILE);
  const schema = await withRawStore(file, (connection) => readFacts(connection)?.schema ?? 0).catch(() => 0);
  const newest = MIGRATIONS.at(-1)?.version ?? 0;
  if (schema === 0 || schema >= newest) return;
  throw new Fault('usage', `${file} was made by an older orch: it has schema ${schema}, and this one makes ${newest}`, {
    hint: 'take the backup with that orch; this one copies the store by itself before it changes it, at its first start',
  });
}
