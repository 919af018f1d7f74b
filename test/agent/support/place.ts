/** Real directories and what only some machines can do with them. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished, type TestContext } from 'vitest';
import { bestReach } from '../../../src/agent/host/safe-walk.js';
import { UnixHost } from '../../../src/agent/host/this-host.js';
import type { Clock } from '../../../src/kernel/clock.js';
import type { FileStep, PathFact, StepOutcome } from '../../../src/resources/host.js';

export const isRoot = process.geteuid?.() === 0;

export const clock: Clock = { now: () => Date.now(), monotonic: () => performance.now() };

/** An empty directory that goes away with the test. */
export function place(): string {
  const directory = mkdtempSync(join(tmpdir(), 'orch-agent-'));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

/** Skips the rest of a test and prints why. */
export function needs(context: TestContext, condition: boolean, what: string): void {
  if (condition) return;
  console.log(`skipped "${context.task.name}": it needs ${what}`);
  context.skip(`it needs ${what}`);
}

export const run = (program: string, ...args: readonly string[]) =>
  spawnSync(program, args, { encoding: 'utf8', timeout: 20_000 });

export const succeeds = (program: string, ...args: readonly string[]): boolean => run(program, ...args).status === 0;

export const host = () => new UnixHost({ platform: 'linux', reach: bestReach() });

export function look(path: string, more: { content?: boolean; entries?: boolean } = {}): PathFact {
  const [fact] = host().observe([{ path, content: more.content ?? true, entries: more.entries ?? true }]);
  if (!fact) throw new Error('no answer');
  return fact;
}

export async function commitOne(step: FileStep): Promise<StepOutcome> {
  const [outcome] = await host().commit([step]);
  if (outcome === undefined) throw new Error('no outcome');
  return outcome;
}

export const write = (
  path: string,
  content: string,
  more: Partial<Extract<FileStep, { do: 'write-file' }>> = {},
): FileStep => ({
  do: 'write-file',
  path,
  content,
  owner: null,
  group: null,
  mode: null,
  ...more,
});
