/** The roles among the examples on a booted Debian: applied, changed by values, kept from mistakes, and removed. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { until } from '../support/orch.js';
import {
  bringFilesBeside,
  changed,
  EXAMPLE_PACKAGES,
  exampleText,
  failed,
  removeExample,
  runExample,
} from './example-host.js';
import { type Fleet, startFleet } from './fleet.js';
import type { BootedHost } from './host.js';
import { sh } from './local-orch.js';
import { describeHosts } from './requirements.js';
import { startVendor, type Vendor, vendorTools } from './vendor.js';

/** Settings that would be those of the kernel of the whole machine. */
const GLOBAL_SETTINGS = ['kernel.dmesg_restrict', 'kernel.kptr_restrict', 'fs.suid_dumpable', 'vm.swappiness'];

describeHosts(
  'the roles on a booted machine',
  () => {
    let fleet: Fleet;
    let host: BootedHost;
    let values: string;
    const run = (script: string) => sh(host, script);

    interface With {
      /** Value set above that of the examples. */
      readonly above?: object;
      readonly role?: 'web' | 'database';
      readonly text?: string;
      /** Service that a package of the apply starts by itself, which no plan foresees. */
      readonly started?: string;
    }

    const orch = async (verb: 'plan' | 'apply', name: string, { above, role, text }: With = {}) => {
      await host.writeFile(
        '/root/above.values.yaml',
        JSON.stringify({ values: [{ when: { agent: 'role' }, set: above ?? {} }] }),
      );
      await host.writeFile('/root/roles.values.yaml', values);
      const secrets = ['SHOP_KEY=/root/shop.key', 'SHOP_DB_PASSWORD=/root/password'];
      const flags = [
        '--values=/root/roles.values.yaml',
        ...(above === undefined ? [] : ['--values=/root/above.values.yaml']),
        ...(role === undefined ? [] : [`--tag=role=${role}`]),
        ...secrets.map((secret) => `--secret-file=${secret}`),
      ];
      return runExample(host, verb, { name, text: text ?? exampleText(`${name}.orch.yaml`), flags });
    };

    /** Applies a role, after which nothing is left to do; returns what it changed. */
    async function converge(name: string, how: With = {}): Promise<readonly string[]> {
      const planned = await orch('plan', name, how);
      expect(failed(planned)).toEqual([]);
      const applied = await orch('apply', name, how);
      expect(failed(applied)).toEqual([]);
      const foreseen = (results: Parameters<typeof changed>[0]) =>
        [...changed(results.filter(({ identity }) => identity !== how.started))].sort();
      expect(foreseen(applied)).toEqual(foreseen(planned));
      expect(changed(await orch('plan', name, how))).toEqual([]);
      return changed(applied);
    }

    beforeAll(async () => {
      fleet = await startFleet({
        hosts: ['role'],
        packages: EXAMPLE_PACKAGES,
        capabilities: ['CAP_SYS_ADMIN', 'CAP_NET_ADMIN'],
      });
      host = fleet.host('role');
      await bringFilesBeside(host);
      await run('systemctl disable --now ssh nginx; mount -o remount,rw /proc/sys; echo 192.0.2.1 db >>/etc/hosts');
      await run(`cd /root && printf 'a "quoted" pass\\\\word' >password && openssl req -x509 -newkey rsa:2048 -nodes -days 9 \
      -subj /CN=shop.example.net -addext subjectAltName=DNS:shop.example.net -keyout shop.key -out shop.pem 2>/dev/null`);
      const certificate = (await run('cat /root/shop.pem')).replaceAll('\n', `\n${' '.repeat(14)}`);
      values = exampleText('roles.values.yaml').replace(
        /-----BEGIN CERT[\s\S]*?-----END CERTIFICATE-----/,
        certificate,
      );
    });

    afterAll(async () => {
      await fleet?.stop();
    });

    describe('nginx', () => {
      const get = (url: string, flags = '') => {
        const names = ['shop', 'docs'].flatMap((name) =>
          ['80', '443'].map((port) => `--connect-to ${name}.example.net:${port}:127.0.0.1:${port}`),
        );
        return run(`curl -sSi --max-time 10 --cacert /root/shop.pem ${names.join(' ')} ${flags} ${url}`);
      };

      it('serves files, and programs with TLS', async () => {
        expect(await converge('nginx', { role: 'web' })).toContain('/etc/nginx/sites-enabled/default remove');
        await run('echo "the docs" >/srv/www/docs/index.html');
        await until(async () => (await get('http://docs.example.net/')).includes('the docs'), 'nginx serves the files');
        const shop = await get('https://shop.example.net/');
        // No program listens there.
        expect(shop).toContain('502 Bad Gateway');
        expect(shop).toMatch(/^x-frame-options: DENY/im);
        expect(await get('http://shop.example.net/cart')).toMatch(/^location: https:\/\/shop\.example\.net\/cart/im);
        expect(await run('stat -c "%a %U" /etc/nginx/tls/shop.key')).toBe('600 root');
      });

      it('keeps the certificate and the key that fit together', async () => {
        const before = await run('cat /etc/nginx/tls/shop.*');
        await run('cp /root/shop.key /root/kept && openssl genrsa -out /root/shop.key 2048');
        const broken = failed(await orch('apply', 'nginx', { role: 'web' }));
        await run('mv /root/kept /root/shop.key');
        expect(broken).toEqual(expect.arrayContaining([expect.stringMatching(/^\/etc\/nginx\/tls\/shop\.key failed/)]));
        expect(await run('cat /etc/nginx/tls/shop.*')).toBe(before);
        expect(await get('https://shop.example.net/')).toContain('502 Bad Gateway');
      });

      it('takes a site away by a value, and another number of workers', async () => {
        const above = { nginx: { workers: '2', sites: { shop: null } } };
        expect(await converge('nginx', { role: 'web', above })).toEqual(
          expect.arrayContaining([
            '/etc/nginx/conf.d/shop.conf remove',
            '/etc/nginx/tls/shop.key remove',
            'nginx reload',
          ]),
        );
        expect(await run('grep ^worker_processes /etc/nginx/nginx.conf; ls /etc/nginx/conf.d')).toBe(
          'worker_processes 2;\ndocs.conf',
        );
      });

      it('keeps its files and serves on when it does not take a configuration', async () => {
        const server_name = 'docs.example.net; include /etc/nginx/extra.conf';
        const above = { nginx: { sites: { docs: { server_name, root: '/srv/www/docs' }, shop: null } } };
        const before = await run('cat /etc/nginx/conf.d/docs.conf');
        expect(failed(await orch('apply', 'nginx', { role: 'web', above }))).toEqual(
          expect.arrayContaining([
            expect.stringMatching(/^\/etc\/nginx\/conf\.d\/docs\.conf failed: .*extra\.conf/s),
            expect.stringMatching(/^nginx skipped/),
          ]),
        );
        expect(await run('cat /etc/nginx/conf.d/docs.conf')).toBe(before);
        expect(await get('http://docs.example.net/')).toContain('the docs');
        await host.writeFile('/etc/nginx/extra.conf', 'add_header X-Mended yes;\n');
        expect(await converge('nginx', { role: 'web', above })).toContain('nginx reload');
        await until(async () => (await get('http://docs.example.net/')).includes('X-Mended: yes'), 'nginx has it');
      });

      it('is removed', async () => {
        expect(failed(await removeExample(host, 'nginx'))).toEqual([]);
        expect(await run('ls /etc/nginx/conf.d /etc/nginx/tls')).toBe('/etc/nginx/conf.d:\n\n/etc/nginx/tls:');
      });
    });

    describe('postgresql', () => {
      const pid = () => run('systemctl show -P MainPID postgresql@15-main');
      const query = (address: string) =>
        host.run([
          'sh',
          '-c',
          `PGPASSWORD=$(cat /root/password) psql -Atc 'SELECT current_user' 'host=${address} user=shop dbname=shop sslmode=require'`,
        ]);

      it('has its database, and lets the declared hosts in', async () => {
        await converge('postgresql', { role: 'database' });
        expect((await query(host.address)).stdout).toBe('shop\n');
        expect(await run("runuser -u postgres -- psql -Atc 'SHOW shared_buffers'")).toBe('1GB');
      });

      it('takes other rules without a restart', async () => {
        const before = await pid();
        const above = { postgresql: { access: [{ address: '192.0.2.0/24' }] } };
        expect(await converge('postgresql', { role: 'database', above })).toEqual([
          '/etc/postgresql/15/main/pg_hba.conf update',
          'postgresql@15-main reload',
        ]);
        await until(
          async () => (await query(host.address)).stderr.includes('no pg_hba.conf entry'),
          'the rules are read',
        );
        expect(await pid()).toBe(before);
      });

      it('keeps rules away that it does not take', async () => {
        const above = { postgresql: { access: [{ address: '10.0.0.0/99' }] } };
        expect(failed(await orch('apply', 'postgresql', { role: 'database', above }))).toEqual([
          expect.stringMatching(/^valid failed: .*invalid CIDR mask in address/s),
          expect.stringMatching(/^postgresql@15-main skipped/),
        ]);
        expect((await query(host.address)).stderr).toContain('no pg_hba.conf entry');
      });

      it('is removed, and its databases stay', async () => {
        expect(failed(await removeExample(host, 'postgresql'))).toEqual([]);
        expect(await run('ls /etc/postgresql/15/main/conf.d')).toBe('');
        expect(
          await run(`runuser -u postgres -- psql -Atc "SELECT datname FROM pg_database WHERE datname = 'shop'"`),
        ).toBe('shop');
      });
    });

    describe('container-engine', () => {
      const DAEMON = `#!/bin/sh\n[ -s /etc/docker/daemon.json ] && cp /etc/docker/daemon.json /run/docker-settings\nexec sleep infinity\n`;
      const UNIT = '[Service]\nExecStart=/bin/sh /usr/bin/dockerd\n[Install]\nWantedBy=multi-user.target\n';
      const postinst = 'groupadd -f docker; systemctl daemon-reload; systemctl enable --now docker';
      const files = { '/usr/bin/dockerd': DAEMON, '/usr/lib/systemd/system/docker.service': UNIT };
      const engine = (version: string) => ({ name: 'docker-ce', version, files, postinst });
      let vendor: Vendor;
      /** The repository of the test has no components. */
      const here = (above: object = {}): With => ({
        above: { 'container-engine': { mirror: `http://${fleet.gateway}:${vendor.port}`, ...above } },
        text: exampleText('container-engine.orch.yaml')
          .replace('      components: [stable]\n', '')
          .replace('"${{ inputs.suite }}"', './')
          .replace(/[0-9a-f]{64}/, vendor.keySum),
        started: 'docker',
      });

      beforeAll(async () => {
        const others = ['docker-ce-cli', 'containerd.io', 'docker-compose-plugin', 'podman-docker'];
        const debs = [engine('5:27.3.1-1'), engine('5:27.4.0-1'), ...others.map((name) => ({ name, version: '1.0' }))];
        vendor = await startVendor(debs, Buffer.from(''));
        await host.writeFile(
          '/etc/apt/sources.list',
          `deb [trusted=yes] http://${fleet.gateway}:${vendor.port}/own ./\n`,
        );
        await run(
          'apt-get update -q && apt-get install -qy podman-docker && rm -r /etc/apt/sources.list /var/lib/apt/lists/*',
        );
      });
      afterAll(async () => {
        await vendor?.stop();
      });

      it('comes from the repository of its makers, in place of what conflicts with it', async () => {
        expect(await converge('container-engine', here({ users: ['builder'] }))).toContain('podman-docker remove');
        expect(await run('id -nG builder; cat /run/docker-settings; systemctl is-enabled docker')).toBe(
          'builder docker\n{"log-driver":"local"}\nenabled',
        );
        expect(await run("dpkg-query -Wf '${Version}' docker-ce")).toBe('5:27.4.0-1');
      });

      it('takes other settings and another version by values', async () => {
        const above = { users: ['builder'], version: '5:27.3.1-1', settings: { 'data-root': '/srv/docker' } };
        expect(await converge('container-engine', here(above))).toEqual([
          'docker-ce update',
          '/etc/docker/daemon.json update',
          'docker restart',
        ]);
        expect(JSON.parse(await run('cat /run/docker-settings'))).toEqual({
          'data-root': '/srv/docker',
          'log-driver': 'local',
        });
      });

      it('is removed with its repository', async () => {
        expect(failed(await removeExample(host, 'container-engine'))).toEqual([]);
        expect(
          await run('ls -A /etc/apt/sources.list.d /etc/apt/keyrings /etc/docker; dpkg -l docker-ce | tail -1'),
        ).not.toMatch(/docker\.(sources|asc)|daemon|^ii/m);
      });
    });

    describe('users', () => {
      const maySudo = async (user: string) =>
        (await host.run(['runuser', '-u', user, '--', 'sudo', '-n', 'id', '-u'])).stdout === '0\n';

      it('have their keys, and sudo where it is theirs; former ones are not there', async () => {
        await run('useradd -m mallory && echo "mallory ALL=(ALL) NOPASSWD: ALL" >/etc/sudoers.d/mallory');
        await converge('users');
        expect(await run('stat -c "%U %a" /home/ada/.ssh/authorized_keys /etc/sudoers.d/ada')).toBe(
          'ada 600\nroot 440',
        );
        expect([await maySudo('ada'), await maySudo('lin')]).toEqual([true, false]);
        expect(await run('getent passwd mallory || ls -A /etc/sudoers.d')).toBe('README\nada');
      });

      it('lose sudo by a value, and go by one', async () => {
        const key = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHq0vKkQZ3mYJ3mFdd6m3Xo5aYxkqk0c7k2zRk0gJXlR ada';
        const above = { users: { users: { ada: { keys: [key] }, lin: null }, former: ['lin'] } };
        const done = await converge('users', { above });
        expect([...done].sort()).toEqual(['/etc/sudoers.d/ada remove', 'ada update', 'lin remove']);
        expect(await maySudo('ada')).toBe(false);
        expect(await run('cat /home/ada/.ssh/authorized_keys')).toContain(key);
        expect(await run('getent passwd lin || ls -d /home/lin')).toBe('/home/lin');
      });

      it('are removed', async () => {
        expect(failed(await removeExample(host, 'users'))).toEqual([]);
        expect(await run('getent passwd ada || ls -A /etc/sudoers.d')).toBe('README');
      });
    });

    describe('hardening', () => {
      const none = Object.fromEntries(GLOBAL_SETTINGS.map((key) => [key, null]));
      const own = (more: object = {}, sysctl: object = {}) => ({
        hardening: { sysctl: { ...none, ...sysctl }, ...more },
      });

      it('leaves SSH as it is where no user has a key', async () => {
        await run('rm -rf /home/*/.ssh');
        expect(failed(await orch('apply', 'hardening', { above: own() }))).toEqual([
          expect.stringMatching(/^has-key failed: .*no user has a key/s),
          expect.stringMatching(/10-orch\.conf skipped/),
          expect.stringMatching(/^ssh skipped/),
        ]);
        expect(await run('ls /etc/ssh/sshd_config.d; systemctl is-active ssh || true')).toBe('inactive');
      });

      it('sets the kernel, sshd and limits', async () => {
        await run(
          'useradd -m key && install -d -o key -m 700 /home/key/.ssh && echo ssh-ed25519 A >/home/key/.ssh/authorized_keys',
        );
        await converge('hardening', { above: own() });
        const settings = await run('sshd -T');
        expect(settings).toContain('passwordauthentication no\n');
        expect(settings).toMatch(/permitrootlogin (without|prohibit)-password\n/);
        expect(await run('cat /proc/sys/net/ipv4/conf/all/send_redirects /etc/security/limits.d/10-orch.conf')).toBe(
          '0\n* hard core 0\n@developers soft nofile 65536',
        );
      });

      it('changes single settings by a value, and keeps away what sshd does not take', async () => {
        const pid = await run('systemctl show -P MainPID ssh');
        const above = own({ sshd: { MaxAuthTries: '2' } }, { 'net.ipv4.conf.all.send_redirects': '1' });
        expect(await converge('hardening', { above })).toEqual([
          'net.ipv4.conf.all.send_redirects update',
          '/etc/ssh/sshd_config.d/10-orch.conf update',
          'ssh reload',
        ]);
        expect(await run('sshd -T | grep maxauthtries; systemctl show -P MainPID ssh')).toBe(`maxauthtries 2\n${pid}`);
        const broken = own({ sshd: { MaxAuthTries: 'few' } }, { 'net.ipv4.conf.all.send_redirects': '1' });
        expect(failed(await orch('apply', 'hardening', { above: broken }))).toEqual([
          expect.stringMatching(/10-orch\.conf failed: .*MaxAuthTries/s),
          expect.stringMatching(/^ssh skipped/),
        ]);
        expect(await run('sshd -T | grep maxauthtries')).toBe('maxauthtries 2');
      });

      it('is removed', async () => {
        expect(failed(await removeExample(host, 'hardening'))).toEqual([]);
        expect(await run('ls /etc/ssh/sshd_config.d /etc/security/limits.d; ls /etc/sysctl.d')).not.toContain('orch');
      });
    });
  },
  vendorTools,
);
