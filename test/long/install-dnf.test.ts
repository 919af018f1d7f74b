/** The package for dnf on a booted machine: installed, upgraded, installed again, removed, with services that run all the while. */
import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
// @ts-expect-error It is a script.
import { requiredGlibc } from '../../scripts/package/glibc.mjs';
// @ts-expect-error It is a script.
import { makeRpm } from '../../scripts/package/rpm.mjs';
import type { Agent } from '../../src/contract/agents.js';
import { VERSION } from '../../src/kernel/version.js';
import { mustRun } from '../hosts/command.js';
import { type Fleet, startFleet } from '../hosts/fleet.js';
import type { BootedHost } from '../hosts/host.js';
import { makePackages } from '../hosts/orch-package.js';
import { describeHosts } from '../hosts/requirements.js';
import { type RpmRepository, rpmRepository, rpmTools } from '../hosts/rpm-repository.js';
import { until } from '../support/orch.js';

const NEWER = '9.9.9';

/** Names in the packages' database what the machine, a Debian, has from other packages. */
const SYSTEM = [
  { name: 'bash', version: '5', head: ['Provides: /bin/sh'] },
  { name: 'glibc', version: '2.36' },
  { name: 'libgcc', version: '12' },
  { name: 'libstdc++', version: '12' },
];

const REPO = '[orch]\nname=orch\nbaseurl=file:///srv/rpms\ngpgcheck=0\n';

const MOTD = `name: motd
supports:
  - platform: linux
resources:
  - resource:
      file-unix: {path: /etc/motd, content: "kept by orch\\n"}
`;

const needs = {
  ...rpmTools,
  rpm2archive: 'rpm',
  patchelf: 'patchelf',
  strip: 'binutils',
  'g++': 'g++',
  make: 'make',
  python3: 'python3',
};

