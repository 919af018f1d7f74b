/** Boots one host with systemd as its first process and follows it to its end. */
import { spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Init } from './base-image.js';
import { inCgroup } from './cgroup.js';
import { run } from './command.js';
import { childrenOf, statusOf } from './processes.js';

/** A file or directory of this machine that the host sees; read-only by default. */
export interface Bind {
  readonly from: string;
  readonly to: string;
  readonly writable?: boolean;
}

export interface MachineSpec {
  /** Unique on this machine. */
  readonly name: string;
  /** Path of the host's control group below the root of the hierarchy. */
  readonly cgroup: string;
  readonly hostname: string;
  readonly root: string;
  readonly namespace: string;
  readonly consoleLog: string;
  readonly binds: readonly Bind[];
  /** Capabilities beyond those of a container, such as `CAP_NET_ADMIN`. */
  readonly capabilities?: readonly string[];
  readonly init: Init;
}

export interface Machine {
  /** Process id, on this machine, of the host's first process. */
  readonly initPid: number;
  readonly cgroup: string;
  /** Exit status of systemd-nspawn: `rebootStatus` when the host asked to be booted again. */
  readonly ended: Promise<number | null>;
}

export const rebootStatus = 133;
const bootLimitMs = 60_000;

/** Resolves when the init system has finished starting (running or degraded); rejects with the console's last lines. */
export async function bootMachine(spec: MachineSpec): Promise<Machine> {
  const console = openSync(spec.consoleLog, 'w');
  const [shell = '', ...argv] = inCgroup(spec.cgroup, nspawnArgv(spec));
  const child = spawn(shell, argv, { detached: true, stdio: ['ignore', console, console] });
  closeSync(console);
  let over = false;
  const ended = new Promise<number | null>((resolve) => {
    child.on('error', () => resolve(null));
    child.on('exit', resolve);
  }).finally(() => {
    over = true;
  });
  child.unref();
  const initPid = await booted(child.pid ?? 0, spec.init, () => over);
  if (initPid !== null) return { initPid, cgroup: spec.cgroup, ended };
  throw new Error(`${spec.hostname} did not boot; the end of its console:\n${tail(spec.consoleLog)}`);
}

function nspawnArgv(spec: MachineSpec): readonly string[] {
  const binds = spec.binds.map(({ from, to, writable }) => `${writable ? '--bind' : '--bind-ro'}=${from}:${to}`);
  return [
    'systemd-nspawn',
    ...['--quiet', '--settings=no', '--register=no', '--keep-unit', '--boot'],
    ...['--link-journal=no', '--resolv-conf=off', '--timezone=off'],
    `--directory=${spec.root}`,
    `--machine=${spec.name}`,
    `--hostname=${spec.hostname}`,
    `--network-namespace-path=${spec.namespace}`,
    ...(spec.capabilities === undefined ? [] : [`--capability=${spec.capabilities.join(',')}`]),
    ...binds,
  ];
}

async function booted(nspawnPid: number, init: Init, isOver: () => boolean): Promise<number | null> {
  const deadline = Date.now() + bootLimitMs;
  while (!isOver() && Date.now() < deadline) {
    const initPid = childrenOf(nspawnPid).find((pid) => /^NSpid:.*\t1$/m.test(statusOf(pid)));
    if (initPid !== undefined && (await hasStarted(initPid, init))) return initPid;
    await sleep(50);
  }
  return null;
}

/** Programs whose output tells that all services have been started. */
const STATE: Readonly<Record<Init, readonly string[]>> = {
  systemd: ['systemctl', 'is-system-running'],
  openrc: ['sh', '-c', 'pgrep -x openrc >/dev/null || cat /run/openrc/softlevel'],
};

async function hasStarted(initPid: number, init: Init): Promise<boolean> {
  const { stdout } = await run(['nsenter', '--target', String(initPid), '--all', ...STATE[init]]);
  return ['running', 'degraded', 'default'].includes(stdout.trim());
}

function tail(path: string): string {
  return readFileSync(path, 'utf8').trimEnd().split('\n').slice(-20).join('\n');
}
