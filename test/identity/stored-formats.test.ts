/** Keys, the pinned key of an agent, and the lock of a data directory, as releases have left them. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { holdDataDirectory, holderOf } from '../../src/identity/data-directory.js';
import { publicKeyOfKeyObject } from '../../src/identity/key-object.js';
import { readPin, writePin } from '../../src/identity/pin.js';
import { loadKey, loadOrCreateKey, writeNewKey } from '../../src/identity/private-key.js';
import type { PublicKeyHex } from '../../src/kernel/ids.js';
import { fixedKey } from '../support/identity.js';
import { describeReleased } from '../support/released.js';

const KEY = '3b6a27bcceb6a42d62a3a8d02a6f0d73653215771de243a63ac048a18b59da29' as PublicKeyHex;
const PASSPHRASE = 'correct horse';
/** An operator's key as `orch operator init` writes it with a passphrase; its salt differs each time. */
const ENCRYPTED = [
  '-----BEGIN ENCRYPTED PRIVATE KEY-----',
  'MIGbMFcGCSqGSIb3DQEFDTBKMCkGCSsGAQQB2kcECzAcBBAUU0V0yTSUpv0F8jkW',
  'CwgcAgJAAAIBCAIBBTAdBglghkgBZQMEASoEEFVCqGb5vmhTZ/bTduWXdNQEQLI0',
  'YWCn9yDNjxyn1aa647a/wD0I67pVuH8N4M0onBitcnDOeXrSBPeMb5nqVhHIgyEN',
  'skS2mEmE8TVnbDaV2TM=',
  '-----END ENCRYPTED PRIVATE KEY-----',
  '',
].join('\n');

/** Members of a lock that differ at each start, and what stands for them in the released file. */
const HOLDER = { pid: '"pid":4000001', start: '"start":"the start of that process"' };

function writeLock(directory: string): void {
  const held = holdDataDirectory(directory, 'orch agent');
  const text = readFileSync(join(directory, 'lock'), 'utf8');
  held.release();
  const sample = text.replace(/"pid":\d+/, HOLDER.pid).replace(/"start":"[^"]+"/, HOLDER.start);
  writeFileSync(join(directory, 'lock'), sample, { mode: 0o600 });
}

/** The holder that an earlier release wrote into the lock, while its process runs. */
function readLock(directory: string): unknown {
  const file = join(directory, 'lock');
  const sample = readFileSync(file, 'utf8');
  const [boot, stat] = ['/proc/sys/kernel/random/boot_id', `/proc/${process.pid}/stat`].map((path) =>
    readFileSync(path, 'utf8').trim(),
  );
  const started = stat?.slice(stat.lastIndexOf(')') + 2).split(' ')[19];
  const ours = sample.replace(HOLDER.pid, `"pid":${process.pid}`);
  writeFileSync(file, ours.replace(HOLDER.start, `"start":"${boot}/${started}"`));
  const holder = holderOf(directory);
  writeFileSync(file, ours);
  return { isHeld: holder?.pid === process.pid, program: holder?.program, ofAnotherStart: holderOf(directory) };
}

describeReleased(import.meta.url, [
  {
    name: 'pin',
    revision: 1,
    version: null,
    write: (directory) => writePin(join(directory, 'orchestrator.pub'), KEY),
    read: (directory) => ({ pinned: readPin(join(directory, 'orchestrator.pub')) }),
  },
  {
    name: 'private-keys',
    revision: 1,
    version: null,
    write: (directory) => {
      writeNewKey(join(directory, 'identity.key'), fixedKey());
      writeFileSync(join(directory, 'operator.key'), ENCRYPTED, { mode: 0o600 });
    },
    read: (directory) => ({
      identity: publicKeyOfKeyObject(loadOrCreateKey(join(directory, 'identity.key'))),
      operator: publicKeyOfKeyObject(loadKey(join(directory, 'operator.key'), { passphrase: PASSPHRASE })),
    }),
  },
  { name: 'lock', revision: 1, version: null, write: writeLock, read: readLock },
]);
