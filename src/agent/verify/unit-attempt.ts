/** The state of a service for a health check, from the service manager of the platform. */
import { type Command, type CommandResult, commandFailure, exitedWith } from '../../resources/command.js';
import { recordsOf, textOf } from '../../resources/json-answer.js';
import { LIST_COMMAND, parseList } from '../../resources/services/launchd-state.js';
import { isUp, parseUnits, showCommand, stateOf } from '../../resources/services/systemd-unit.js';
import { powershell, readAnswer } from '../../resources/windows/powershell.js';
import { READ_SERVICES } from '../../resources/windows/windows-service-control.js';
import { type Attempt, type AttemptContext, HEALTHY, impossible, unhealthy } from './attempt-result.js';

export function observeUnit(name: string, context: AttemptContext): Promise<Attempt> {
  switch (context.host.platform) {
    case 'linux':
      return systemdUnit(name, context);
    case 'macos':
      return launchdService(name, context);
    case 'windows':
      return windowsService(name, context);
  }
}

const bounded = (command: Command, { timeoutMs }: AttemptContext): Command => ({
  ...command,
  timeoutSecs: timeoutMs / 1000,
  lifetime: 'end',
});

/** Returns why the service manager cannot be asked. A missing program stays missing. */
function notAsked(command: Command, result: CommandResult, { quotable }: AttemptContext): Attempt {
  const { message } = commandFailure(command, quotable(result));
  return result.end.how === 'not-started' && result.end.missing ? impossible(message) : unhealthy(message);
}

async function systemdUnit(name: string, context: AttemptContext): Promise<Attempt> {
  const command = bounded({ argv: showCommand([name]) }, context);
  const result = await context.host.run(command);
  if (!exitedWith(result, 0)) return notAsked(command, result, context);
  const [unit] = parseUnits(result.stdout);
  if (unit === undefined) return unhealthy(`systemd says nothing about ${name}`);
  if (isUp(unit)) return HEALTHY;
  if (unit.load !== 'loaded') return unhealthy(`systemd has not loaded ${unit.id}: ${unit.loadError || unit.load}`);
  return unhealthy(`${unit.id} is ${stateOf(unit)}`);
}

async function launchdService(name: string, context: AttemptContext): Promise<Attempt> {
  const command = bounded({ argv: LIST_COMMAND }, context);
  const result = await context.host.run(command);
  if (!exitedWith(result, 0)) return notAsked(command, result, context);
  const pid = parseList(result.stdout).get(name);
  if (pid === undefined) return unhealthy(`launchd has not loaded ${name}`);
  return pid === null ? unhealthy(`${name} does not run`) : HEALTHY;
}

async function windowsService(name: string, context: AttemptContext): Promise<Attempt> {
  const command = bounded(powershell(READ_SERVICES, { names: [name] }), context);
  const read = readAnswer(command, context.quotable(await context.host.run(command)));
  if ('refusal' in read) return unhealthy(read.refusal.message);
  const [service] = recordsOf(read.answer.services);
  if (service === undefined) return unhealthy(`there is no service ${name}`);
  const state = textOf(service.State);
  return state === 'Running' ? HEALTHY : unhealthy(`${name} is ${state.toLowerCase()}`);
}
