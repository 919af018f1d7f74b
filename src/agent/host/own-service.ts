/** The systemd service that this process runs in, and commands that wait for its end. */
import { execFile } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** Returns the name of the service, such as `orch-agent.service`; null for a process of no service. */
export function ownService(): string | null {
  try {
    return serviceIn(readFileSync('/proc/self/cgroup', 'utf8'));
  } catch {
    return null;
  }
}

/** Returns the outermost service in the text of `/proc/PID/cgroup`. */
export const serviceIn = (cgroups: string): string | null =>
  cgroups
    .split('\n')
    .flatMap((line) => line.split('/'))
    .find((part) => part.endsWith('.service')) ?? null;

/** Identifies this process among all of the machine's past and present ones. */
export function processIdentity(): string {
  try {
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    const stat = readFileSync('/proc/self/stat', 'latin1');
    // Start time in ticks since boot; the name before it may contain anything.
    const started = stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? '';
    return `${boot} ${process.pid} ${started}`;
  } catch {
    return `${process.pid}`;
  }
}

/** Milliseconds between two looks. */
const LOOK_MS = 500;

/**
 * Resolves once a command waits for the end of this service, which waits for the command. Never resolves otherwise.
 * @param group process group of the command
 * @param signal ends the looks
 */
export async function untilDeadlock(group: number, signal: AbortSignal): Promise<void> {
  const own = ownService();
  if (own !== null) {
    while (!signal.aborted) {
      if (await isDeadlock(group, own)) return;
      await delay(LOOK_MS, undefined, { signal }).catch(() => {});
    }
  }
  await new Promise<never>(() => {});
}

async function isDeadlock(group: number, own: string): Promise<boolean> {
  const waiting = waitingSystemctls(group);
  if (waiting.length === 0) return false;
  if (waiting.some((argv) => argv.some((word) => word === own || `${word}.service` === own))) return true;
  // It names another unit, such as one that takes the agent's along. systemd works on nothing else, so it waits for this one.
  const jobs = await runningJobs();
  return jobs.length > 0 && jobs.every((unit) => unit === own);
}

const STOPS = /^(?:stop|isolate|(?:try-|cond)?restart|(?:try-)?reload-or-restart|force-reload)$/;

/** Returns the command lines of those programs in a process group that wait until systemd has stopped units. */
function waitingSystemctls(group: number): readonly (readonly string[])[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      try {
        const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
        if (Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[2]) !== group) return [];
        const argv = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
        const waits = /(?:^|\/)systemctl$/.test(argv[0] ?? '') && !argv.includes('--no-block');
        return waits && argv.some((word) => STOPS.test(word)) ? [argv] : [];
      } catch {
        // The process has ended.
        return [];
      }
    });
}

/** Returns the units that systemd is working on; none when it does not answer. */
async function runningJobs(): Promise<readonly string[]> {
  try {
    const { stdout } = await run('systemctl', ['list-jobs', '--plain', '--no-legend', '--full'], { timeout: 5_000 });
    const jobs = stdout.split('\n').map((line) => line.trim().split(/\s+/));
    return jobs.flatMap(([, unit, , state]) => (unit !== undefined && state === 'running' ? [unit] : []));
  } catch {
    return [];
  }
}
