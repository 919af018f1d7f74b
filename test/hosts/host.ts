/** One booted host as a test handles it: run things in it, cut its cable, let it die, boot it again. */
import { type CableSpec, layCable, removeCable, setCable } from './cable.js';
import { type Command, type CommandOptions, finish, type Outcome, signal } from './command.js';
import { enter } from './enter.js';
import { bootMachine, type Machine, type MachineSpec, rebootStatus } from './machine.js';
import { type Program, programOf } from './program.js';

export type Environment = Readonly<Record<string, string>>;

export interface RunOptions extends CommandOptions {
  /** Added to the host's own PATH, HOME, LANG and TERM; nothing of the test's environment is passed on. */
  readonly env?: Environment;
}

export interface BootedHost {
  readonly name: string;
  /** Its IPv4 address; every host of the run also knows it by name. */
  readonly address: string;
  /** Runs a program in the host, as root and in `/`, to its end, whatever its status. */
  readonly run: (argv: readonly string[], options?: RunOptions) => Promise<Outcome>;
  readonly spawn: (argv: readonly string[], options?: { readonly env?: Environment }) => Promise<Program>;
  readonly readFile: (path: string) => Promise<string>;
  /** Creates missing parent directories; `mode` is as chmod takes it. */
  readonly writeFile: (path: string, content: string | Uint8Array, mode?: string) => Promise<void>;
  readonly cutCable: () => Promise<void>;
  readonly plugCable: () => Promise<void>;
  /** A dead machine: every process is gone at once and no peer hears of it. What it wrote to its disk stays. */
  readonly kill: () => Promise<void>;
  /** An orderly shutdown; killed after 20 s. */
  readonly stop: () => Promise<void>;
  /** Boots a host that was stopped or killed, with its cable plugged after a kill. */
  readonly start: () => Promise<void>;
  /** An orderly reboot; a reboot that a program in the host asks for is followed just so. */
  readonly reboot: () => Promise<void>;
}

/** The signals, by number, that systemd takes as `poweroff` and `reboot` (SIGRTMIN+4 and SIGRTMIN+5). */
const signals = { poweroff: 38, reboot: 39 } as const;
const stopLimitMs = 20_000;

const environment: Environment = {
  PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
  HOME: '/root',
  USER: 'root',
  LANG: 'C.UTF-8',
  TERM: 'dumb',
};

/** Boots the host and resolves when systemd in it has finished starting. */
export async function bootHost(machine: MachineSpec, cable: CableSpec): Promise<BootedHost> {
  await layCable(cable);
  const power = powerOf(machine);
  await power.on();
  let cableLaid = true;

  const start = async (argv: readonly string[], env: Environment = {}): Promise<Command> =>
    enter(await power.current(), argv, { ...environment, ...env });
  const run: BootedHost['run'] = async (argv, options = {}) => finish(await start(argv, options.env), options);

  return {
    name: machine.hostname,
    address: cable.address,
    run,
    spawn: async (argv, options = {}) => programOf(await start(argv, options.env)),
    ...filesOf(machine.hostname, run),
    cutCable: () => setCable(cable, 'down'),
    plugCable: () => setCable(cable, 'up'),
    kill: async () => {
      await setCable(cable, 'down');
      await power.off('SIGKILL');
      await removeCable(cable);
      cableLaid = false;
    },
    stop: () => power.off(signals.poweroff),
    start: async () => {
      if (!cableLaid) await layCable(cable);
      cableLaid = true;
      await power.on();
    },
    reboot: async () => {
      await power.off(signals.reboot);
      await power.current();
    },
  };
}

interface Power {
  /** The machine as it runs, or as soon as it has finished booting again; rejects when it is off. */
  readonly current: () => Promise<Machine>;
  readonly on: () => Promise<void>;
  /** Resolves when the machine has ended. */
  readonly off: (name: NodeJS.Signals | number) => Promise<void>;
}

function powerOf(spec: MachineSpec): Power {
  let machine: Promise<Machine> | null = null;

  const boot = async (): Promise<Machine> => {
    const booted = await bootMachine(spec);
    booted.ended.then((status) => {
      machine = status === rebootStatus ? boot() : null;
      machine?.catch(() => {});
    });
    return booted;
  };
  const current = async (): Promise<Machine> => {
    if (machine === null) throw new Error(`${spec.hostname} is off`);
    return machine;
  };
  const on = async (): Promise<void> => {
    if (machine !== null) throw new Error(`${spec.hostname} is on already`);
    machine = boot();
    await machine;
  };
  const off = async (name: NodeJS.Signals | number): Promise<void> => {
    const { initPid, ended } = await current();
    signal(initPid, name);
    const timer = setTimeout(() => signal(initPid, 'SIGKILL'), stopLimitMs);
    await ended;
    clearTimeout(timer);
  };
  return { current, on, off };
}

function filesOf(name: string, run: BootedHost['run']): Pick<BootedHost, 'readFile' | 'writeFile'> {
  const script = 'mkdir -p "$(dirname "$1")" && cat >"$1" && if [ -n "$2" ]; then chmod "$2" "$1"; fi';
  const check = ({ status, stdout, stderr }: Outcome): string => {
    if (status !== 0) throw new Error(`${name}: ${stderr.trim()}`);
    return stdout;
  };
  return {
    readFile: async (path) => check(await run(['cat', path])),
    writeFile: async (path, content, mode = '') => {
      check(await run(['sh', '-c', script, 'sh', path, mode], { input: content }));
    },
  };
}
