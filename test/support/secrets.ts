/** Secrets over a store in a file, with a clock that the test moves. */

import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import type { RecordedEvent } from '../../daemon/core/audit-log.js';
import type { RequestContext } from '../../daemon/core/domain-event.js';
import { ALL_RIGHTS } from '../../daemon/core/rights.js';
import { TransactionalWriter } from '../../daemon/core/unit-of-work.js';
import type { OpenDatabase } from '../../daemon/database/database.js';
import type { Keyring } from '../../daemon/secrets/keyring.js';
import { openKeyring } from '../../daemon/secrets/open-keyring.js';
import { createSecrets, type Secrets } from '../../daemon/secrets/secrets.js';
import { ManualClock, newIds, openStore, recordingLogger, temporaryDirectory } from './database.js';
import { StoreLab } from './store-lab.js';

export const ADA: RequestContext = {
  rights: ALL_RIGHTS,
  actor: { id: 'ada'.padEnd(32, '0'), name: 'ada', type: 'operator' },
  requestId: 'request-1',
  address: '192.0.2.7',
};

export interface SecretBench extends Secrets {
  readonly db: OpenDatabase['db'];
  readonly clock: ManualClock;
  readonly keyring: Keyring;
  readonly events: RecordedEvent[];
  readonly logger: ReturnType<typeof recordingLogger>;
  readonly directory: string;
  /** Everything that the store holds, as text. */
  bytes(): string;
  close(): Promise<void>;
}

export interface SecretBenchOptions {
  /** Where an earlier one has left its files. */
  readonly directory?: string;
}

export async function openSecrets({ directory = temporaryDirectory() }: SecretBenchOptions = {}): Promise<SecretBench> {
  const clock = new ManualClock();
  const logger = recordingLogger();
  const events: RecordedEvent[] = [];
  const newId = newIds(clock);
  const { db, close } = await openStore({ file: join(directory, 'orch.db') });
  const file = join(directory, 'secrets.key');
  const keyring = await openKeyring({ file, db, randomBytes, logger });
  const uow = new TransactionalWriter({ db, clock, newId, publish: (event) => events.push(event) });
  const secrets = createSecrets({ db, uow, clock, ageTime: () => clock.now(), newId, logger }, { keyring });
  const bytes = () => new StoreLab(join(directory, 'orch.db')).bytes();
  return { ...secrets, db, clock, keyring, events, logger, directory, bytes, close };
}

/** The forms in which a value may slip through. */
export const formsOf = (value: string): readonly string[] => [
  value,
  JSON.stringify(value).slice(1, -1),
  Buffer.from(value).toString('base64').replace(/=+$/, ''),
  Buffer.from(value).toString('hex'),
  encodeURIComponent(value),
];
