/** The answers of docs/how-do-i.md on one booted Debian: applied together, nothing left to do, and removed. */
import { createServer, type Server } from 'node:http';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { RunResult } from '../../src/contract/runs.js';
import type { ResourceResult } from '../../src/resources/result.js';
import { type Answer, answers, nameOf } from '../support/answers.js';
import { type DebRepository, debRepository, debTools } from './deb-repository.js';
import { changed, EXAMPLE_PACKAGES, failed } from './example-host.js';
import { type Fleet, startFleet } from './fleet.js';
import type { BootedHost } from './host.js';
import { sh } from './local-orch.js';
import { describeHosts } from './requirements.js';

/** Words of questions whose answers a container cannot carry out; they are planned, which changes nothing. */
const ONLY_PLANNED: Readonly<Record<string, string>> = {
  'swap file': 'a container has no swap of its own, and swappiness is that of the whole machine',
  'load a kernel module': 'a container loads no module',
  GRUB: 'a container has no boot loader',
};

const DIRECTORY = '/root/answers';

describeHosts(
  'the answers to everyday questions on a booted machine',
  () => {
    let repository: DebRepository;
    let downloads: Server;
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
    const atHome = (text: string) => {
      const address = downloads.address();
      if (address === null || typeof address === 'string') throw new Error('no port');
      return text.replaceAll('https://downloads.example.net/', `http://${fleet.gateway}:${address.port}/`);
    };

    beforeAll(async () => {
      repository = debRepository();
      const names = ['git', 'tmux', 'rsync', 'telnetd', 'htop', 'apache2'];
      await repository.publish([
        ...names.map((name) => ({ name, version: '1.0' })),
        { name: 'docker-ce', version: '5:27.3.1-1' },
        { name: 'docker-ce', version: '5:27.4.0-1' },
      ]);
      downloads = createServer((_, response) => response.end('hello'));
      await new Promise<void>((resolve) => void downloads.listen(0, '0.0.0.0', resolve));
      fleet = await startFleet({
        hosts: ['everyday'],
        packages: EXAMPLE_PACKAGES,
        binds: [{ from: repository.directory, to: '/srv/debs' }],
        capabilities: ['CAP_SYS_ADMIN', 'CAP_NET_ADMIN'],
      });
      host = fleet.host('everyday');
      await host.writeFile('/etc/apt/sources.list', 'deb [trusted=yes] file:/srv/debs ./\n');
      await host.writeFile('/root/secret', '$y$j9T$abcdefgh$0123456789abcdefghijklmnopqrstuvwxyzABCDEF1');
      await host.writeFile(`${DIRECTORY}/files/logo.png`, new Uint8Array([0x89, 0x50, 0x4e, 0x47, 0, 255]));
      await run('apt-get update -q && apt-get install -qy telnetd && mkdir -p /srv/old/more && useradd former');
      // Settings of the kernel are read-only in a container, and the clock is not its own to set.
      await run('mount -o remount,rw /proc/sys');
      const unit = '/etc/systemd/system/systemd-timesyncd.service.d/container.conf';
      await host.writeFile(unit, '[Unit]\nConditionVirtualization=\n');
      await run('systemctl daemon-reload');
    });

    afterAll(async () => {
      downloads?.close();
      await fleet?.stop();
      repository?.remove();
    });

    let applied: readonly ResourceResult[] = [];
    const here = answers.filter((answer) => !isOnlyPlanned(answer)).flatMap(({ modules }) => modules);

    it('are planned where a container cannot carry them out', async () => {
      const planned = await orch(
        'plan',
        answers.filter(isOnlyPlanned).flatMap(({ modules }) => modules),
      );
      expect(failed(planned)).toEqual([]);
      expect(changed(planned)).toEqual([
        'swap run',
        '/etc/fstab: /swapfile none swap sw 0 0 create',
        'use of the swap file run',
        'vm.swappiness create',
        'br_netfilter create',
        '/etc/default/grub: GRUB_CMDLINE_LINUX create',
        'menu of GRUB run',
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
  debTools,
);
