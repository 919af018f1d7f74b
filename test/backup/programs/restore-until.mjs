/**
 * Restores FILE into DIRECTORY and kills itself before the given change of a name or sync of the disk, counted from 0. Prints
 * how many there were when it comes to its end.
 */
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';

const [directory, file, limit] = process.argv.slice(2);
let calls = 0;
for (const name of ['linkSync', 'renameSync', 'rmSync', 'mkdirSync', 'writeFileSync', 'fsyncSync']) {
  const original = fs[name];
  fs[name] = (...args) => {
    if (calls === Number(limit)) process.kill(process.pid, 'SIGKILL');
    calls += 1;
    return original(...args);
  };
}
syncBuiltinESMExports();
const { restoreStore } = await import('../../../dist/daemon/backup/restore-store.js');
const { silentLogger } = await import('../../../dist/src/kernel/logger.js');
const { monotonicFactory } = await import('ulid');
await restoreStore({
  location: { file: `${directory}/orch.db`, server: null },
  dataDir: directory,
  file,
  newIdentity: false,
  confirm: async () => {},
  clock: { now: () => Date.now(), monotonic: () => performance.now() },
  newId: monotonicFactory(),
  logger: silentLogger,
});
console.log(calls);
