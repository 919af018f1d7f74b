/** Commits numbered changes with an event each, eight at a time, and prints a number once its commit is acknowledged. */
import { writeSync } from 'node:fs';
import { monotonicFactory } from 'ulid';
import { TransactionalWriter } from '../../../dist/daemon/core/unit-of-work.js';
import { openDatabase } from '../../../dist/daemon/database/database.js';
import { setMeta } from '../../../dist/daemon/database/meta.js';
import { silentLogger } from '../../../dist/src/kernel/logger.js';

const [, , file, from] = process.argv;
const clock = { now: () => Date.now(), monotonic: () => performance.now() };
const { db } = await openDatabase({ server: null, file, clock, logger: silentLogger, onFatal: () => process.exit(70) });
const newId = monotonicFactory();
const writer = new TransactionalWriter({ db, clock, newId: () => newId(), publish: () => undefined });
const party = { id: 'system', name: 'orchestrator', type: 'system' };

async function commit(number) {
  await writer.write(async (tx, emit) => {
    await setMeta(tx, `n-${number}`, 'x'.repeat(number % 3000));
    emit({
      type: 'orchestrator.started',
      actor: party,
      target: party,
      summary: `change ${number}`,
      metadata: { number },
    });
  });
  writeSync(1, `${number}\n`);
}

for (let next = Number(from); ; next += 8) {
  await Promise.all(Array.from({ length: 8 }, (_, index) => commit(next + index)));
}
