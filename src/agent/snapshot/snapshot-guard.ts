/**
 * The service beside the agent that restores a snapshot when the agent cannot: because its unit, its configuration or its release
 * no longer starts. It exists while an apply may have to be undone, also over a restart of the machine.
 */
import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { holdDataDirectory, holderOf } from '../../identity/data-directory.js';
import { Fault, isFault, messageOf } from '../../kernel/fault.js';
import type { Host } from '../../resources/host.js';
import { hasSystemd, isInUnit, type Systemctl, systemctlAt } from '../../service/systemd.js';
import { startUnit, stopUnit, UNIT_PLACES } from '../../service/unit-files.js';
import { AGENT_UNIT, RESTORE_UNIT, restoreUnit } from '../../service/units.js';
import type { HeldPrograms } from '../host/held-programs.js';
import { bootTime, leftUntil } from './boot-time.js';
import { restore } from './restore.js';
import { readSnapshot, type SnapshotRecord, writeSnapshot } from './snapshot-record.js';

/** Protection of a snapshot while the agent may be unable to restore it. */
export interface SnapshotGuard {
  /** Starts it, before the first change. Throws `service_failed`. */
  start(dataDir: string): Promise<void>;
  /** Removes it; does nothing without one. */
  stop(): Promise<void>;
  /** Starts the agent anew with the unit that was restored, without waiting for that. */
  restartAgent(): Promise<void>;
}

/** A guard for an agent that nothing restarts, or whose system has no systemd: the agent alone restores a snapshot. */
export const NO_GUARD: SnapshotGuard = {
  start: async () => undefined,
  stop: async () => undefined,
  restartAgent: async () => undefined,
};

/** Returns the guard that this process can have. */
export function guardHere(held: HeldPrograms): SnapshotGuard {
  if (process.platform !== 'linux' || process.geteuid?.() !== 0 || !hasSystemd() || !isInUnit(AGENT_UNIT))
    return NO_GUARD;
  const systemctl = systemctlAt(() => held.find('systemctl'));
  const tools = { systemctl, places: UNIT_PLACES };
  return {
    start: async (dataDir) => {
      const script = fileURLToPath(new URL('./snapshot-guard-main.js', import.meta.url));
      await startUnit(tools, RESTORE_UNIT, restoreUnit(process.execPath, script, dataDir));
    },
    stop: async () => {
      await stopUnit(tools, RESTORE_UNIT);
    },
    restartAgent: async () => {
      await systemctl('restart', '--no-block', AGENT_UNIT);
    },
  };
}

/** Milliseconds between two attempts to hold the data directory. */
const LOOK_MS = 1_000;
/** Milliseconds for a stopped agent to release the data directory. */
const RELEASE_MS = 100_000;

interface WatchTools {
  readonly dataDir: string;
  readonly systemctl: Systemctl;
  readonly createHost: () => Host;
  readonly held?: HeldPrograms;
  /** Tells the administrator what went wrong. */
  readonly warn: (message: string) => void;
  /** [default: one second, twenty seconds, one minute] */
  readonly pace?: WatchPace;
}

/** Milliseconds. */
interface WatchPace {
  readonly look: number;
  readonly absent: number;
  readonly hung: number;
}

/** Watches the snapshot until it is settled, restores it if no agent does, and removes its own service. */
export async function watchSnapshot(watch: WatchTools): Promise<void> {
  const { dataDir, systemctl: run, pace = PACE } = watch;
  const startedAt = performance.now();
  let absentSince: number | null = null;
  for (;;) {
    const record = readSnapshot(dataDir);
    if (record === null || record.confirm_secs === null || ['confirmed', 'restored'].includes(record.state)) break;
    const now = performance.now();
    absentSince = holderOf(dataDir) === null ? (absentSince ?? now) : null;
    const absent = absentSince === null ? null : now - absentSince;
    if (isDue(record, { absent, watched: now - startedAt, pace })) {
      await restoreWithoutAgent(watch);
      break;
    }
    await new Promise((done) => setTimeout(done, pace.look));
  }
  await removeUnit(run);
}

const PACE: WatchPace = {
  look: 1_000,
  /** Without an agent, after which it counts as unable to start. Its unit starts it again after five seconds. */
  absent: 20_000,
  /** After the deadline, in which a running agent has to begin to restore the snapshot. */
  hung: 60_000,
};

interface Watched {
  /** Milliseconds for which no agent has run; null while one runs. */
  readonly absent: number | null;
  /** Milliseconds since the service has started. */
  readonly watched: number;
  readonly pace: WatchPace;
}

/** Returns whether the service has to act. An agent that runs settles the snapshot itself. */
function isDue({ state, deadline }: SnapshotRecord, { absent, watched, pace }: Watched): boolean {
  const left = deadline === null ? 0 : leftUntil(deadline);
  if (absent !== null) return absent >= pace.absent && (state !== 'awaiting' || left === 0);
  if (state !== 'awaiting' || deadline === null) return false;
  // After a restart of the machine the agent begins when it has started, like this service.
  if (deadline.boot !== bootTime().boot) return watched >= pace.hung;
  return leftUntil({ ...deadline, at: deadline.at + pace.hung }) === 0;
}

/** Stops whatever the agent's unit runs, restores the snapshot, and starts the agent. */
async function restoreWithoutAgent({ dataDir, systemctl: run, createHost, held, warn }: WatchTools): Promise<void> {
  await run('stop', AGENT_UNIT).catch(() => undefined);
  try {
    const directory = await hold(dataDir, warn);
    try {
      const record = readSnapshot(dataDir);
      if (record !== null && !['confirmed', 'restored'].includes(record.state)) {
        const why = record.why ?? 'the agent no longer started';
        // A disk that refuses the record keeps nothing from being restored. The agent then restores it once more.
        const write = (next: SnapshotRecord) => {
          try {
            writeSnapshot(dataDir, next);
          } catch (error) {
            warn(`the record of the snapshot cannot be written: ${messageOf(error)}`);
          }
        };
        write({ ...record, state: 'restoring', why });
        const restored = await restore(record, createHost(), { dataDir, held });
        write({ ...record, state: 'restored', why, restored });
      }
    } finally {
      directory.release();
    }
  } finally {
    await run('daemon-reload').catch(() => undefined);
    await run('reset-failed', AGENT_UNIT).catch(() => undefined);
    await run('start', AGENT_UNIT);
  }
}

async function hold(dataDir: string, warn: WatchTools['warn']): Promise<{ release(): void }> {
  const end = performance.now() + RELEASE_MS;
  for (;;) {
    try {
      return holdDataDirectory(dataDir, 'orch agent restore');
    } catch (error) {
      if (!isFault(error, 'data_dir_locked')) {
        // The agent is stopped, and its snapshot can be read.
        warn(`the data directory cannot be locked: ${messageOf(error)}`);
        return { release() {} };
      }
      if (performance.now() >= end)
        throw new Fault('agent_running', `the agent does not end: ${error.message}`, { cause: error });
    }
    await new Promise((done) => setTimeout(done, LOOK_MS));
  }
}

/** Removes the unit of this service, which runs until the end of the process. */
async function removeUnit(run: Systemctl): Promise<void> {
  const path = join(UNIT_PLACES.own, RESTORE_UNIT);
  if (!existsSync(path)) return;
  await run('disable', RESTORE_UNIT);
  rmSync(path, { force: true });
  await run('daemon-reload');
}
