/**
 * Runs the fault suite: npm run test:faults [-- --rounds N] [--seed S]
 * Each round tries each fault once. Without a seed one is drawn; it is printed, and a failing round names its own.
 */
import { spawnSync } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const { values } = parseArgs({
  options: { rounds: { type: 'string', default: '1' }, seed: { type: 'string', default: String(randomInt(2 ** 31)) } },
});
for (const [name, value] of Object.entries(values)) {
  if (/^[1-9]\d{0,9}$/.test(value)) continue;
  console.error(`--${name} needs a whole number above 0, not ${JSON.stringify(value)}`);
  process.exit(64);
}
const { status } = spawnSync('npx', ['vitest', 'run', 'test/faults'], {
  cwd: fileURLToPath(new URL('..', import.meta.url)),
  env: {
    ...process.env,
    ORCH_FAULT_ROUNDS: values.rounds,
    ORCH_FAULT_SEED: values.seed,
    ORCH_TEST_STORE: process.env.ORCH_TEST_STORE ?? 'both',
  },
  stdio: 'inherit',
});
process.exitCode = status ?? 1;
