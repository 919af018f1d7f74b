/** Leaves nothing behind, however the benchmarks end: not even when they are killed. */
import { spawn } from 'node:child_process';
import { chmodSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';

const VARIABLE = 'BENCH_RUN';

/**
 * Waits until the benchmarks end, kills every process that has their variable or their directory in its command line, and removes
 * the directory. A server that writes its state over its environment, as sshd does, is found by its command line.
 */
const SCRIPT = `
trap '' INT TERM HUP
cat >/dev/null
for round in 1 2 3 4 5; do
  found=
  for file in $(grep -lszxF "$1" /proc/[0-9]*/environ; grep -lszF "$2/" /proc/[0-9]*/cmdline); do
    process=\${file#/proc/}
    process=\${process%%/*}
    [ "$process" = $$ ] || { kill -KILL "$process" 2>/dev/null && found=yes; }
  done
  [ -n "$found" ] || break
done
rm -rf -- "$2"
`;

/** Gives this process a directory for temporary files, and its children a variable to be found by. */
export function startGuard(): void {
  const directory = mkdtempSync(join(tmpdir(), 'orch-bench-'));
  // Programs of other users look into it.
  chmodSync(directory, 0o755);
  const run = basename(directory);
  const guard = spawn('sh', ['-c', SCRIPT, 'sh', `${VARIABLE}=${run}`, directory], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  guard.unref();
  // A pipe that nothing is written to must not keep the benchmarks running.
  if (guard.stdin !== null && 'unref' in guard.stdin && typeof guard.stdin.unref === 'function') guard.stdin.unref();
  process.env.TMPDIR = directory;
  process.env[VARIABLE] = run;
}

/** Starts programs that clear away after themselves, also when the benchmarks are killed. */
export async function unguarded<Result>(work: () => Promise<Result>): Promise<Result> {
  const run = process.env[VARIABLE];
  delete process.env[VARIABLE];
  try {
    return await work();
  } finally {
    process.env[VARIABLE] = run;
  }
}

/** The environment of a measured program: what it needs, and the variable of the guard. */
export const bareEnvironment = (home: string): NodeJS.ProcessEnv => ({
  PATH: process.env.PATH,
  HOME: home,
  NO_COLOR: '1',
  [VARIABLE]: process.env[VARIABLE],
});
