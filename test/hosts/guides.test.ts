/** The guides about an orchestrator that is a service: backups on a timer, restores, certificates, the token of metrics. */
import { rmSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Fleet, startFleet } from './fleet.js';
import type { BootedHost } from './host.js';
import { makePackages } from './orch-package.js';
import { describeHosts } from './requirements.js';

const needs = { patchelf: 'patchelf', strip: 'binutils', 'g++': 'g++', make: 'make', python3: 'python3' };
const text = (path: string) => readFile(fileURLToPath(new URL(`../../${path}`, import.meta.url)), 'utf8');

/** Returns the units in a guide by name: each `ini` block begins with a comment that has the name. */
const unitsIn = (guide: string): readonly (readonly [name: string, unit: string])[] =>
  [...guide.matchAll(/^```ini\n# (\S+)\n([\s\S]*?)^```$/gm)].map(([, name = '', unit = '']) => [name, unit] as const);

describeHosts(
  'an orchestrator that is a service',
  () => {
    let packages: string;
    let fleet: Fleet;
    let host: BootedHost;

    const ok = async (line: string): Promise<string> => {
      const { status, stdout, stderr } = await host.run(['sh', '-c', line], { timeoutMs: 120_000 });
      if (status !== 0) throw new Error(`${line} ended with ${status}:\n${stderr}${stdout}`);
      return stdout;
    };

    /** Waits until the orchestrator answers with the certificate that the profile has pinned. */
    const isReady = () => ok('for i in $(seq 60); do orch status && exit 0; sleep 0.5; done; exit 1');

    beforeAll(async () => {
      packages = await makePackages('deb');
      fleet = await startFleet({
        hosts: ['orch'],
        project: null,
        packages: ['curl', 'wget', 'openssl'],
        binds: [{ from: packages, to: '/srv/packages' }],
      });
      host = fleet.host('orch');
      await ok('dpkg --install /srv/packages/*.deb 2>&1');
      await ok('orch serve install --advertised-host orch');
      expect(await ok('orch status')).toContain('ok');
    });

    afterAll(async () => {
      await fleet?.stop();
      if (packages !== undefined) rmSync(packages, { recursive: true, force: true });
    });

    it('makes the backups of the timer in the guide', async () => {
      const units = unitsIn(await text('docs/guides/backup-restore-and-keys.md'));
      expect(units.map(([name]) => name)).toEqual(['orch-backup.service', 'orch-backup.timer']);
      for (const [name, unit] of units) await host.writeFile(`/etc/systemd/system/${name}`, unit);
      await ok('install -d -m 700 /var/backups/orch');
      await ok('systemctl daemon-reload && systemctl enable --now orch-backup.timer && systemctl start orch-backup');
      const [file = ''] = (await ok('ls /var/backups/orch')).trim().split('\n');
      expect(file).toMatch(/^orch-\d{4}-\d\d-\d\d\.db$/);
      expect(await ok(`stat -c "%a %U" /var/backups/orch/${file}`)).toBe('600 root\n');
    });

    it('is backed up to places that its service cannot see, and leaves nothing behind', async () => {
      await ok('mkdir -m 700 /mnt/backup /root/backup');
      for (const file of ['/mnt/backup/orch.db', '/root/backup/orch.db', '/tmp/orch.db']) {
        expect(await ok(`orch serve backup ${file}`)).toContain(`Backed up to ${file}`);
        expect(await ok(`stat -c "%a %U" ${file}`)).toBe('600 root\n');
      }
      await ok('install -d -o orch -g orch -m 700 /var/lib/orch/own');
      await ok('orch serve backup /var/lib/orch/own/orch.db && runuser -u orch -- orch serve backup /tmp/theirs.db');
      expect(await ok('stat -c "%a %U" /var/lib/orch/own/orch.db /tmp/theirs.db')).toBe('600 orch\n600 orch\n');
      expect(await ok('find /var/lib/orch ! -user orch; ls /var/lib/orch | grep partial || true')).toBe('');
      await ok('useradd eve');
      const { status, stderr } = await host.run([
        'runuser',
        '-u',
        'eve',
        '--',
        'orch',
        'serve',
        'backup',
        '/tmp/eve.db',
      ]);
      expect({ status, stderr }).toEqual({ status: 1, stderr: expect.stringContaining('run this as root or as') });
    });

    it('is backed up and restored by root or its own user while it is stopped, and can read everything afterwards', async () => {
      await ok('systemctl stop orch-serve');
      await ok('orch serve backup /mnt/backup/stopped.db');
      expect(await ok('stat -c "%a %U" /mnt/backup/stopped.db')).toBe('600 root\n');
      await ok('orch serve restore /mnt/backup/orch.db --yes');
      expect(await ok('find /var/lib/orch ! -user orch')).toBe('');
      await ok('systemctl start orch-serve');
      await isReady();
      await ok('systemctl stop orch-serve');
      await ok('cp /mnt/backup/orch.db /tmp/readable.db && chmod 644 /tmp/readable.db');
      await ok('runuser -u orch -- orch serve restore /tmp/readable.db --yes');
      expect(await ok('find /var/lib/orch ! -user orch')).toBe('');
      await ok('systemctl start orch-serve');
      await isReady();
      expect(await ok('orch audit verify')).toContain('intact');
    });

    it('is restored with its keys on a new host, before the service is installed', async () => {
      await ok('mkdir -m 700 /mnt/backup/keys && cp -p /var/lib/orch/*.key /mnt/backup/keys/');
      await ok('orch serve uninstall --yes && rm -r /var/lib/orch');
      await ok('install -d -m 700 /var/lib/orch && install -m 600 /mnt/backup/keys/*.key /var/lib/orch/');
      await ok('orch serve restore /mnt/backup/orch.db --yes && orch serve install --advertised-host orch');
      expect(await ok('find /var/lib/orch ! -user orch')).toBe('');
      await isReady();
    });

    it('serves a certificate of the hook after its restart, and no client with the same key notices', async () => {
      await host.writeFile('/usr/local/sbin/orch-certificate', await text('examples/certificates/deploy-hook.sh'));
      await ok('chmod 755 /usr/local/sbin/orch-certificate');
      // The first certificate has the key that the profile has pinned.
      await ok(
        'mkdir /root/live && cd /root/live && cp /var/lib/orch/api.key privkey.pem && ' +
          'openssl req -x509 -key privkey.pem -subj /CN=renewed -addext subjectAltName=DNS:orch -days 2 -out fullchain.pem',
      );
      await ok(
        'printf "tls_cert: /etc/orch/tls/api.crt\\ntls_key: /etc/orch/tls/api.key\\n" >> /etc/orch/orchestrator.yaml',
      );
      await ok('RENEWED_LINEAGE=/root/live /usr/local/sbin/orch-certificate');
      const subject = 'openssl s_client -connect 127.0.0.1:4748 </dev/null 2>/dev/null | openssl x509 -noout -subject';
      await ok(`for i in $(seq 60); do ${subject} | grep -q renewed && exit 0; sleep 0.5; done; exit 1`);
      expect(await ok('stat -c "%a %U %G" /etc/orch/tls/api.key')).toBe('640 root orch\n');
      await isReady();
    });

    it('takes the token of metrics over with a reload', async () => {
      const line =
        'curl -s -o /dev/null -w "%{http_code}" --cacert /etc/orch/tls/api.crt --resolve orch:4748:127.0.0.1 ' +
        '-H "Authorization: Bearer $(cat /root/token)" https://orch:4748/api/v1/metrics';
      await ok('openssl rand -hex 32 > /root/token');
      expect(await ok(line)).toBe('401');
      await ok(
        'echo "metrics_token: $(cat /root/token)" >> /etc/orch/orchestrator.yaml && systemctl reload orch-serve',
      );
      await ok(`for i in $(seq 60); do [ "$(${line})" = 200 ] && exit 0; sleep 0.5; done; exit 1`);
    });

    it('leaves the places that the guide names empty after a purge, except for own files', async () => {
      const guide = await text('docs/guides/uninstalling.md');
      const [list] = /^ls -d (.+)$/m.exec(guide) ?? [];
      expect(list).toContain('/opt/orch');
      await ok('dpkg --purge orch 2>&1');
      const { stdout } = await host.run(['sh', '-c', `rm /etc/systemd/system/orch-backup.*; ${list}`]);
      expect(stdout.trim()).toBe('/etc/orch');
      expect(await ok('find /etc/orch -type f | sort')).toBe('/etc/orch/tls/api.crt\n/etc/orch/tls/api.key\n');
      expect(await host.run(['getent', 'passwd', 'orch'])).toMatchObject({ status: 2 });
    });
  },
  needs,
);
