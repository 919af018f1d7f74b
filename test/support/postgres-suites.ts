/**
 * The stores that tests run on, and the suites that run on PostgreSQL: in CI those about what is stored, in `npm run test:long` the
 * others that use a store. Some never do, and are named with a reason. The first use of a store in any other suite throws
 * (`store.ts`).
 */
import { noPostgres } from './postgres.js';

/** Name of the project of tests on PostgreSQL. */
export const ON_POSTGRES = 'on PostgreSQL';

const suites = (...names: readonly string[]): readonly string[] =>
  names.map((name) => (name.endsWith('.ts') ? `test/${name}` : `test/${name}/**/*.test.ts`));

/** A way through the whole product. */
const WHOLE = suites('e2e/first-loop.test.ts', 'e2e/lost-updates.test.ts');

/** Suites about what is stored. They and those of the whole product run on both stores in CI. */
const BELOW = suites(
  'api',
  'audit',
  'auth',
  'core',
  'database',
  'engine',
  'fleet',
  'http/idempotency.test.ts',
  'maintenance',
  'metrics',
  'notify',
  'secrets',
);

/** Suites about what stands above the store: commands, terminals, bodies, packages. On PostgreSQL they run in `npm run test:long`. */
const ABOVE = suites(
  'cli/login.test.ts',
  'cli/operator-rotate.test.ts',
  'cli/output.test.ts',
  'cli/top/top-in-pty.test.ts',
  'clients',
  'client/calls.test.ts',
  'client/login.test.ts',
  'client/proxy.test.ts',
  'client/real-login.test.ts',
  'client/ssh-agent.test.ts',
  'client/trust.test.ts',
  'discovery/sending.test.ts',
  'e2e',
  'faults/releases.test.ts',
  'faults/rounds.test.ts',
  'http',
  'packages',
  'terminal/recordings/strays.test.ts',
  'terminal/recordings/transcripts.test.ts',
  'terminal/relay',
);

/** Suites in these directories that use no store, or only that of a command that they quote and that makes one in a file. */
const WITHOUT_STORE = suites(
  'auth/access.test.ts',
  'auth/challenge-store.test.ts',
  'auth/rate-limiter.test.ts',
  'database/json-columns.test.ts',
  'e2e/core.test.ts',
  'e2e/guides.test.ts',
  'e2e/launcher.test.ts',
  'e2e/local.test.ts',
  'e2e/npm-package.test.ts',
  'e2e/output.test.ts',
  'e2e/quickstart-picture.test.ts',
  'e2e/runtime-warnings.test.ts',
  'engine/operation-state.test.ts',
  'engine/parser-pool.test.ts',
  'fleet/agent-listener.test.ts',
  'http/api-page.test.ts',
  'http/bodies.test.ts',
  'http/conventions.test.ts',
  'http/lifetime.test.ts',
  'http/limits.test.ts',
  'http/parse-timestamp.test.ts',
  'http/pieces.test.ts',
  'http/router.test.ts',
  'notify/bodies.test.ts',
  'packages/packages.test.ts',
  'secrets/control.test.ts',
  'secrets/rendering.test.ts',
  'secrets/sealing.test.ts',
  'terminal/relay/bulk-turns.test.ts',
  'terminal/relay/client-output.test.ts',
  'terminal/relay/opening.test.ts',
);

/** Suites about a store in a file: its disk, its locks, its migrations, or a shifted clock. */
const SQLITE_SUITES = suites(
  'backup/crash.test.ts',
  'backup/restore.test.ts',
  'database/crash.test.ts',
  'database/database.test.ts',
  'database/migrations.test.ts',
  'database/stored-formats.test.ts',
  'database/upgrades.test.ts',
  'e2e/backup.test.ts',
  'e2e/clocks.test.ts',
  'e2e/doctor.test.ts',
  'e2e/full-disk.test.ts',
  'e2e/going-back.test.ts',
  'e2e/identity.test.ts',
  'e2e/lost-events.test.ts',
  'e2e/without-native.test.ts',
);

/** Suites about machines. Their orchestrator runs on a booted host, which has no PostgreSQL, or only hands out its package. */
const MACHINES = suites('hosts');

