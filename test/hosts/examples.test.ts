/** The examples on a booted Debian with the real programs: applied, nothing left to do, what they promise kept. `roles.test.ts` has the roles among them. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { changed, EXAMPLE_PACKAGES, exampleText, failed, removeExample, runExample } from './example-host.js';
import { type Fleet, startFleet } from './fleet.js';
import type { BootedHost } from './host.js';
import { sh } from './local-orch.js';
import { describeHosts } from './requirements.js';

describeHosts('the examples on a booted machine', () => {
  let fleet: Fleet;
  let host: BootedHost;

  const orch = (verb: 'plan' | 'apply', name: string) =>
    runExample(host, verb, { name, text: exampleText(`${name}.orch.yaml`), flags: [] });
  const service = async (unit: string) =>
    (await host.run(['systemctl', 'show', '-P', 'ActiveState', '-P', 'UnitFileState', unit])).stdout.trim().split('\n');

  /** Applies an example, after which nothing is left to do. */
  async function converge(name: string): Promise<void> {
    expect(failed(await orch('plan', name))).toEqual([]);
    const applied = await orch('apply', name);
    expect(failed(applied)).toEqual([]);
    expect(changed(applied)).not.toEqual([]);
    expect(changed(await orch('plan', name))).toEqual([]);
  }

  beforeAll(async () => {
    fleet = await startFleet({ hosts: ['example'], packages: EXAMPLE_PACKAGES });
    host = fleet.host('example');
    const stopped = 'prometheus-node-exporter logrotate.timer';
    await sh(host, `systemctl disable --now ${stopped}`);
    // The image keeps timers from taking apt's lock, and the clock of a container is not its own to set.
    await sh(host, 'rm -f /etc/systemd/system/apt-daily.timer /etc/systemd/system/apt-daily-upgrade.timer');
    await host.writeFile(
      '/etc/systemd/system/systemd-timesyncd.service.d/container.conf',
      '[Unit]\nConditionVirtualization=\n',
    );
    await sh(host, 'systemctl daemon-reload');
  });

  afterAll(async () => {
    await fleet?.stop();
  });

  it('hello', async () => {
    await converge('hello');
    expect(await host.readFile('/opt/orch-hello/motd')).toContain('This machine is example.');
  });

  it('baseline', async () => {
    await converge('baseline');
    expect(await host.readFile('/etc/motd')).toContain('This is example, managed by orch.');
    expect(await sh(host, 'readlink -f /etc/localtime')).toMatch(/\/UTC$/);
    expect(await sh(host, 'getent group operators')).toMatch(/^operators:/);
    expect(await service('systemd-timesyncd')).toEqual(['active', 'enabled']);
  });

  it('node-exporter', async () => {
    await converge('node-exporter');
    expect(await service('prometheus-node-exporter')).toEqual(['active', 'enabled']);
    expect(
      await sh(
        host,
        'curl -sS --retry 5 --retry-connrefused --max-time 10 http://127.0.0.1:9100/metrics | head -c 100',
      ),
    ).toContain('# HELP');
    expect((await host.run(['curl', '-sS', '--max-time', '5', `http://${host.address}:9100/metrics`])).status).toBe(7);
  });

  it('unattended-upgrades', async () => {
    await converge('unattended-upgrades');
    expect(await service('apt-daily-upgrade.timer')).toEqual(['active', 'enabled']);
    expect(await sh(host, 'apt-config dump Unattended-Upgrade::Automatic-Reboot')).toContain('"false"');
  });

  it('log-rotation', async () => {
    await converge('log-rotation');
    expect(await service('logrotate.timer')).toEqual(['active', 'enabled']);
    await sh(host, 'echo line >/var/log/app/a.log && logrotate --force /etc/logrotate.d/app');
    expect(await sh(host, 'ls /var/log/app')).toBe('a.log\na.log.1');
  });

  it('nightly-backup, and without it nothing of it is left', async () => {
    await converge('nightly-backup');
    expect(await service('nightly-backup.timer')).toEqual(['active', 'enabled']);
    await sh(host, 'systemctl start nightly-backup');
    expect(await sh(host, 'tar -tf /var/backups/orch/etc-*.tar etc/hostname')).toBe('etc/hostname');
    expect(failed(await removeExample(host, 'nightly-backup'))).toEqual([]);
    expect(
      await sh(host, 'ls /etc/systemd/system/nightly-backup* /usr/local/sbin/nightly-backup 2>/dev/null; true'),
    ).toBe('');
    expect(await sh(host, 'ls /var/backups/orch | wc -l')).toBe('1');
  });
});
