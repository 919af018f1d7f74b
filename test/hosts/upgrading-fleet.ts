/** A bare orchestrator and bare agents, all from the Debian package, and releases to which the agents can be upgraded. */
import { generateKeyPairSync, sign } from 'node:crypto';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Agent } from '../../src/contract/agents.js';
import { VERSION } from '../../src/kernel/version.js';
import { type Change, changeRelease } from './changed-release.js';
import { mustRun } from './command.js';
import { startFleet } from './fleet.js';
import type { BootedHost } from './host.js';
import { makePackagesOf } from './orch-package.js';

/** The programs that make packages, by program and Debian package. */
export const PACKAGING = { patchelf: 'patchelf', strip: 'binutils', 'g++': 'g++', make: 'make', python3: 'python3' };

interface Upgraded {
  readonly name: string;
  readonly status: string;
  readonly reason: string | null;
}

export interface UpgradingFleet {
  readonly control: BootedHost;
  readonly host: (name: string) => BootedHost;
  /** Returns the agents as the orchestrator lists them. */
  readonly agents: () => Promise<readonly Agent[]>;
  /** Returns the versions of the agents by name. */
  readonly versions: () => Promise<Readonly<Record<string, string>>>;
  /** Runs `orch agents upgrade … --to VERSION`. */
  readonly upgrade: (
    version: string,
    ...words: readonly string[]
  ) => Promise<{ readonly exit: number | null; readonly results: readonly Upgraded[] }>;
  readonly stop: () => Promise<void>;
}

/** Runs a line of shell on a host, and returns its output. Rejects when it fails. */
export async function ok(host: BootedHost, line: string): Promise<string> {
  const { status, stdout, stderr } = await host.run(['sh', '-c', line], { timeoutMs: 600_000 });
  if (status !== 0) throw new Error(`${host.name}: ${line} ended with ${status}:\n${stderr}${stdout}`);
  return stdout;
}

/**
 * Starts an orchestrator that offers the changed releases, and approved agents that allow terminals.
 * @param joins `package` installs the agents from the Debian package, `line` pastes the line of `orch enroll create` on bare machines
 */
export async function startUpgradingFleet(
  names: readonly string[],
  changes: readonly Change[],
  joins: 'package' | 'line' = 'package',
): Promise<UpgradingFleet> {
  const publisher = generateKeyPairSync('ed25519').privateKey;
  const packages = await makePackagesOf(publisher, 'deb', 'tar');
  const original = join(packages, `orch-${VERSION}-linux-${process.arch}.tar.gz`);
  for (const change of changes) await changeRelease(original, publisher, change);
  await mustRun(['sh', '-c', 'cd "$1" && sha256sum *.tar.gz > SHA256SUMS', 'sh', packages]);
  writeFileSync(join(packages, 'SHA256SUMS.sig'), sign(null, readFileSync(join(packages, 'SHA256SUMS')), publisher));
  const fleet = await startFleet({
    hosts: ['orch', ...names],
    project: null,
    packages: joins === 'line' ? ['curl'] : [],
    binds: [{ from: packages, to: '/srv/packages' }],
  });
  const control = fleet.host('orch');
  const agents = async () => JSON.parse(await ok(control, 'orch agents list -o json')) as readonly Agent[];
  const hosts = names.map((name) => fleet.host(name));
  const packaged = joins === 'package' ? [control, ...hosts] : [control];
  await Promise.all(packaged.map((host) => ok(host, 'dpkg --install /srv/packages/*.deb 2>&1')));
  await ok(control, 'orch serve install --advertised-host orch');
  await ok(control, 'install -d -o orch -m 700 /var/lib/orch/packages');
  await ok(control, 'install -o orch -m 600 -t /var/lib/orch/packages /srv/packages/SHA256* /srv/packages/*.tar.gz');
  for (const host of hosts) {
    const { command, curl } = JSON.parse(await ok(control, 'orch enroll create --auto-approve -o json'));
    await ok(host, joins === 'package' ? `${command} --terminals on` : `${curl} -s -- --terminals on`);
  }
  return {
    control,
    host: fleet.host,
    agents,
    versions: async () => Object.fromEntries((await agents()).map(({ name, agent_version }) => [name, agent_version])),
    upgrade: async (version, ...words) => {
      const argv = ['orch', 'agents', 'upgrade', ...words, '--to', version, '--yes', '-o', 'json'];
      const { status, stdout, stderr } = await control.run(argv, { timeoutMs: 900_000 });
      if (stdout === '') throw new Error(`no result, status ${status}:\n${stderr}`);
      return { exit: status, results: JSON.parse(stdout) };
    },
    stop: async () => {
      await fleet.stop();
      rmSync(packages, { recursive: true, force: true });
    },
  };
}