/** Suites that start their own PostgreSQL server. They run once, with the tests on SQLite. */
const OWN_SERVER = suites(
  'backup/copy-store.test.ts',
  'database/postgres-faults.test.ts',
  'database/postgres-migrations.test.ts',
  'e2e/lost-answers.test.ts',
  'e2e/postgres.test.ts',
  'e2e/postgres-server.test.ts',
  'e2e/postgres-store.test.ts',
  'e2e/statements.test.ts',
);

/** Suites that never use PostgreSQL as the store of the run. */
const NEVER = [...WITHOUT_STORE, ...SQLITE_SUITES, ...MACHINES, ...OWN_SERVER];

/** Suites that draw histories or requests at random: as long as all others of their directory. */
const RANDOM = suites('api/fuzz.test.ts', 'engine/model.test.ts', 'engine/rollout-model.test.ts');

/** Faults on PostgreSQL take a minute a round: `npm run test:faults`, which names the files that it runs. */
const FAULT_ROUNDS =
  process.env.ORCH_FAULT_ROUNDS === undefined ? [] : suites('faults/rounds.test.ts', 'faults/releases.test.ts');

/** Suites on PostgreSQL of `npm test`, or the rounds of `npm run test:faults`. */
export const SUITES_ON_POSTGRES = { include: [...WHOLE, ...BELOW, ...FAULT_ROUNDS], exclude: NEVER };
/** Suites on PostgreSQL of `npm run test:long`, by part. */
export const LONG_ON_POSTGRES = {
  random: { include: RANDOM, exclude: suites() },
  above: {
    include: ABOVE,
    exclude: [...NEVER, ...WHOLE, ...suites('http/idempotency.test.ts', 'faults/rounds.test.ts')],
  },
};

/** Random cases on PostgreSQL in `npm test`, unless the caller says how many; `npm run test:long` draws as many as on SQLite. */
export const FEWER_RANDOM_CASES = {
  ORCH_MODEL_RUNS: process.env.ORCH_MODEL_RUNS ?? '2',
  ORCH_FUZZ_RUNS: process.env.ORCH_FUZZ_RUNS ?? '5',
};

/** Returns whether a suite may use the store of the run: it runs on both, or a list says why it does not. */
export function isListed(path: string): boolean {
  return [...WHOLE, ...BELOW, ...ABOVE, ...NEVER, ...suites('long', 'bench')].some((one) => {
    const [directory = '', rest] = one.split('**');
    return rest === undefined ? path === one : path.startsWith(directory);
  });
}

/** Returns the stores that tests run on, from `ORCH_TEST_STORE`, and says which tests do not run and why. */
export function testStores(standard: 'sqlite' | 'both'): readonly ('sqlite' | 'postgres')[] {
  const wanted = process.env.ORCH_TEST_STORE ?? standard;
  if (!['sqlite', 'postgres', 'both'].includes(wanted)) {
    throw new Error(`ORCH_TEST_STORE is ${wanted}: set it to sqlite, postgres or both`);
  }
  if (wanted === 'sqlite')
    return say('none runs on PostgreSQL: ORCH_TEST_STORE=both also runs those of the store there', ['sqlite']);
  if (noPostgres !== null) {
    if (wanted === 'postgres') throw new Error(`the tests on PostgreSQL cannot run: ${noPostgres}`);
    return say(`none runs on PostgreSQL: ${noPostgres}`, ['sqlite']);
  }
  const left = [...SQLITE_SUITES, ...MACHINES, ...OWN_SERVER].join(', ');
  const about = `those about a store in a file, about machines, or with their own server, do not run on PostgreSQL: ${left}`;
  return say(about, wanted === 'both' ? ['sqlite', 'postgres'] : ['postgres']);
}

/** Vitest reads its configuration once for each project. */
function say<T>(text: string, result: T): T {
  if (process.env.ORCH_TEST_STORES_SAID === text) return result;
  process.env.ORCH_TEST_STORES_SAID = text;
  process.stderr.write(`tests: ${text}\n`);
  return result;
}
