/** Says why launchd could not load or start a service, with what it says of its last process. */
import { type CommandResult, exitedWith } from '../command.js';
import { commandFailure } from '../command-failure.js';
import type { Host, RunStep } from '../host.js';
import type { CommandRefusal } from '../kind.js';

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

/** The lines of the service itself stand before those of what belongs to it, which may have the same names. */
function stateOf(printed: string): string {
  const line = (name: string) => new RegExp(`^\\s*(${name} = .*)$`, 'm').exec(printed)?.[1] ?? null;
  const lines = [line('state'), line('last exit code'), line('last exit reason')].filter((one) => one !== null);
  return lines.length === 0 ? 'launchd has loaded it' : lines.join(', ');
}
