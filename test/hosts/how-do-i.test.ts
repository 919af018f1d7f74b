/** The answers of docs/how-do-i.md on one booted Debian: applied together, nothing left to do, and removed. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { RunResult } from '../../src/contract/runs.js';
import type { ResourceResult } from '../../src/resources/result.js';
import { type Answer, answers, nameOf } from '../support/answers.js';
import { tarGzOf } from '../support/archives.js';
import { changed, EXAMPLE_PACKAGES, failed } from './example-host.js';
import { type Fleet, startFleet } from './fleet.js';
import type { BootedHost } from './host.js';
import { sh } from './local-orch.js';
import { describeHosts } from './requirements.js';
import { startVendor, type Vendor, vendorTools } from './vendor.js';

/** Words of questions whose answers a container cannot carry out; they are planned, which changes nothing. */
const ONLY_PLANNED: Readonly<Record<string, string>> = {
  'swap file': 'a container has no swap of its own, and swappiness is that of the whole machine',
  'load a kernel module': 'a container loads no module',
  'mount a disk': 'a container has no disk',
  'network share': 'the host reaches no server of files',
  'git repository': 'the host reaches no repository, and its git is a package without content',
  GRUB: 'a container has no boot loader',
  'apt use a proxy': 'the host reaches no proxy, and the other answers install packages',
};

const DIRECTORY = '/root/answers';

describeHosts(
  'the answers to everyday questions on a booted machine',
  () => {
    let vendor: Vendor;
    let fleet: Fleet;
    let host: BootedHost;
    const run = (script: string) => sh(host, script);
    const isOnlyPlanned = ({ question }: Answer) => Object.keys(ONLY_PLANNED).some((words) => question.includes(words));

    const secretFiles = (modules: readonly string[]) =>
      [
        ...new Set(modules.flatMap((text) => [...text.matchAll(/secrets\.([A-Z_]+)/g)].map(([, name = '']) => name))),
      ].map((name) => `--secret-file=${name}=/root/secret`);

    async function orch(verb: 'plan' | 'apply', modules: readonly string[]): Promise<readonly ResourceResult[]> {
      await run(`rm -f ${DIRECTORY}/*.orch.yaml`);
      for (const text of modules) await host.writeFile(`${DIRECTORY}/${nameOf(text)}.orch.yaml`, atHome(text));
      const consent = verb === 'apply' ? ['--yes', '--allow-removals', '1000'] : [];
      const argv = ['orch', verb, '--local', '-f', DIRECTORY, '-o', 'json', ...secretFiles(modules), ...consent];
      const { stdout, stderr } = await host.run(argv, { timeoutMs: 300_000 });
      if (!stdout.startsWith('{')) throw new Error(`orch ${verb} says:\n${stderr}${stdout}`);
      return (JSON.parse(stdout) as RunResult).resources;
    }

    /** The host reaches no server but the test's own. */
    const atHome = (text: string) =>
      text
        .replaceAll(/https:\/\/(downloads|packages)\.example\.net/g, `http://${fleet.gateway}:${vendor.port}`)
        .replaceAll(/(?<=key_sha256: )[0-9a-f]{64}/g, vendor.keySum)
        .replaceAll(/(?<= sha256: )[0-9a-f]{64}/g, vendor.fileSum)
        .replaceAll(
          /(\/(\w+_[0-9.]+\.deb)\n +sha256: )[0-9a-f]{64}/g,
          (_, before, file) => before + vendor.packageSum(file),
        );

    beforeAll(async () => {
      const names = ['git', 'tmux', 'rsync', 'telnetd', 'htop', 'apache2', 'agent-of-vendor'];
      const docker = ['5:27.3.1-1', '5:27.4.0-1'].map((version) => ({ name: 'docker-ce', version }));
      const collector = { name: 'collector', version: '1.8.2' };
      const debs = [...names.map((name) => ({ name, version: '1.0' })), ...docker, collector];
      const tarball = tarGzOf({ name: 'exporter/exporter', mode: 0o755, content: '#!/bin/sh\n' });
      vendor = await startVendor(debs, tarball);
      fleet = await startFleet({
        hosts: ['everyday'],
        packages: EXAMPLE_PACKAGES,
        capabilities: ['CAP_SYS_ADMIN', 'CAP_NET_ADMIN'],
      });
      host = fleet.host('everyday');
      await host.writeFile(
        '/etc/apt/sources.list',
        `deb [trusted=yes] http://${fleet.gateway}:${vendor.port}/own ./\n`,
      );
      await host.writeFile('/root/secret', '$y$j9T$abcdefgh$0123456789abcdefghijklmnopqrstuvwxyzABCDEF1');
      await host.writeFile(`${DIRECTORY}/files/logo.png`, new Uint8Array([0x89, 0x50, 0x4e, 0x47, 0, 255]));
      await host.writeFile(`${DIRECTORY}/files/site/index.html`, 'hello');
      await run('apt-get update -q && apt-get install -qy telnetd && mkdir -p /srv/old/more && useradd former');
      // Settings of the kernel are read-only in a container, and the clock is not its own to set.
      await run('mount -o remount,rw /proc/sys');
      const unit = '/etc/systemd/system/systemd-timesyncd.service.d/container.conf';
      await host.writeFile(unit, '[Unit]\nConditionVirtualization=\n');
      await run('systemctl daemon-reload');
    });

    afterAll(async () => {
      await fleet?.stop();
      await vendor?.stop();
    });

    let applied: readonly ResourceResult[] = [];
    const here = answers.filter((answer) => !isOnlyPlanned(answer)).flatMap(({ modules }) => modules);

    it('are planned where a container cannot carry them out', async () => {
      const planned = await orch(
        'plan',
        answers.filter(isOnlyPlanned).flatMap(({ modules }) => modules),
      );
      expect(failed(planned)).toEqual([]);
      expect([...changed(planned)].sort()).toEqual([
        '/etc/apt/apt.conf.d/80proxy create',
        '/etc/default/grub: GRUB_CMDLINE_LINUX create',
        '/etc/fstab: /swapfile none swap sw 0 0 create',
        '/etc/share.cred create',
        '/srv/backup create',
        '/srv/checkout create',
        '/srv/data create',
        '/srv/share create',
        'br_netfilter create',
        'git create',
        'menu of GRUB run',
        'swap run',
        'use of the swap file run',
        'vm.swappiness create',
      ]);
    });

    it('are applied together, and leave nothing to do', async () => {
      applied = await orch('apply', here);
      expect(failed(applied)).toEqual([]);
      expect(changed(await orch('plan', here))).toEqual([]);
    });

    it('are removed when they are no longer declared', async () => {
      const removed = await orch('apply', ['name: none\nsupports: [{}]\nresources: []\n']);
      expect(failed(removed)).toEqual([]);
      const gone = new Map(removed.map((one) => [`${one.kind} ${one.identity}`, one.action]));
      const made = applied.filter(({ action }) => action === 'create');
      expect(made.length).toBeGreaterThan(30);
      expect(
        made.flatMap(({ kind, identity }) => {
          const action = gone.get(`${kind} ${identity}`);
          return action === 'remove' ? [] : [`${kind} ${identity} ${action}`];
        }),
      ).toEqual([]);
    });
  },
  vendorTools,
);
