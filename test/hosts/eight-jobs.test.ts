/** Eight everyday jobs on a booted Debian: applied, nothing left to do, and removed. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { eightJobs } from '../support/eight-jobs.js';
import { mustRun } from './command.js';
import { changed, EXAMPLE_PACKAGES, failed, removeExample, runExample } from './example-host.js';
import { type Fleet, startFleet } from './fleet.js';
import type { BootedHost } from './host.js';
import { sh } from './local-orch.js';
import { describeHosts } from './requirements.js';
import { startVendor, type Vendor, vendorTools } from './vendor.js';

/** What each job has brought about, as the machine says it. */
const PROOFS: Readonly<Record<string, readonly [script: string, says: RegExp]>> = {
  'nginx-two-sites': ['nginx -T 2>/dev/null | grep server_name', /shop\.example\.net;[\s\S]*|blog\.example\.net;/],
  'user-key-sudo': ['runuser -u ada -- sudo -n id -u; cat /home/ada/.ssh/authorized_keys', /^0\nssh-ed25519 .* ada@/],
  'unattended-upgrades': ['apt-config dump APT::Periodic::Unattended-Upgrade', /"1"/],
  'timer-and-cron': ['systemctl is-active backup.timer; cat /etc/cron.d/report', /^active\n[\s\S]*df -h/],
  sysctl: ['cat /proc/sys/net/core/somaxconn /proc/sys/net/ipv4/ip_forward', /^4096\n1$/],
  'exporter-from-tarball': ['systemctl show -P ActiveState -P User exporter', /^exporter\nactive$/],
  'postgresql-hba': [
    `runuser -u postgres -- psql -Atc "SELECT count(*) FROM pg_hba_file_rules WHERE error IS NULL AND '{reader}' = user_name"`,
    /^1$/,
  ],
  'third-party-repository': ['dpkg-query -W agent-of-vendor', /1\.0$/],
};

describeHosts(
  'eight everyday jobs on a booted machine',
  () => {
    let vendor: Vendor;
    let fleet: Fleet;
    let host: BootedHost;

    /** The host reaches no server but the test's own. */
    const atHome = (text: string) =>
      text
        .replaceAll(/https:\/\/[a-z]+\.example\.net/g, `http://${fleet.gateway}:${vendor.port}`)
        .replace(/(?<=key_sha256: )[0-9a-f]{64}/, vendor.keySum)
        .replace(/(?<= sha256: )[0-9a-f]{64}/, vendor.fileSum);

    beforeAll(async () => {
      const pack = `d=$(mktemp -d) && mkdir $d/exporter && printf '#!/bin/sh\\nexec sleep infinity\\n' >$d/exporter/exporter &&
      chmod 755 $d/exporter/exporter && tar -C $d --owner=0 --group=0 -cz exporter | base64 -w0 && rm -r $d`;
      const tarball = Buffer.from(await mustRun(['sh', '-c', pack]), 'base64');
      vendor = await startVendor([{ name: 'agent-of-vendor', version: '1.0' }], tarball);
      fleet = await startFleet({
        hosts: ['jobs'],
        packages: EXAMPLE_PACKAGES,
        capabilities: ['CAP_SYS_ADMIN', 'CAP_NET_ADMIN'],
      });
      host = fleet.host('jobs');
      await sh(
        host,
        'mount -o remount,rw /proc/sys; rm -f /etc/systemd/system/apt-daily-upgrade.timer; systemctl daemon-reload',
      );
    });

    afterAll(async () => {
      await fleet?.stop();
      await vendor?.stop();
    });

    it.each(Object.keys(PROOFS))('%s', async (name) => {
      const given = { name, text: atHome(eightJobs.get(name) ?? ''), flags: [] };
      const planned = await runExample(host, 'plan', given);
      const applied = await runExample(host, 'apply', given);
      expect(failed(applied)).toEqual([]);
      expect([...changed(applied)].sort()).toEqual([...changed(planned)].sort());
      expect(changed(await runExample(host, 'plan', given))).toEqual([]);
      const [script, says] = PROOFS[name] ?? ['', /^$/];
      expect(await sh(host, script)).toMatch(says);
      const made = applied.flatMap(({ action, identity }) => (action === 'create' ? [`${identity} remove`] : []));
      const removed = await removeExample(host, name);
      expect(failed(removed)).toEqual([]);
      expect(changed(removed)).toEqual(expect.arrayContaining(made));
    });
  },
  vendorTools,
);
