/** The state of system services, as `launchctl` prints it. */

import type { CommandRefusal } from '../command.js';
import { type CommandResult, commandFailure, exitedWith } from '../command.js';
import type { Host, RunStep } from '../host.js';

export const LIST_COMMAND = ['launchctl', 'list'] as const;
export const DISABLED_COMMAND = ['launchctl', 'print-disabled', 'system'] as const;

/** Returns loaded labels with their process ID, or null without a process. */
export function parseList(stdout: string): ReadonlyMap<string, number | null> {
  const loaded = new Map<string, number | null>();
  for (const line of stdout.split('\n')) {
    // Columns: process ID or "-", last exit status, label.
    const [, pid, label] = /^(-|\d+)\s+-?\d+\s+(\S.*)$/.exec(line.trim()) ?? [];
    if (pid !== undefined && label !== undefined) loaded.set(label, pid === '-' ? null : Number(pid));
  }
  return loaded;
}

/**
 * Returns explicitly enabled or disabled labels; true means disabled. macOS prints `=> true` and `=> false` up to version 12,
 * `=> disabled` and `=> enabled` from 13 on.
 */
export function parseDisabled(stdout: string): ReadonlyMap<string, boolean> {
  const [, block = ''] = /disabled services = \{([^}]*)\}/.exec(stdout) ?? [];
  const overrides = new Map<string, boolean>();
  for (const [, label = '', word] of block.matchAll(/"([^"\n]+)"\s*=>\s*(true|false|disabled|enabled)\b/g)) {
    overrides.set(label, word === 'true' || word === 'disabled');
  }
  return overrides;
}

/** True for the expected output, in which a missing label means no explicit setting. */
export const isDisabledList = (stdout: string): boolean => stdout.includes('disabled services = {');

/** Verbs about a single service. */
const ABOUT_SERVICE = new Set(['bootstrap', 'bootout', 'kickstart']);

export async function explainLaunchd(
  host: Host,
  name: string,
  { command }: RunStep,
  result: CommandResult,
): Promise<CommandRefusal> {
  const failure = commandFailure(command, result);
  if (result.end.how !== 'exited' || !ABOUT_SERVICE.has(command.argv[1] ?? '')) return failure;
  const printed = await host.run({ argv: ['launchctl', 'print', `system/${name}`] });
  const state = exitedWith(printed, 0) ? stateOf(printed.stdout) : 'launchd has not loaded it';
  return { code: 'service_failed', message: `${failure.message}\n${name}: ${state}` };
}

/** Returns the state of the service, whose lines precede lines of the same names that belong to its parts. */
function stateOf(printed: string): string {
  const line = (name: string) => new RegExp(`^[ \\t]*(${name} = .*)$`, 'm').exec(printed)?.[1] ?? null;
  const lines = [line('state'), line('last exit code'), line('last exit reason')].filter((one) => one !== null);
  return lines.length === 0 ? 'launchd has loaded it' : lines.join(', ');
}
