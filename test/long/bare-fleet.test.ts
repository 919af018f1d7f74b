/** A fleet from nothing: four bare machines, of which one has a Debian package and three a pasted line, through its whole life. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { describeHosts } from '../hosts/requirements.js';
import { ok, PACKAGING, startUpgradingFleet, type UpgradingFleet } from '../hosts/upgrading-fleet.js';
import { until } from '../support/orch.js';

const NAMES = ['web-01', 'web-02', 'db-01'] as const;

const module = (name: string, resource: string) =>
  `name: ${name}\nsupports:\n  - platform: linux\nresources:\n  - resource:\n      ${resource}\n`;

describeHosts(
  'a fleet of bare machines',
  () => {
    let fleet: UpgradingFleet;
    const each = <T>(work: (name: string) => Promise<T>) => Promise.all(NAMES.map(work));
    const isWhole = async () => {
      const { status, stdout } = await fleet.control.run(['orch', 'agents', 'list', '-o', 'json']);
      return (
        status === 0 && (JSON.parse(stdout) as { connected: boolean }[]).filter((one) => one.connected).length === 3
      );
    };

    beforeAll(async () => {
      fleet = await startUpgradingFleet(
        NAMES,
        [{ version: '0.1.1' }, { version: '0.1.2', first: "if (process.argv[2] === 'agent') process.exit(7);" }],
        'line',
      );
    });

    afterAll(() => fleet?.stop());

    it('has a service on each machine, which survives a restart', async () => {
      await Promise.all([fleet.control.reboot(), ...NAMES.map((name) => fleet.host(name).reboot())]);
      await until(isWhole, 'all agents are connected');
    });

    it('applies a module', async () => {
      await fleet.control.writeFile(
        '/root/motd.orch.yaml',
        module('motd', 'file-unix: {path: /etc/motd, content: "ours\\n"}'),
      );
      await ok(fleet.control, 'orch apply -l "*" -f /root/motd.orch.yaml --yes');
      expect(await each((name) => fleet.host(name).readFile('/etc/motd'))).toEqual(['ours\n', 'ours\n', 'ours\n']);
    });

    it('is upgraded while an apply and a terminal run, and loses neither', async () => {
      const { control } = fleet;
      const slow = module('slow', 'script: {program: sh, manages: a slow thing, apply: "sleep 15; touch /root/done"}');
      await control.writeFile('/root/slow.orch.yaml', slow);
      const apply = ok(control, 'orch apply web-01 -f /root/slow.orch.yaml --yes -o json');
      const terminal = control.run(
        ['script', '-qec', 'orch exec -t db-01 -- sh -c "sleep 15; echo done"', '/dev/null'],
        {
          timeoutMs: 120_000,
        },
      );
      for (const name of ['web-01', 'db-01']) {
        const runs = async () => (await fleet.host(name).run(['pgrep', '-f', 'sleep 15'])).status === 0;
        await until(runs, `${name} is busy`);
      }
      const { exit, results } = await fleet.upgrade('0.1.1', '-l', '*', '--canary', '1');
      expect(results.map(({ status, reason }) => ({ status, reason }))).toEqual(
        NAMES.map(() => ({ status: 'succeeded', reason: null })),
      );
      expect(exit).toBe(0);
      expect(JSON.parse(await apply)).toMatchObject({ status: 'succeeded' });
      expect((await terminal).stdout).toContain('done');
      expect(Object.values(await fleet.versions())).toEqual(['0.1.1', '0.1.1', '0.1.1']);
    });

    it('stays as it is when a release cannot start', async () => {
      const { exit, results } = await fleet.upgrade('0.1.2', '-l', '*', '--canary', '1');
      expect(exit).toBe(3);
      expect(results.map(({ status }) => status).sort()).toEqual(['failed', 'skipped', 'skipped']);
      await until(isWhole, 'all agents are connected');
      expect(Object.values(await fleet.versions())).toEqual(['0.1.1', '0.1.1', '0.1.1']);
    });

    it('leaves only what the operator made', async () => {
      await each((name) => ok(fleet.host(name), 'orch agent uninstall --purge --yes'));
      await ok(fleet.control, 'dpkg --purge orch 2>&1');
      for (const host of [fleet.control, ...NAMES.map((name) => fleet.host(name))]) {
        const left = await ok(
          host,
          'find / -xdev -name "*orch*" -not -path "/proc/*" -not -path "/srv/*" -not -path "/var/log/*" -not -path "/root/*"',
        );
        const paths = left
          .split('\n')
          .filter((path) => path !== '' && !/^\/(run|sys|tmp|etc\/(hosts|hostname))/.test(path));
        expect(paths).toEqual([]);
      }
      expect(await fleet.host('web-01').readFile('/etc/motd')).toBe('ours\n');
    });
  },
  PACKAGING,
);
