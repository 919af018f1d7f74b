/** The attributes of this machine: those that `supports` and `when` test, and a few for display. */

import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { arch, cpus, hostname, platform, release, totalmem } from 'node:os';

export type Attributes = Readonly<Record<string, string>>;

const PLATFORMS: Readonly<Record<string, string>> = { linux: 'linux', darwin: 'macos', win32: 'windows' };
const ARCHITECTURES: Readonly<Record<string, string>> = { x64: 'x86_64', arm64: 'aarch64', arm: 'armv7' };
const MAX_LENGTH = 256;

/**
 * @param name replaces the host name of the system
 */
export function readFacts(name?: string): Attributes {
  const system = PLATFORMS[platform()] ?? platform();
  const facts: Record<string, string | undefined> = {
    platform: system,
    arch: ARCHITECTURES[arch()] ?? arch(),
    ...(system === 'linux'
      ? linuxRelease()
      : system === 'macos'
        ? { version: macosVersion() }
        : { version: release() }),
    init_system: initSystem(system),
    hostname: name ?? hostname(),
    kernel: release(),
    cpus: String(cpus().length),
    memory_bytes: String(totalmem()),
  };
  return Object.fromEntries(
    Object.entries(facts).flatMap(([key, value]) => (value ? [[key, value.slice(0, MAX_LENGTH)]] : [])),
  );
}

/** Returns distribution and version from os-release(5). A rolling distribution has no version. */
function linuxRelease(): { readonly distro?: string | undefined; readonly version?: string | undefined } {
  const file = ['/etc/os-release', '/usr/lib/os-release'].find((path) => existsSync(path));
  if (file === undefined) return {};
  const values = parseOsRelease(readFileSync(file, 'utf8'));
  return { distro: distroOf(values.get('ID')), version: values.get('VERSION_ID') };
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

function initSystem(system: string): string | undefined {
  if (system === 'macos') return 'launchd';
  if (system === 'windows') return 'scm';
  if (existsSync('/run/systemd/system')) return 'systemd';
  if (existsSync('/run/openrc') || existsSync('/sbin/openrc-run')) return 'openrc';
  return existsSync('/etc/init.d') ? 'init.d' : undefined;
}

function macosVersion(): string | undefined {
  const { stdout } = spawnSync('/usr/bin/sw_vers', ['-productVersion'], { encoding: 'utf8', timeout: 5_000 });
  return stdout?.trim() || undefined;
}
