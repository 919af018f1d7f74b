/** Says why systemd could not start, stop or reload a unit: what it makes of it, and the last lines of its log. */
import { type CommandResult, exitedWith } from '../command.js';
import { commandFailure, lastLines } from '../command-failure.js';
import type { Host, RunStep } from '../host.js';
import type { CommandRefusal, StepVerdict } from '../kind.js';
import { isDown, isUp, parseUnits, showCommand, type Unit } from './systemd-unit.js';

const LOG_LINES = 10;

/** Commands that fail because of the unit itself. */
const ABOUT_UNIT = new Set(['start', 'restart', 'stop', 'try-restart', 'try-reload-or-restart', 'is-active']);

export async function explainUnit(
  host: Host,
  name: string,
  { command }: RunStep,
  result: CommandResult,
): Promise<CommandRefusal> {
  const failure = commandFailure(command, result);
  const verb = command.argv[1] ?? '';
  if (result.end.how !== 'exited' || !ABOUT_UNIT.has(verb)) return failure;
  const shown = await host.run({ argv: showCommand([name]) });
  const [unit] = parseUnits(shown.stdout);
  if (!unit) return failure;
  const lines = await logOf(host, unit.id);
  return { code: 'service_failed', message: [sentenceOf(unit, verb, failure), lines].filter(Boolean).join('\n') };
}

/** Units as systemctl names them in its messages. */
const NAMED = /[\w@:\\.-]+\.(?:service|socket|timer|path|mount|automount|swap|target|slice|scope|device)\b/g;

/** Of a command for several units that has failed: systemctl names those that it failed for, and has done the others. */
export async function judgeUnit(host: Host, name: string, step: RunStep, result: CommandResult): Promise<StepVerdict> {
  const verb = step.command.argv[1] ?? '';
  if (!ABOUT_UNIT.has(verb) || step.items === undefined || result.end.how !== 'exited') return 'undone';
  const named = new Set(result.stderr.match(NAMED));
  if (named.size === 0) return 'undone';
  return named.has(name) ? explainUnit(host, name, step, result) : 'done';
}

function sentenceOf(unit: Unit, verb: string, { message }: CommandRefusal): string {
  if (unit.loadError !== '') return `systemd does not take the unit: ${unit.loadError}`;
  const state = `${unit.active}${unit.sub === unit.active ? '' : ` (${unit.sub})`}`;
  if (verb === 'try-reload-or-restart' && isUp(unit))
    return `${unit.id} could not be reloaded and runs as before: ${message}`;
  if (verb === 'stop' && !isDown(unit)) return `${unit.id} could not be stopped and is ${state}: ${message}`;
  const why = unit.result === 'success' || unit.result === '' ? '' : `, ${unit.result}`;
  if (verb === 'is-active') return `${unit.id} was started and does not run: it is ${state}${why}`;
  // What systemd has not even tried, such as for want of another unit, has nothing to say in its log.
  const said = unit.active === 'inactive' ? `: ${message}` : '';
  return `${unit.id} could not be started: it is ${state}${why}${said}`;
}

/** Empty where there is no journal. */
async function logOf(host: Host, unit: string): Promise<string> {
  // What the unit wrote last may be on its way to the journal still.
  await host.run({ argv: ['journalctl', '--sync'], timeoutSecs: 10 });
  const log = await host.run({
    argv: ['journalctl', `--unit=${unit}`, `--lines=${LOG_LINES}`, '--output=cat', '--no-pager', '--quiet'],
    timeoutSecs: 30,
  });
  return exitedWith(log, 0) ? lastLines({ stdout: log.stdout, stderr: '' }, LOG_LINES) : '';
}
