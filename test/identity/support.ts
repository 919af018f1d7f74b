import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { isFault } from '../../src/kernel/fault.js';

/** An empty directory that goes away with the test. */
export function temporaryDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), 'orch-identity-'));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

/** True when the program is on this machine. */
export const has = (program: string, ...args: readonly string[]): boolean =>
  spawnSync(program, args, { stdio: 'ignore', timeout: 10_000 }).error === undefined;

export const run = (program: string, ...args: readonly string[]): string =>
  execFileSync(program, args, { encoding: 'utf8', timeout: 30_000, stdio: ['ignore', 'pipe', 'pipe'] });

/** The fault that a call throws, as the code, message and hint that a person sees. */
export function faultOf(call: () => unknown): { code: string; message: string; hint: string | undefined } {
  try {
    call();
  } catch (error) {
    if (!isFault(error)) throw error;
    return { code: error.code, message: error.message, hint: error.hint };
  }
  throw new Error('nothing was thrown');
}
