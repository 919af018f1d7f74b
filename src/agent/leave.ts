/** `orch agent leave`: this machine stops being one of a fleet. */
import { execFile } from 'node:child_process';
import { existsSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { holdDataDirectory } from '../identity/data-directory.js';
import { Fault, isFault, messageOf } from '../kernel/fault.js';

export interface LeaveOptions {
  readonly dataDir: string;
  /** The unit that runs the agent of this directory, when there is one to stop and delete; null leaves services alone. */
  readonly unit: AgentUnit | null;
}

export interface AgentUnit {
  /** Such as `orch-agent.service`. */
  readonly name: string;
  /** Of its file. */
  readonly path: string;
}

/** What was removed. */
export interface Left {
  readonly data_dir: string;
  /** Null when there was none. */
  readonly service: string | null;
}

const run = promisify(execFile);

/**
 * Stops and deletes the service, then deletes identity, pin, journal and everything else in the directory. What modules have
 * put on the machine stays as it is.
 * @throws Fault `agent_running` when another process is the agent, `data_dir_invalid` when there is none or it cannot be deleted
 */
export async function leave({ dataDir, unit }: LeaveOptions): Promise<Left> {
  if (!existsSync(join(dataDir, 'identity.key'))) {
    throw new Fault('data_dir_invalid', `there is no agent in ${dataDir}`, {
      hint: 'name its directory with --data-dir',
    });
  }
  const service = unit !== null && existsSync(unit.path) ? unit : null;
  if (service) await systemctl('disable', '--now', service.name);
  clear(dataDir);
  if (service) {
    rmSync(service.path, { force: true });
    await systemctl('daemon-reload');
  }
  return { data_dir: dataDir, service: service?.name ?? null };
}

/** The identity goes first: half a deletion leaves nothing that could connect. */
function clear(dataDir: string): void {
  const directory = hold(dataDir);
  try {
    const rest = readdirSync(dataDir).filter((name) => name !== 'lock' && name !== 'identity.key');
    for (const name of ['identity.key', ...rest]) rmSync(join(dataDir, name), { recursive: true, force: true });
  } catch (error) {
    throw new Fault('data_dir_invalid', `${dataDir} cannot be cleared: ${messageOf(error)}`, { cause: error });
  } finally {
    directory.release();
  }
  rmSync(dataDir, { recursive: true, force: true });
}

function hold(dataDir: string) {
  try {
    return holdDataDirectory(dataDir, 'orch agent');
  } catch (error) {
    if (!isFault(error, 'data_dir_locked')) throw error;
    throw new Fault('agent_running', `the agent of ${dataDir} runs: ${error.message}`, {
      hint: 'stop it first, then leave',
      cause: error,
    });
  }
}

async function systemctl(...args: readonly string[]): Promise<void> {
  try {
    await run('systemctl', [...args], { timeout: 120_000 });
  } catch (error) {
    throw new Fault('data_dir_invalid', `systemctl ${args.join(' ')} failed: ${messageOf(error)}`, {
      hint: 'nothing of the agent was deleted; stop and disable its service by hand, then leave again',
      cause: error,
    });
  }
}
