/** The facts of this machine: attributes that `supports` and `when` test, those that expressions name, and volatile ones for lists. */

import { spawnSync } from 'node:child_process';
import { existsSync, statfsSync } from 'node:fs';
import { arch, cpus, hostname, networkInterfaces, platform, release, totalmem } from 'node:os';
import type { PartedAttributes, VolatileFacts } from '../kernel/facts.js';
import { MachineFiles } from './facts/machine-files.js';
import { readDefaultRoute, readFullName, readInterfaces } from './facts/network.js';
import { readDisks, readMounts, type SizesOf } from './facts/storage.js';
import { readVirtualization } from './facts/virtualization.js';

export type Attributes = Readonly<Record<string, string>>;

/** Facts as the agent reports them. */
export interface MachineFacts {
  readonly attributes: Attributes;
  readonly parts: PartedAttributes;
  readonly volatile: VolatileFacts;
}

/** Where the facts come from. */
export interface FactSources {
  /** Replaces the host name of the system. */
  readonly hostname?: string | undefined;
  /** Root of the files of the system [default: /]. */
  readonly root?: string;
  readonly interfaces?: typeof networkInterfaces;
  readonly sizesOf?: SizesOf;
}

const PLATFORMS: Readonly<Record<string, string>> = { linux: 'linux', darwin: 'macos', win32: 'windows' };
const ARCHITECTURES: Readonly<Record<string, string>> = { x64: 'x86_64', arm64: 'aarch64', arm: 'armv7' };
const MAX_LENGTH = 256;
const MB = 1024 ** 2;

/** Reads the facts of the machine from files and system calls alone, so that it costs an idle agent next to nothing. */
export function readFacts({
  hostname: name = hostname(),
  root = '/',
  interfaces = networkInterfaces,
  sizesOf = sizesOfMount,
}: FactSources = {}): MachineFacts {
  const files = new MachineFiles(root);
  const system = PLATFORMS[platform()] ?? platform();
  const isLinux = system === 'linux';
  const addresses = readInterfaces(interfaces(), files);
  const route = isLinux ? readDefaultRoute(files) : null;
  const own = route === null ? undefined : addresses[route.default_interface];
  const { mounts, free } = isLinux ? readMounts(files, sizesOf) : { mounts: [], free: {} };
  const boot = isLinux ? /^btime (\d+)$/m.exec(files.text('/proc/stat'))?.[1] : undefined;
  const attributes: Record<string, string | undefined> = {
    platform: system,
    arch: ARCHITECTURES[arch()] ?? arch(),
    ...(isLinux ? linuxRelease(files) : { version: system === 'macos' ? macosVersion() : release() }),
    init_system: initSystem(system, files),
    hostname: name,
    fqdn: readFullName(name, files),
    kernel: release(),
    cpus: String(cpus().length),
    processors: String(cpus().length),
    memory_bytes: String(totalmem()),
    memory_mb: String(Math.floor(totalmem() / MB)),
    virtualization: isLinux ? readVirtualization(files) : undefined,
    timezone: isLinux ? timeZone(files) : Intl.DateTimeFormat().resolvedOptions().timeZone,
    ...route,
    default_ipv4: own?.ipv4[0],
    default_ipv6: own?.ipv6[0],
  };
  return {
    attributes: Object.fromEntries(
      Object.entries(attributes).flatMap(([key, value]) => (value ? [[key, value.slice(0, MAX_LENGTH)]] : [])),
    ),
    parts: { interfaces: addresses, ...(isLinux ? { disks: readDisks(files), mounts: [...mounts] } : {}) },
    volatile: { ...(boot === undefined ? {} : { boot_time: Number(boot) }), free_mb: { ...free } },
  };
}

function sizesOfMount(path: string): ReturnType<SizesOf> {
  try {
    const { blocks, bavail, bsize } = statfsSync(path);
    return { total: blocks * bsize, free: bavail * bsize };
  } catch {
    return null;
  }
}

/** Returns the name of the zone that `/etc/localtime` links to; UTC without that file, as the C library takes it. */
function timeZone(files: MachineFiles): string | undefined {
  const target = files.target('/etc/localtime');
  if (target !== undefined) return /zoneinfo\/(?:posix\/|right\/)?(.+)$/.exec(target)?.[1];
  return files.word('/etc/timezone') ?? (files.names('/etc').includes('localtime') ? undefined : 'UTC');
}

/** Returns distribution, version and code name from os-release(5). A rolling distribution has no version. */
function linuxRelease(files: MachineFiles): {
  readonly distro?: string | undefined;
  readonly version?: string | undefined;
  readonly codename?: string | undefined;
} {
  const values = parseOsRelease(files.text('/etc/os-release') || files.text('/usr/lib/os-release'));
  return {
    distro: distroOf(values.get('ID')),
    version: values.get('VERSION_ID'),
    codename: values.get('VERSION_CODENAME'),
  };
}

/** Maps the ID `almalinux` to the name that modules use. */
const distroOf = (id: string | undefined): string | undefined => (id === 'almalinux' ? 'alma' : id);

/** Parses the assignments of os-release(5) with its quotes and backslashes. */
export function parseOsRelease(text: string): ReadonlyMap<string, string> {
  const values = new Map<string, string>();
  for (const line of text.split('\n')) {
    const [, key, raw] = /^([A-Z0-9_]+)=(.*)$/.exec(line.trim()) ?? [];
    if (key === undefined || raw === undefined) continue;
    const quoted = /^(["'])(.*)\1$/.exec(raw);
    values.set(key, (quoted?.[2] ?? raw).replace(/\\(["'$`\\])/g, '$1'));
  }
  return values;
}

function initSystem(system: string, files: MachineFiles): string | undefined {
  if (system === 'macos') return 'launchd';
  if (system === 'windows') return 'scm';
  if (existsSync(files.at('/run/systemd/system'))) return 'systemd';
  if (existsSync(files.at('/run/openrc')) || existsSync(files.at('/sbin/openrc-run'))) return 'openrc';
  return existsSync(files.at('/etc/init.d')) ? 'init.d' : undefined;
}

function macosVersion(): string | undefined {
  const { stdout } = spawnSync('/usr/bin/sw_vers', ['-productVersion'], { encoding: 'utf8', timeout: 5_000 });
  return stdout?.trim() || undefined;
}