/** Makes of an `.rpm` a newer one beside it: its programs say that version, and its settings files have one more comment. */
async function makeNewerRpm(rpm: string, version: string): Promise<void> {
  const scratch = mkdtempSync(join(tmpdir(), 'orch-newer-'));
  try {
    const tree = join(scratch, 'tree');
    mkdirSync(tree);
    await mustRun(['sh', '-ec', 'rpm2archive - <"$1" | tar -xz -C "$2"', 'sh', rpm, tree]);
    const zsh = join(tree, 'usr/share/zsh');
    renameSync(join(zsh, 'site-functions'), join(zsh, 'vendor-completions'));
    for (const name of readdirSync(join(tree, 'etc/orch'))) {
      appendFileSync(join(tree, 'etc/orch', name), `# Of ${version}.\n`);
    }
    const bundle = join(tree, 'usr/lib/orch/dist/orch');
    for (const name of readdirSync(bundle)) {
      const file = join(bundle, name);
      // Compiled code of the former text.
      if (name.endsWith('.v8')) rmSync(file);
      else writeFileSync(file, readFileSync(file, 'latin1').replaceAll(VERSION, version), 'latin1');
    }
    const libc = requiredGlibc(join(tree, 'usr/lib/orch'));
    makeRpm({ tree, scratch, out: dirname(rpm), cpu: process.arch, version, libc, level: 1 });
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

describeHosts(
  'a machine with dnf and the RPM package',
  () => {
    let packages: string;
    let repository: RpmRepository;
    let fleet: Fleet;
    let host: BootedHost;

    const ok = async (line: string): Promise<string> => {
      const { status, stdout, stderr } = await host.run(['sh', '-c', line], { timeoutMs: 180_000 });
      if (status !== 0) throw new Error(`${line} ended with ${status}:\n${stderr}${stdout}`);
      return stdout;
    };
    const agents = async () => {
      const { status, stdout } = await host.run(['orch', 'agents', 'list', '-o', 'json']);
      return status === 0 ? (JSON.parse(stdout) as readonly Agent[]) : [];
    };
    const connected = async (version: string) =>
      (await agents()).some((agent) => agent.connected && agent.agent_version === version);
    const services = () => ok('systemctl is-active orch-serve orch-agent; systemctl is-enabled orch-serve orch-agent');
    const processes = async () =>
      (await ok('systemctl show --property=MainPID --value orch-serve orch-agent')).trim().split(/\n+/);
    const settings = () => ok('cat /etc/orch/agent.yaml /etc/orch/orchestrator.yaml');
    const running = 'active\nactive\nenabled\nenabled\n';

    /** Copies the packages of a version to the repository, and writes its index anew. */
    const publish = async (version: string) => {
      await mustRun(['cp', join(packages, `orch-${version}-1.x86_64.rpm`), repository.directory]);
      await repository.publish([]);
    };

    beforeAll(async () => {
      packages = await makePackages('rpm');
      await makeNewerRpm(join(packages, `orch-${VERSION}-1.x86_64.rpm`), NEWER);
      expect(readdirSync(packages).filter((name) => name.endsWith('.rpm'))).toHaveLength(2);
      repository = rpmRepository();
      await repository.publish(SYSTEM);
      await publish(VERSION);
      const binds = [{ from: repository.directory, to: '/srv/rpms' }];
      fleet = await startFleet({ hosts: ['orch'], project: null, packages: ['dnf', 'rpm'], binds });
      host = fleet.host('orch');
      await host.writeFile('/etc/yum.repos.d/test.repo', REPO);
    }, 900_000);

    afterAll(async () => {
      await fleet?.stop();
      repository?.remove();
      if (packages !== undefined) rmSync(packages, { recursive: true, force: true });
    });

    it('gets the command, the user and services that do not start by themselves', async () => {
      await ok('dnf -y install orch 2>&1');
      expect(await ok('orch --version')).toBe(`orch ${VERSION}\n`);
      expect(await ok('rpm --verify orch')).toBe('');
      expect(await ok('getent passwd orch')).toContain('/var/lib/orch');
      expect(await host.run(['systemctl', 'is-enabled', 'orch-serve', 'orch-agent'])).toMatchObject({
        stdout: 'disabled\ndisabled\n',
      });
    });

    it('becomes the orchestrator and an agent of itself', async () => {
      expect(await ok('orch serve install --advertised-host orch')).toContain('The orchestrator runs as orch-serve');
      const { token } = JSON.parse(await ok('orch enroll create --auto-approve --tag role=web -o json'));
      expect(await ok(`echo ${token} | orch agent install orch --token - --terminals on`)).toContain(
        'It is connected.',
      );
      expect(await services()).toBe(running);
      expect((await agents()).map(({ tags }) => tags)).toEqual([{ role: 'web' }]);
      await host.writeFile('/root/motd.yaml', MOTD);
      await ok('orch apply -l role=web -f /root/motd.yaml --yes');
      expect(await host.readFile('/etc/motd')).toBe('kept by orch\n');
      expect(await ok('orch exec -l role=web --yes -- id -u')).toContain('0\n');
    });

    it('keeps services and settings over an upgrade, and restarts what ran', async () => {
      const before = { settings: await settings(), processes: await processes() };
      await publish(NEWER);
      await ok('dnf -y --refresh upgrade orch 2>&1');
      expect(await ok('rpm -q orch; orch --version')).toBe(`orch-${NEWER}-1.x86_64\norch ${NEWER}\n`);
      await until(() => connected(NEWER), 'the upgraded agent is connected to the upgraded orchestrator');
      expect(await services()).toBe(running);
      const after = await processes();
      expect(before.processes.filter((pid) => after.includes(pid))).toEqual([]);
      expect(await settings()).toBe(before.settings);
      expect(await ok('cat /etc/orch/*.rpmnew')).toContain(`# Of ${NEWER}.`);
      expect(await ok('orch exec -l role=web --yes -- id -u')).toContain('0\n');
    });

    it('keeps them over an installation of the same package, and over a reboot', async () => {
      await ok('dnf -y reinstall orch 2>&1');
      await until(() => connected(NEWER), 'the agent is connected again');
      expect(await services()).toBe(running);
      await host.reboot();
      await until(() => connected(NEWER), 'the agent is connected after the reboot');
      expect(await services()).toBe(running);
    });

    it('keeps data and changed settings when the package is removed, and nothing else of it', async () => {
      await ok('dnf -y remove orch 2>&1');
      expect((await host.run(['systemctl', 'is-active', 'orch-serve', 'orch-agent'])).stdout).toBe(
        'inactive\ninactive\n',
      );
      const places = ['proc', 'srv', 'sys', 'run', 'tmp', 'var/cache/dnf', 'var/lib/dnf', 'var/log'];
      const skipped = places.map((place) => `-path /${place}`).join(' -o ');
      const found = await ok(
        `find / -xdev \\( ${skipped} \\) -prune -o \\( -name "*orch*" -o -path "/etc/orch/*" \\) -print | sort`,
      );
      const isData = (path: string) => /^\/var\/lib\/orch(-agent|-serve)?(\/|$)/.test(path);
      expect(
        found
          .trim()
          .split('\n')
          .filter((path) => !isData(path)),
      ).toEqual([
        '/etc/orch',
        ...['agent', 'orchestrator'].flatMap((name) => [
          `/etc/orch/${name}.yaml.rpmnew`,
          `/etc/orch/${name}.yaml.rpmsave`,
        ]),
        '/root/.config/orch',
        '/root/.local/state/orch',
      ]);
      expect(await ok('ls /var/lib/orch/orch.db /var/lib/orch-agent/identity.key')).not.toBe('');
      expect(await host.readFile('/etc/motd')).toBe('kept by orch\n');
    });

    it('goes on where it was when the package comes back', async () => {
      await ok('dnf -y install orch 2>&1');
      await ok('orch serve install --advertised-host orch');
      await ok('orch agent install orch');
      await until(() => connected(NEWER), 'the agent is connected to its orchestrator');
      expect((await agents()).map(({ tags }) => tags)).toEqual([{ role: 'web' }]);
    });
  },
  needs,
);
