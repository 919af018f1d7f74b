/** Claims a network for one run of hosts and holds the guard that clears it away, even when this process is killed. */
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { start } from './command.js';

const script = fileURLToPath(new URL('guard.sh', import.meta.url));

export interface Guard {
  /** The run's number: its network is 10.77.<number>.0/24, its bridge and control group `orch-t<number>`. */
  readonly number: number;
  /** The run's own directory, in memory, gone after release. */
  readonly directory: string;
  readonly pid: number;
  /** Removes everything of the run; rejects with what could not be removed. */
  readonly release: () => Promise<void>;
}

/** Removes what dead runs left behind, claims a free number and creates the bridge of the run. */
export async function startGuard(): Promise<Guard> {
  const guard = start(['bash', script]);
  const firstLine = once(guard.child.stdout, 'data');
  await Promise.race([firstLine, guard.ended]);
  const number = Number(guard.stdout());
  if (guard.child.pid === undefined || !(number > 0))
    throw new Error(`no network for test hosts: ${guard.stderr().trim()}`);
  // A test worker can outlive the runner that it has lost; its hosts do not.
  const letGo = () => void guard.child.stdin.end();
  process.once('disconnect', letGo);
  const release = async (): Promise<void> => {
    process.off('disconnect', letGo);
    letGo();
    const { status, stderr } = await guard.ended;
    if (status !== 0) throw new Error(`test hosts were not cleared away: ${stderr.trim()}`);
  };
  return { number, directory: `/run/orch-test-hosts/${number}`, pid: guard.child.pid, release };
}
