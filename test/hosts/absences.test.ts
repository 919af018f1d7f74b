/** What a module declares absent, on a booted Debian: files, trees, packages, units, accounts, whoever made them. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Fleet, startFleet } from './fleet.js';
import type { BootedHost } from './host.js';
import { absent, entry, failures, LocalOrch, sh } from './local-orch.js';
import { describeHosts } from './requirements.js';

const deb = (name: string, fields = '') => `mkdir -p /tmp/${name}/DEBIAN /tmp/${name}/etc
printf 'Package: ${name}\nVersion: 1\nArchitecture: all\nMaintainer: a <a@example.net>\nDescription: test\n${fields}' >/tmp/${name}/DEBIAN/control
echo yes >/tmp/${name}/etc/${name}.conf
echo /etc/${name}.conf >/tmp/${name}/DEBIAN/conffiles
dpkg-deb -b /tmp/${name} /tmp/${name}.deb && dpkg -i /tmp/${name}.deb`;

const UNIT = '[Service]\nExecStart=/bin/sleep infinity\n[Install]\nWantedBy=multi-user.target\n';

describeHosts('absences on a booted machine', () => {
  let fleet: Fleet;
  let host: BootedHost;
  let orch: LocalOrch;
  const run = (script: string) => sh(host, script);

  beforeAll(async () => {
    fleet = await startFleet({ hosts: ['absences'] });
    host = fleet.host('absences');
    orch = new LocalOrch(host, '/root/site.orch.yaml');
    await run(deb('lib'));
    await run(deb('app', 'Depends: lib\n'));
    await run(`printf '${UNIT}' >/usr/lib/systemd/system/web.service
systemctl daemon-reload && systemctl enable --now web.service
useradd --create-home eve && groupadd ops && gpasswd -a eve ops
mkdir -p /srv/old/a/b && echo x >/srv/old/a/b/f && ln -s /etc /srv/old/a/link
echo x >/etc/left && ln -s left /etc/pointing`);
  });

  afterAll(async () => {
    await fleet?.stop();
  });

  const everything = () =>
    orch.appliedAsPlanned(
      absent('directory-unix', { path: '/srv/old', recursive: true }),
      absent('file-unix', { path: '/etc/left' }, { id: 'left' }),
      absent('file-unix', { path: '/etc/pointing' }),
      absent('package-apt', { name: 'lib' }),
      absent('package-apt', { name: 'app' }),
      absent('service-systemd', { name: 'web' }),
      absent('group-unix', { name: 'ops' }),
      absent('group-unix', { name: 'eve' }),
      absent('user-unix', { name: 'eve' }),
      entry('script', {
        program: 'sh',
        manages: 'note',
        check: 'true',
        apply: 'echo told >>/root/told',
        rerun_on: ['left'],
      }),
    );

  it('is refused for a package that another one needs, with the mend', async () => {
    await orch.declare(absent('package-apt', { name: 'lib' }));
    expect(failures(await orch.apply())).toEqual({
      lib: 'removal_refused: lib is not removed, because app would go with it; remove that first, or keep lib',
    });
  });

  it('is not brought about by an ordinary user, and each refusal says why', async () => {
    const eve = new LocalOrch(host, '/home/eve/site.orch.yaml', 'eve');
    await eve.declare(
      absent('directory-unix', { path: '/srv/old', recursive: true }),
      absent('file-unix', { path: '/etc/left' }),
      absent('symlink-unix', { path: '/etc/pointing' }),
      absent('package-apt', { name: 'app' }),
      absent('service-systemd', { name: 'web' }),
      absent('group-unix', { name: 'ops' }),
      absent('user-unix', { name: 'games' }),
    );
    const refused = failures(await eve.apply());
    expect(Object.values(refused)).toEqual(Array(7).fill(expect.stringMatching(/^permission_denied: /)));
    expect(await run('ls -d /srv/old/a/b/f /etc/left /etc/pointing; systemctl is-active web; id -nG eve')).toBe(
      '/etc/left\n/etc/pointing\n/srv/old/a/b/f\nactive\neve ops',
    );
  });

  it('is brought about as the plan says, once', async () => {
    const planned = await everything();
    expect(planned.map(([identity, action]) => `${identity} ${action}`).sort()).toEqual(
      ['/etc/left', '/etc/pointing', '/srv/old', 'app', 'eve', 'eve', 'lib', 'ops', 'web']
        .map((identity) => `${identity} remove`)
        .concat('note run')
        .sort(),
    );
    expect(await run('ls -d /srv/old /etc/left /etc/pointing 2>/dev/null; true')).toBe('');
    expect(await run('test -e /etc/passwd && cat /root/told')).toBe('told');
    expect(await run(`dpkg-query -W -f '\${db:Status-Status} ' app lib`)).toBe('config-files config-files ');
    expect(await run('systemctl is-active web; systemctl is-enabled web; true')).toBe('inactive\ndisabled');
    expect(await run('getent passwd eve; getent group eve ops; ls /home')).toBe('eve');
    expect(await orch.differences()).toEqual([]);
    expect(await orch.differences('drift')).toEqual([]);
  });

  it('is drift when it comes back, and is brought about again', async () => {
    await run('echo x >/etc/left && useradd eve && dpkg -i /tmp/lib.deb && systemctl start web');
    expect((await orch.differences('drift')).map(([identity, action]) => `${identity} ${action}`).sort()).toEqual([
      '/etc/left remove',
      'eve remove',
      'eve remove',
      'lib remove',
      'web remove',
    ]);
    expect(failures(await orch.apply())).toEqual({});
    expect(await orch.differences()).toEqual([]);
  });

  it('ends when the module no longer declares it', async () => {
    await run('echo x >/etc/left && dpkg -i /tmp/lib.deb');
    await orch.declare(entry('file-unix', { path: '/etc/kept', content: 'x' }));
    expect(failures(await orch.apply())).toEqual({});
    expect(await run(`cat /etc/left; dpkg-query -W -f '\${db:Status-Status}' lib`)).toBe('x\ninstalled');
    expect(await orch.differences()).toEqual([]);
  });

  it('takes the configuration files of a package where the module says so, also after it was removed', async () => {
    await run('apt-get remove -y -q lib && dpkg -i /tmp/lib.deb /tmp/app.deb && apt-get remove -y -q app');
    expect(await run('ls /etc/lib.conf /etc/app.conf')).toBe('/etc/app.conf\n/etc/lib.conf');
    const kept = entry('file-unix', { path: '/etc/kept', content: 'x' });
    await orch.declare(kept, ...['lib', 'app'].map((name) => absent('package-apt', { name, purge: true })));
    expect((await orch.differences()).map(([identity, action]) => `${identity} ${action}`)).toEqual([
      'lib remove',
      'app remove',
    ]);
    expect(failures(await orch.apply())).toEqual({});
    expect(await run('ls /etc/lib.conf /etc/app.conf 2>/dev/null; dpkg -l lib app 2>/dev/null; true')).not.toMatch(
      /conf|^rc/m,
    );
    expect(await orch.differences()).toEqual([]);
  });

  it('masks a unit, which nothing starts then, and takes the mask away', async () => {
    const state = () => run('systemctl is-enabled web; systemctl is-active web; systemctl start web 2>&1; true');
    await orch.declare(entry('service-systemd', { name: 'web', enabled: true, running: true }));
    expect(failures(await orch.apply())).toEqual({});
    expect(
      await orch.appliedAsPlanned(entry('service-systemd', { name: 'web', masked: true, running: false })),
    ).toEqual([['web', 'update', 'running,masked']]);
    expect(await state()).toBe('masked\ninactive\nFailed to start web.service: Unit web.service is masked.');
    expect(await orch.differences()).toEqual([]);
    expect(await orch.differences('drift')).toEqual([]);
    expect(
      await orch.appliedAsPlanned(
        entry('service-systemd', { name: 'web', masked: false, enabled: true, running: true }),
      ),
    ).toEqual([['web', 'update', 'masked,enabled,running']]);
    expect(await state()).toBe('enabled\nactive');
    expect(await orch.differences()).toEqual([]);
  });

  it('masks a unit that is not there, and unmasks it when the module no longer declares it', async () => {
    const kept = entry('file-unix', { path: '/etc/kept', content: 'x' });
    await orch.declare(kept, entry('service-systemd', { name: 'never', masked: true }));
    expect(failures(await orch.apply())).toEqual({});
    expect(await run('readlink /etc/systemd/system/never.service')).toBe('/dev/null');
    expect(await orch.differences()).toEqual([]);
    await orch.declare(kept);
    expect(failures(await orch.apply())).toEqual({});
    expect(await run('ls /etc/systemd/system/never.service 2>&1 || true')).toContain('No such file');
  });

  describe('a tree with something mounted in it', () => {
    it('is refused in the plan, and nothing of it goes', async () => {
      await run(
        'mkdir -p /srv/tree/m && echo x >/srv/tree/f && mount -t tmpfs tmpfs /srv/tree/m && echo x >/srv/tree/m/g',
      );
      await orch.declare(absent('package-apt', { name: 'lib' }));
      expect(failures(await orch.apply())).toEqual({});
      await orch.declare(
        entry('file-unix', { path: '/etc/kept', content: 'x' }),
        absent('directory-unix', { path: '/srv/tree', recursive: true }),
      );
      for (const verb of ['plan', 'apply'] as const) {
        const results = await orch.results(verb, ...(verb === 'apply' ? ['--yes'] : []));
        expect(failures(results)).toMatchObject({
          lib: `dependency_failed: not released, because absent-directory-unix /srv/tree ${verb === 'plan' ? 'fails' : 'failed'}; the next apply in which nothing fails releases it`,
          '/srv/tree':
            'removal_refused: something is mounted at /srv/tree/m; unmount it, so that /srv/tree can be removed',
        });
      }
      expect(await run('cat /srv/tree/f /srv/tree/m/g')).toBe('x\nx');
    });
  });
});
