/** The store in a PostgreSQL database, for the commands that replace it or copy it while no orchestrator uses it. */

import { isFault } from '../../src/kernel/fault.js';
import type { Core } from '../core/core.js';
import { fillPostgres, isSchemaUsed } from '../database/postgres/fill-postgres.js';
import { postgresSchemaVersion } from '../database/postgres/migrate-postgres.js';
import { type HeldPostgres, holdPostgres } from '../database/postgres/open-postgres.js';
import type { RunStatement } from '../database/postgres/postgres-dialect.js';
import type { StoreLocation } from '../database/store-location.js';
import { headOf, requireSameHead } from './copied-chain.js';
import { FACTS, factsOf, type StoreFacts, withRawStore } from './raw-store.js';
import type { Present, RestoreTarget } from './restore-target.js';

export type StoreServer = NonNullable<StoreLocation['server']>;

/** Locks the store on a server. Throws as `holdPostgres` does. */
export const holdServer = (server: StoreServer, core: Pick<Core, 'clock' | 'logger'>): Promise<HeldPostgres> =>
  // A statement on a lost server throws by itself.
  holdPostgres({ ...server, ...core, onFatal: () => undefined });

/** Locks a store on a server that a backup replaces. Throws as `holdPostgres` does. */
export async function openServerTarget(
  server: StoreServer,
  core: Pick<Core, 'clock' | 'logger'>,
): Promise<RestoreTarget> {
  const held = await holdServer(server, core);
  const { store, place } = held;
  return {
    place,
    present: () => store.withReader(readPresent),
    put: async (staged) => {
      const isUsed = await store.withReader(isSchemaUsed);
      const keepAs = isUsed ? keptName(core.clock.now()) : null;
      await withRawStore(staged, (connection) =>
        fillPostgres(held, connection, { keepAs, check: (tx) => requireSameHead(tx, headOf(connection)) }),
      );
      return keepAs;
    },
    close: () => store.close(),
  };
}

/** Returns the name of the schema that keeps a replaced store, such as `orch_replaced_2026_03_01_12_00_00_000`. */
const keptName = (now: number): string =>
  `orch_replaced_${new Date(now)
    .toISOString()
    .replace('Z', '')
    .replaceAll(/[^0-9]/g, '_')}`;

/** Returns the facts of the store; null without one. */
export async function readServerFacts(run: RunStatement): Promise<StoreFacts | null> {
  const schema = await postgresSchemaVersion(run);
  if (schema === 0) return null;
  const all = async (statement: string) => (await run(statement, [])).rows;
  return factsOf(schema, {
    meta: await all(FACTS.meta),
    last: await all(FACTS.last),
    operators: await all(FACTS.operators),
    agents: await all(FACTS.agents),
  });
}

async function readPresent(run: RunStatement): Promise<Present> {
  try {
    return (await readServerFacts(run)) ?? ((await isSchemaUsed(run)) ? 'unreadable' : 'none');
  } catch (error) {
    if (isFault(error)) throw error;
    return 'unreadable';
  }
}
