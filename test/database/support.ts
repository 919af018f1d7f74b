import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { monotonicFactory } from 'ulid';
import { onTestFinished } from 'vitest';
import { type OpenDatabase, type OpenDatabaseOptions, openDatabase } from '../../daemon/database/database.js';
import type { NewRow } from '../../daemon/database/schema.js';
import type { Clock } from '../../src/kernel/clock.js';
import { type Fault, isFault } from '../../src/kernel/fault.js';
import type { LogFields, Logger } from '../../src/kernel/logger.js';
import { silentLogger } from '../../src/kernel/logger.js';

/** An empty directory that goes away with the test. */
export function temporaryDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), 'orch-store-'));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

/** A store in a file of its own, closed with the test. */
export async function openStore(options: Partial<OpenDatabaseOptions> = {}): Promise<OpenDatabase> {
  const store = await openDatabase({
    file: join(temporaryDirectory(), 'orch.db'),
    logger: silentLogger,
    onFatal: (error) => {
      throw error;
    },
    ...options,
  });
  onTestFinished(() => store.close());
  return store;
}

/** Time that stands still until the test moves it. */
export class ManualClock implements Clock {
  private wall: number;
  private steady = 1_000_000;

  constructor(wall = Date.parse('2026-03-01T12:00:00Z')) {
    this.wall = wall;
  }

  now(): number {
    return this.wall;
  }

  monotonic(): number {
    return this.steady;
  }

  advance(ms: number): void {
    this.wall += ms;
    this.steady += ms;
  }

  /** Sets the wall clock alone, as an administrator or NTP does. */
  setWall(wall: number): void {
    this.wall = wall;
  }
}

/** ULIDs of one process; of the given clock's time. */
export const newIds = (clock?: Clock) => {
  const next = monotonicFactory();
  return () => next(clock?.now());
};

/** Keeps what is logged. */
export function recordingLogger(): Logger & {
  readonly lines: { level: string; message: string; fields: LogFields }[];
} {
  const lines: { level: string; message: string; fields: LogFields }[] = [];
  const at =
    (level: string) =>
    (message: string, fields: LogFields = {}) =>
      void lines.push({ level, message, fields });
  const logger = {
    lines,
    debug: at('debug'),
    info: at('info'),
    warn: at('warn'),
    error: at('error'),
    child: () => logger,
  };
  return logger;
}

/** The fault that a promise rejects with. */
export async function rejection(promise: Promise<unknown>): Promise<Fault> {
  try {
    await promise;
  } catch (error) {
    if (isFault(error)) return error;
    throw error;
  }
  throw new Error('nothing was thrown');
}

export const agentRow = (change: Partial<NewRow<'agents'>> & { readonly node_id: string }): NewRow<'agents'> => ({
  public_key: change.node_id.repeat(2),
  name: null,
  status: 'approved',
  created_at: 1000,
  updated_at: 1000,
  connected_at: 0,
  last_seen_at: 0,
  initial_hostname: 'host',
  initial_ip: '192.0.2.1',
  agent_version: '0.1.0',
  protocol_version: 1,
  attributes_json: '{}',
  state_operation_id: null,
  ...change,
});

export const operationRow = (
  change: Partial<NewRow<'operations'>> & { readonly operation_id: string },
): NewRow<'operations'> => ({
  node_id: 'a'.repeat(32),
  node_name: 'web-1',
  state: 'queued',
  modules_json: '[]',
  assignments_json: '[]',
  requested_by: 'system',
  request_id: 'r',
  started_at: 1000,
  finished_at: null,
  epoch: 1,
  generation: 1,
  desired_json: '[]',
  removals_json: '[]',
  summary_json: '{}',
  error_json: null,
  cancelled_by_json: null,
  ...change,
});

/** A node ID of one repeated digit. */
export const node = (digit: string): string => digit.repeat(32);
