/** Boots a fleet of real Debian hosts on a bridge of their own, and clears it away. */
import { existsSync, mkdirSync, realpathSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { baseImage, HOST_PACKAGES, type Init } from './base-image.js';
import { type Guard, startGuard } from './guard.js';
import { type BootedHost, bootHost } from './host.js';
import type { Bind } from './machine.js';
import { mountRoot, nodePath, projectPath } from './root.js';

export interface FleetOptions {
  /** Names, in lower case; each host carries its name as hostname and knows the others by theirs. */
  readonly hosts: readonly string[];
  /** Files and directories of this machine that every host sees. */
  readonly binds?: readonly Bind[];
  /** Debian packages beyond the base; each combination is built once for this machine. */
  readonly packages?: readonly string[];
  /** Directory with `dist`, `node_modules` and `package.json`: the built project by default; null for hosts without Node and orch. */
  readonly project?: string | null;
  /** Capabilities of every host beyond those of a container. */
  readonly capabilities?: readonly string[];
  /** What starts the services of every host [default: systemd]. */
  readonly init?: Init;
}

export interface Fleet {
  /** The run's number, unique on this machine while the fleet exists. */
  readonly number: number;
  /** This machine's address on the bridge; hosts reach servers of the test there, and nothing beyond. */
  readonly gateway: string;
  /** Process id of the guard that clears the fleet away when this process ends in whatever way. */
  readonly guardPid: number;
  readonly host: (name: string) => BootedHost;
  /** Ends all hosts and removes everything of the run; a second call does nothing more. */
  readonly stop: () => Promise<void>;
}

const repository = fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/, '');

/** Resolves when all hosts have booted; when one does not, clears everything away and rejects with its console. */
export async function startFleet(options: FleetOptions): Promise<Fleet> {
  const binds = bindsOf(options);
  refuseBadNames(options.hosts);
  const isBare = options.project === null;
  const base = await baseImage([...(isBare ? [] : HOST_PACKAGES), ...(options.packages ?? [])], options.init);
  const guard = await startGuard();
  const addresses = options.hosts.map((name, index) => ({ name, address: `10.77.${guard.number}.${index + 10}` }));
  const { capabilities = [], init = 'systemd' } = options;
  const boots = addresses.map((_, index) =>
    bootNth({ guard, base, isBare, binds, addresses, capabilities, init, index }),
  );
  const settled = await Promise.allSettled(boots);
  const failed = settled.find((result) => result.status === 'rejected');
  if (failed !== undefined) {
    await guard.release();
    throw failed.reason;
  }
  return fleetOf(guard, await Promise.all(boots));
}

interface NthHost {
  readonly guard: Guard;
  readonly base: string;
  readonly isBare: boolean;
  readonly binds: readonly Bind[];
  readonly addresses: readonly { readonly name: string; readonly address: string }[];
  readonly capabilities: readonly string[];
  readonly init: Init;
  readonly index: number;
}

async function bootNth({
  guard,
  base,
  isBare,
  binds,
  addresses,
  capabilities,
  init,
  index,
}: NthHost): Promise<BootedHost> {
  const { name = '', address = '' } = addresses[index] ?? {};
  const directory = `${guard.directory}/${name}`;
  mkdirSync(directory);
  const lines = addresses.map((other) => `${other.address} ${other.name}`);
  const root = await mountRoot({ base, isBare, directory, hostname: name, addresses: lines });
  const run = `orch-t${guard.number}`;
  const namespace = `${directory}/network`;
  return bootHost(
    {
      name: `${run}-${name}`,
      cgroup: `${run}/${name}`,
      hostname: name,
      root,
      namespace,
      binds,
      consoleLog: `${directory}/console`,
      init,
      ...(capabilities.length === 0 ? {} : { capabilities }),
    },
    { bridge: run, port: `${run}-${index}`, address, namespace },
  );
}

function fleetOf(guard: Guard, hosts: readonly BootedHost[]): Fleet {
  const byName = new Map(hosts.map((host) => [host.name, host]));
  let stopped: Promise<void> | null = null;
  return {
    number: guard.number,
    gateway: `10.77.${guard.number}.1`,
    guardPid: guard.pid,
    host: (name) => {
      const host = byName.get(name);
      if (host === undefined) throw new Error(`the fleet has no host "${name}", only ${[...byName.keys()].join(', ')}`);
      return host;
    },
    stop: () => {
      stopped ??= guard.release();
      return stopped;
    },
  };
}

function bindsOf({ binds = [], project = repository }: FleetOptions): readonly Bind[] {
  if (project === null) return binds;
  const parts = ['dist', 'node_modules', 'package.json'].map((part) => ({
    from: `${project}/${part}`,
    to: `${projectPath}/${part}`,
  }));
  const all = [{ from: realpathSync(process.execPath), to: nodePath }, ...parts, ...binds];
  const missing = all.find(({ from }) => !existsSync(from));
  if (missing !== undefined) throw new Error(`${missing.from} does not exist; build the project first (npm run build)`);
  return all;
}

function refuseBadNames(names: readonly string[]): void {
  const bad = names.find((name, index) => !/^[a-z][a-z0-9-]{0,30}$/.test(name) || names.indexOf(name) !== index);
  if (bad !== undefined) throw new Error(`"${bad}" is no host name, or is given twice`);
}
