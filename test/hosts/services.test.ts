/** Services under a real systemd: adopted and written, enabled and running, reloaded and restarted, failing, masked, removed. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { RunResult } from '../../src/contract/runs.js';
import type { ResourceResult } from '../../src/resources/result.js';
import { type Fleet, startFleet } from './fleet.js';
import type { BootedHost } from './host.js';
import { failures, LocalOrch } from './local-orch.js';
import { describeHosts } from './requirements.js';

const FILE = '/root/services.orch.yaml';
const MANY = 50;

type Body = Readonly<Record<string, unknown>>;
interface Resource {
  readonly id?: string;
  readonly resource: Readonly<Record<string, Body>>;
}

const service = (body: Body, id?: string): Resource => ({
  ...(id === undefined ? {} : { id }),
  resource: { 'service-systemd': body },
});
const file = (id: string, path: string, content: string): Resource => ({
  id,
  resource: { 'file-unix': { path, content } },
});

/** A unit of another program; it counts in a file how often it was started and reloaded. */
const counted = (name: string) => `[Unit]
Description=of somebody else
[Service]
ExecStartPre=/bin/sh -c 'echo start >>/run/${name}.log'
ExecStart=/bin/sleep infinity
ExecReload=/bin/sh -c 'test ! -e /run/${name}.broken && echo reload >>/run/${name}.log'
[Install]
WantedBy=multi-user.target
`;

describeHosts('services on a booted machine', () => {
  let fleet: Fleet;
  let host: BootedHost;

  const sh = async (script: string): Promise<string> => {
    const { status, stdout, stderr } = await host.run(['sh', '-c', script], { timeoutMs: 60_000 });
    if (status !== 0) throw new Error(`${script} ended with ${status}:\n${stderr}${stdout}`);
    return stdout;
  };
  const declare = async (...resources: readonly Resource[]) =>
    host.writeFile(FILE, JSON.stringify({ name: 'services', supports: [{ platform: 'linux' }], resources }));
  const orch = async (verb: string, ...flags: readonly string[]) =>
    host.run(['orch', verb, '--local', '-f', FILE, '-o', 'json', ...flags], { timeoutMs: 120_000 });
  const results = async (verb: string, ...flags: readonly string[]): Promise<readonly ResourceResult[]> => {
    const { stdout, stderr } = await orch(verb, ...flags);
    if (!stdout.startsWith('{')) throw new Error(`orch ${verb} says:\n${stderr}${stdout}`);
    const found = (JSON.parse(stdout) as RunResult).resources;
    return found.filter(({ kind }) => kind === 'service-systemd');
  };
  const apply = async () => results('apply', '--yes', '--allow-removals', String(MANY));
  const fields = (found: readonly ResourceResult[]) =>
    found
      .filter(({ status }) => status !== 'unchanged')
      .map(({ identity, action, status, changes }) => [
        identity,
        action,
        status,
        changes.map((one) => one.field).join(),
      ]);
  const inSync = async () => expect(fields(await results('plan'))).toEqual([]);
  const state = async (unit: string) =>
    sh(`systemctl show --value -p ActiveState,UnitFileState ${unit} | paste -sd' '`).then((text) => text.trim());
  const install = async (name: string) => {
    await host.writeFile(`/usr/lib/systemd/system/${name}.service`, counted(name));
    await sh('systemctl daemon-reload');
  };
  const log = (name: string) => sh(`cat /run/${name}.log 2>/dev/null || true; rm -f /run/${name}.log`);

  beforeAll(async () => {
    fleet = await startFleet({ hosts: ['services'] });
    host = fleet.host('services');
    await install('adopted');
  });

  // Each test begins with nothing managed; what the one before has made is removed.
  beforeEach(async () => {
    await declare();
    await apply();
  });

  afterAll(async () => {
    await fleet?.stop();
  });

  it('adopts a unit and brings it to the desired state', async () => {
    await declare(service({ name: 'adopted', enabled: true, running: true }));
    expect(fields(await results('plan'))).toEqual([['adopted', 'update', 'pending', 'enabled,running']]);
    expect(await state('adopted')).toBe('inactive disabled');
    expect(fields(await apply())).toEqual([['adopted', 'update', 'changed', 'enabled,running']]);
    expect(await state('adopted')).toBe('active enabled');
    await inSync();
    await declare(service({ name: 'adopted.service', enabled: false, running: false }));
    expect(fields(await apply())).toEqual([['adopted', 'update', 'changed', 'enabled,running']]);
    expect(await state('adopted')).toBe('inactive disabled');
    await inSync();
  });

  it('names what was changed by hand, and repairs it', async () => {
    await declare(service({ name: 'adopted', enabled: true, running: true }));
    await apply();
    const drifted = async () => fields(await results('drift'));
    expect(await drifted()).toEqual([]);
    await sh('systemctl stop adopted');
    expect(await drifted()).toEqual([['adopted', 'update', 'pending', 'running']]);
    await sh('systemctl disable adopted');
    expect(await drifted()).toEqual([['adopted', 'update', 'pending', 'enabled,running']]);
    expect(await apply()).toMatchObject([{ status: 'changed' }]);
    expect(await drifted()).toEqual([]);
    await sh('systemctl mask --now adopted');
    expect(await results('drift')).toMatchObject([
      { status: 'pending', reason: 'adopted.service is masked; unmask it with: systemctl unmask adopted.service' },
    ]);
    expect(await apply()).toMatchObject([{ status: 'failed', error: { code: 'unit_masked' } }]);
    await sh('systemctl unmask adopted');
    expect(await apply()).toMatchObject([{ status: 'changed' }]);
    expect(await drifted()).toEqual([]);
  });

  it('releases a unit that was there before', async () => {
    await declare(service({ name: 'adopted', enabled: true, running: true }));
    await apply();
    await declare();
    expect(await apply()).toMatchObject([{ identity: 'adopted', action: 'release', status: 'changed' }]);
    expect(await state('adopted')).toBe('active enabled');
  });

  it('writes a unit so that every value arrives as it was given', async () => {
    const environment = {
      QUOTES: `"double" 'single' \\back\\\\slash`,
      PERCENT: '100% %h %% %n',
      DOLLAR: '$HOME $$ ${' + '}',
      LINES: 'one\n\ttwo\n',
      SPACES: '  lead and trail  ',
      EMPTY: '',
      MARKUP: '# ; [Unit] =',
      UNICODE: 'Grüße ☃ 😀',
    };
    await sh('mkdir -p "/srv/100% of [it]" && useradd --system worker');
    const body = {
      name: 'worker',
      enabled: true,
      running: true,
      description: '100% "work" # ; $HOME',
      type: 'oneshot',
      user: 'worker',
      group: 'nogroup',
      working_directory: '/srv/100% of [it]',
      environment,
      exec_start: `/bin/sh -c 'env -0; echo "$$(pwd) $$(id -un) $$(id -gn)" >&2'`,
    };
    await declare(service(body));
    await host.writeFile(
      '/etc/systemd/system/worker.service.d/out.conf',
      '[Service]\nStandardOutput=file:/run/worker.env\nStandardError=file:/run/worker.err\n',
    );
    expect(await apply()).toMatchObject([{ identity: 'worker', action: 'create', status: 'changed' }]);
    const lines = (await host.readFile('/run/worker.env')).split('\0');
    for (const [name, value] of Object.entries(environment)) expect(lines).toContain(`${name}=${value}`);
    expect(await host.readFile('/run/worker.err')).toBe('/srv/100% of [it] worker nogroup\n');
    expect(await sh('systemctl show --value -p Description worker')).toBe('100% "work" # ; $HOME\n');
    expect(await state('worker')).toBe('active enabled');
    expect(await sh('systemd-analyze verify worker.service 2>&1')).toBe('');
    await inSync();
  });

  it('keeps a unit file with a secret to itself', async () => {
    await host.writeFile('/root/token', 'correct-horse-battery', '0600');
    await declare(
      service({
        name: 'secretive',
        running: true,
        exec_start: '/bin/sleep infinity',
        environment: { TOKEN: '${' + '{ secrets.TOKEN }}' },
      }),
    );
    const { stdout } = await orch('apply', '--yes', '--secret-file', 'TOKEN=/root/token');
    expect(JSON.parse(stdout)).toMatchObject({ resources: [{ status: 'changed', sensitive: true }] });
    expect(stdout).not.toContain('correct-horse');
    const drift = await host.run(['orch', 'drift', '--local', '-o', 'json']);
    expect(JSON.parse(drift.stdout)).toMatchObject({ status: 'in_sync' });
    expect(drift.stdout).not.toContain('correct-horse');
    expect(await sh('stat -c "%a %U" /etc/systemd/system/secretive.service')).toBe('600 root\n');
    expect(await sh('tr "\\0" "\\n" </proc/$(systemctl show --value -p MainPID secretive)/environ | grep TOKEN')).toBe(
      'TOKEN=correct-horse-battery\n',
    );
  });

  it('repairs a unit file that was changed, emptied or deleted by hand', async () => {
    const body = { name: 'web', enabled: true, running: true, exec_start: '/bin/sleep infinity' };
    await declare(service(body));
    expect(fields(await apply())).toContainEqual(['web', 'create', 'changed', 'unit_file,enabled,running']);
    const text = await host.readFile('/etc/systemd/system/web.service');
    const pid = () => sh('systemctl show --value -p MainPID web');
    const before = await pid();
    await sh('sed -i s/infinity/1000/ /etc/systemd/system/web.service');
    expect(fields(await results('drift'))).toEqual([['web', 'update', 'pending', 'unit_file']]);
    expect(fields(await apply())).toEqual([['web', 'update', 'changed', 'unit_file']]);
    expect(await host.readFile('/etc/systemd/system/web.service')).toBe(text);
    expect(await pid()).not.toBe(before);
    await sh(': >/etc/systemd/system/web.service; systemctl daemon-reload');
    expect(await apply()).toMatchObject([{ status: 'changed' }]);
    await sh('rm /etc/systemd/system/web.service; systemctl daemon-reload');
    expect(await apply()).toMatchObject([{ status: 'changed' }]);
    await sh('chmod 666 /etc/systemd/system/web.service');
    const unmoved = await pid();
    expect(fields(await apply())).toEqual([['web', 'update', 'changed', 'mode']]);
    expect(await pid()).toBe(unmoved);
    expect(await host.readFile('/etc/systemd/system/web.service')).toBe(text);
    expect(await state('web')).toBe('active enabled');
    await inSync();
  });

  it('restarts a running unit whose file changes, and lets a stopped one be', async () => {
    const body = { name: 'web', enabled: true, running: true, exec_start: '/bin/sleep 50000' };
    await declare(service(body));
    await apply();
    await declare(service({ ...body, exec_start: '/bin/sleep 100000' }));
    expect(fields(await apply())).toEqual([['web', 'update', 'changed', 'unit_file']]);
    expect(await sh('tr "\\0" " " </proc/$(systemctl show --value -p MainPID web)/cmdline')).toBe('/bin/sleep 100000 ');
    await declare(service({ ...body, running: false, exec_start: '/bin/sleep 200000' }));
    expect(fields(await apply())).toEqual([['web', 'update', 'changed', 'unit_file,running']]);
    await declare(service({ ...body, running: null, exec_start: '/bin/sleep 300000' }));
    expect(fields(await apply())).toEqual([['web', 'update', 'changed', 'unit_file']]);
    expect(await state('web')).toBe('inactive enabled');
  });

  it('removes a unit that it made, with its file, and nothing of it is left', async () => {
    await declare(service({ name: 'web', running: true, enabled: true, exec_start: '/bin/sleep infinity' }));
    await apply();
    await declare();
    expect(await apply()).toMatchObject([{ identity: 'web', action: 'remove', status: 'changed' }]);
    expect(await sh('systemctl show --value -p LoadState,ActiveState web | paste -sd" "')).toBe('not-found inactive\n');
    expect(await sh('find /etc/systemd/system -name "web.service*"')).toBe('');
    await inSync();
  });

  describe('what it takes back', () => {
    it('is a unit with the file that brought it, and nothing of it stays in systemd', async () => {
      const unit = '[Service]\nExecStart=/bin/sleep 4444\n[Install]\nWantedBy=multi-user.target\n';
      await declare(
        file('unit', '/etc/systemd/system/brought.service', unit),
        service({ name: 'brought', enabled: true, running: true }),
      );
      await apply();
      expect(await state('brought')).toBe('active enabled');
      await declare();
      expect(await apply()).toMatchObject([{ identity: 'brought', action: 'remove', status: 'changed' }]);
      expect(await sh('systemctl show -p LoadState,ActiveState,NeedDaemonReload brought')).toBe(
        'LoadState=not-found\nActiveState=inactive\nNeedDaemonReload=no\n',
      );
      expect(await sh('find /etc/systemd/system -name "brought*"; pgrep -f "sleep 444[4]" || true')).toBe('');
    });

    it('is an instance that it has enabled and started, and not the template', async () => {
      await install('inst@');
      await declare(service({ name: 'inst@6', enabled: true, running: true }));
      await apply();
      expect(await state('inst@6')).toBe('active enabled');
      await declare();
      expect(await apply()).toMatchObject([{ identity: 'inst@6', action: 'remove', status: 'changed' }]);
      expect(await state('inst@6')).toBe('inactive disabled');
      expect(await sh('find /etc/systemd/system -name "inst@*"')).toBe('');
      await sh('test -e /usr/lib/systemd/system/inst@.service');
    });

    it('is the file that goes before the unit of a package, which takes effect again', async () => {
      await install('packaged');
      await sh('systemctl enable --now packaged 2>&1');
      await declare(service({ name: 'packaged', exec_start: '/bin/sleep 5555', enabled: true, running: true }));
      await apply();
      expect(await sh('systemctl show -p ExecStart packaged')).toContain('sleep 5555');
      await declare();
      expect(await apply()).toMatchObject([
        { action: 'remove', status: 'changed', reason: 'the unit of the package takes effect again' },
      ]);
      expect(await state('packaged')).toBe('active enabled');
      expect(await sh('systemctl show -p FragmentPath,NeedDaemonReload packaged')).toMatch(
        /FragmentPath=(?:\/usr)?\/lib\/systemd\/system\/packaged.service\nNeedDaemonReload=no\n/,
      );
      expect(
        await sh(
          'find /etc/systemd/system -name "packaged*" -exec readlink -e {} \\;; pgrep -f "sleep 555[5]" || true',
        ),
      ).toBe('/usr/lib/systemd/system/packaged.service\n');
      await sh('systemctl disable --now packaged 2>&1');
    });
  });

  describe('what cannot be', () => {
    /** Everything that a plan or an apply says about resources. */
    const fates = async (verb: string) => {
      const { stdout } = await orch(verb, ...(verb === 'apply' ? ['--yes', '--allow-removals', '9'] : []));
      const { resources } = JSON.parse(stdout) as RunResult;
      return resources.map(({ identity, status, error }) => [identity, status, error?.code, error?.message]);
    };

    it('is planned as it fails: a mask, a mount point, a read-only file system, a missing interpreter', async () => {
      await sh('systemctl mask hidden 2>&1; mkdir -p /srv/ro /srv/bound; mount -t tmpfs -o ro none /srv/ro');
      await sh('echo x >/srv/bound/from; touch /srv/bound/to; mount --bind /srv/bound/from /srv/bound/to');
      await declare(
        file('unit', '/etc/systemd/system/hidden.service', '[Service]\nExecStart=/bin/sleep infinity\n'),
        service({ name: 'hidden', running: true }),
        file('ro', '/srv/ro/f', 'x'),
        file('bound', '/srv/bound/to', 'y'),
        { resource: { script: { program: 'pwsh', manages: 'shell', apply: 'exit' } } },
      );
      const planned = await fates('plan');
      expect(planned.map((fate) => fate.slice(0, 3))).toEqual([
        ['/etc/systemd/system/hidden.service', 'failed', 'unit_masked'],
        ['hidden', 'skipped', 'dependency_failed'],
        ['/srv/ro/f', 'failed', 'read_only'],
        ['/srv/bound/to', 'failed', 'busy'],
        ['shell', 'failed', 'command_missing'],
      ]);
      expect(await fates('apply')).toEqual(planned);
      await sh('umount /srv/ro /srv/bound/to; systemctl unmask hidden 2>&1');
    });

    it('is to enable a unit that only enables another one', async () => {
      await host.writeFile(
        '/etc/systemd/system/only.service',
        '[Service]\nExecStart=/bin/sleep infinity\n[Install]\nAlso=only.socket\n',
      );
      await host.writeFile(
        '/etc/systemd/system/only.socket',
        '[Socket]\nListenStream=/run/only.sock\n[Install]\nWantedBy=sockets.target\n',
      );
      await sh('systemctl daemon-reload');
      const message =
        'only.service is only enabled through only.socket (Also= in its [Install]); set enabled for that unit instead';
      for (const enabled of [true, false]) {
        await declare(service({ name: 'only', enabled }));
        expect(await apply()).toMatchObject([{ status: 'failed', error: { code: 'unit_unsuitable', message } }]);
      }
    });

    it('is changed by an ordinary user', async () => {
      await sh('id eve >/dev/null 2>&1 || useradd -m eve');
      await install('guarded');
      const eve = new LocalOrch(host, '/home/eve/site.orch.yaml', 'eve');
      await eve.declare(
        service({ name: 'guarded', enabled: true, running: true }),
        service({ name: 'hers', exec_start: '/bin/true' }),
        service({ name: 'never', masked: true }),
      );
      expect(failures(await eve.apply())).toEqual({
        guarded: expect.stringMatching(
          /^permission_denied: this user may not change the unit guarded\.service; run the/,
        ),
        hers: expect.stringMatching(/^permission_denied: /),
        never: expect.stringMatching(/^permission_denied: /),
      });
      expect(await state('guarded')).toBe('inactive disabled');
      expect(await sh('ls /etc/systemd/system | grep -E "hers|never" || true')).toBe('');
    });

    it('does not lose a unit that the administrator has linked when it disables it', async () => {
      await host.writeFile('/opt/linked.service', counted('linked'));
      await sh('systemctl link /opt/linked.service 2>&1');
      await declare(service({ name: 'linked', enabled: true, running: true }));
      await apply();
      expect(await state('linked')).toBe('active enabled');
      await declare(service({ name: 'linked', enabled: false, running: true }));
      expect(await apply()).toMatchObject([{ status: 'changed' }]);
      expect(await state('linked')).toBe('active linked');
      await inSync();
    });

    it('says why a unit fails to start, with the last lines of its log', async () => {
      await sh('systemctl start adopted');
      const body = { name: 'dying', running: true, exec_start: `/bin/sh -c 'echo no such table: users >&2; exit 3'` };
      await declare(service(body), service({ name: 'adopted', running: true }));
      const found = await apply();
      expect(found).toMatchObject([{ identity: 'dying', status: 'failed', error: { code: 'service_failed' } }, {}]);
      expect(found[0]?.error?.message).toContain('no such table: users');
      expect(found[0]?.error?.message).toContain('exit-code');
      expect(found[1]).toMatchObject({ identity: 'adopted', status: 'unchanged' });
      await host.writeFile('/etc/systemd/system/dying.service.d/slow.conf', '[Service]\nRestartSec=60\n');
      await declare(service({ ...body, restart: 'always' }));
      expect((await apply())[0]?.error).toMatchObject({
        code: 'service_failed',
        message: expect.stringContaining('no such table: users'),
      });
      await declare(service({ ...body, exec_start: '/bin/sleep infinity' }));
      // The failures had held this release back.
      const released = { identity: 'adopted', action: 'release' };
      expect(await apply()).toMatchObject([{ identity: 'dying', status: 'changed' }, released]);
      await inSync();
    });

    it('says what systemd does not take in a unit file', async () => {
      await declare(service({ name: 'broken', running: true, exec_start: 'bin/relative' }));
      const [found] = await apply();
      expect(found).toMatchObject({ status: 'failed', error: { code: 'service_failed' } });
      expect(found?.error?.message).toContain('Neither a valid executable name nor an absolute path: bin/relative');
    });

    it('refuses what is missing, static or over at once', async () => {
      await host.writeFile('/etc/systemd/system/once.service', '[Service]\nType=oneshot\nExecStart=/bin/true\n');
      await declare(
        service({ name: 'nowhere', running: true }),
        service({ name: 'once', running: true }),
        service({ name: 'dbus', enabled: true }),
      );
      const codes = (await apply()).map(({ identity, error }) => [identity, error?.code]);
      expect(codes).toEqual(
        expect.arrayContaining([
          ['nowhere', 'unit_missing'],
          ['once', 'unit_unsuitable'],
          ['dbus', 'unit_unsuitable'],
        ]),
      );
    });

    it('finds two names of one unit', async () => {
      await declare(service({ name: 'adopted', running: true }), service({ name: 'adopted.service', running: false }));
      const { status, stderr } = await orch('plan');
      expect(status).not.toBe(0);
      expect(stderr).toContain('adopted');
    });
  });

  describe('what takes the place of another', () => {
    const listener = (name: string) =>
      service({
        name,
        running: true,
        exec_start: `/usr/bin/perl -MIO::Socket::INET -e "IO::Socket::INET->new(Listen => 1, LocalPort => 4711) or exit 3; sleep"`,
      });

    it('is stopped before the one on its port starts', async () => {
      await declare(listener('old-port'));
      expect(fields(await apply())).toEqual([['old-port', 'create', 'changed', 'unit_file,running']]);
      await declare(listener('new-port'));
      const order = (found: readonly ResourceResult[]) => found.map(({ identity, action }) => `${identity} ${action}`);
      const planned = order(await results('plan'));
      expect(planned).toEqual(['old-port remove', 'new-port create']);
      const applied = await apply();
      expect(applied.map(({ status }) => status)).toEqual(['changed', 'changed']);
      expect(order(applied)).toEqual(planned);
      expect(await state('new-port')).toMatch(/^active/);
    });

    it('is the same unit under another name, which is refused beside it and handed over', async () => {
      await sh(
        'ln -s /usr/lib/systemd/system/adopted.service /etc/systemd/system/nickname.service && systemctl daemon-reload',
      );
      try {
        await declare(service({ name: 'adopted', running: true }), service({ name: 'nickname', running: false }));
        const messages = (await results('plan')).map(({ error }) => error?.message);
        expect(messages[0]).toContain('service-systemd adopted and service-systemd nickname are the same thing');
        expect(messages[1]).toContain('service-systemd nickname and service-systemd adopted are the same thing');
        await declare(service({ name: 'nickname', running: true }));
        await apply();
        await declare(service({ name: 'adopted', running: true }));
        expect((await apply()).map(({ identity, action }) => `${identity} ${action}`)).toEqual([
          'adopted none',
          'nickname release',
        ]);
        expect(await state('adopted')).toMatch(/^active/);
      } finally {
        await sh('rm /etc/systemd/system/nickname.service && systemctl daemon-reload');
      }
    });
  });

  describe('triggers', () => {
    const config = (n: number) => file('config', '/etc/counted.conf', `${n}\n`);
    const listening = (body: Body) => service({ name: 'counted', running: true, ...body }, 'counted');

    beforeEach(async () => {
      await install('counted');
      await declare(config(0), listening({ reload_on: ['config'] }));
      await apply();
      await log('counted');
    });

    it('reloads and restarts once when what it listens to changes', async () => {
      await inSync();
      await declare(config(1), listening({ reload_on: ['config'] }));
      expect(await apply()).toMatchObject([{ action: 'reload', status: 'changed' }]);
      expect(await log('counted')).toBe('reload\n');
      await declare(config(2), listening({ restart_on: ['config'] }));
      expect(await apply()).toMatchObject([{ action: 'restart', status: 'changed' }]);
      expect(await log('counted')).toBe('start\n');
      await inSync();
    });

    it('starts a stopped unit once, and does not start one that is not to run', async () => {
      await sh('systemctl stop counted');
      await declare(config(3), listening({ restart_on: ['config'] }));
      await apply();
      expect(await log('counted')).toBe('start\n');
      await sh('systemctl stop counted');
      await declare(config(4), listening({ running: null, restart_on: ['config'] }));
      await apply();
      expect(await log('counted')).toBe('');
      expect(await state('counted')).toBe('inactive disabled');
    });

    it('owes a reload that has failed, and pays it although nothing else changes', async () => {
      await sh('touch /run/counted.broken');
      await declare(config(5), listening({ reload_on: ['config'] }));
      const failed = await apply();
      expect(failed).toMatchObject([{ status: 'failed', error: { code: 'service_failed' } }]);
      expect(failed[0]?.error?.message).toContain('could not be reloaded and runs as before');
      await sh('rm /run/counted.broken');
      expect(fields(await results('plan'))).toEqual([['counted', 'reload', 'pending', '']]);
      expect(fields(await apply())).toEqual([['counted', 'reload', 'changed', '']]);
      expect(await log('counted')).toBe('reload\n');
      await inSync();
    });

    it('owes the restart of a changed unit file when the run dies in between', async () => {
      const body = { name: 'web', running: true, exec_start: '/bin/sleep 1000' };
      await declare(service(body));
      await apply();
      await declare(service({ ...body, exec_start: '/bin/sleep 2000' }));
      const killer = '#!/bin/sh\n[ "$1" != daemon-reload ] || kill -9 "$PPID"\nexec /bin/systemctl "$@"\n';
      await host.writeFile('/usr/local/sbin/systemctl', killer, '0755');
      expect((await orch('apply', '--yes')).status).not.toBe(0);
      await sh('rm /usr/local/sbin/systemctl; systemctl daemon-reload');
      const running = () => sh('tr "\\0" " " </proc/$(systemctl show --value -p MainPID web)/cmdline');
      expect(await running()).toBe('/bin/sleep 1000 ');
      expect(fields(await results('plan'))).toEqual([['web', 'restart', 'pending', '']]);
      expect(fields(await apply())).toEqual([['web', 'restart', 'changed', '']]);
      expect(await running()).toBe('/bin/sleep 2000 ');
      await inSync();
    });

    it('reads changed drop-ins before it restarts', async () => {
      const dropIn = (n: number) =>
        file('config', '/etc/systemd/system/counted.service.d/n.conf', `[Service]\nEnvironment=N=${n}\n`);
      await sh('mkdir -p /etc/systemd/system/counted.service.d');
      await declare(dropIn(7), listening({ restart_on: ['config'] }));
      await apply();
      expect(await sh('tr "\\0" "\\n" </proc/$(systemctl show --value -p MainPID counted)/environ | grep ^N=')).toBe(
        'N=7\n',
      );
    });
  });

  it('asks once about fifty services, and has systemd read their files once', async () => {
    const services = Array.from({ length: MANY }, (_, n) =>
      service({ name: `many-${n}`, enabled: true, running: true, exec_start: `/bin/sleep ${100_000 + n}` }),
    );
    // Every call of systemctl is written down.
    const wrapper = '#!/bin/sh\necho "$1" >>/run/calls\nexec /bin/systemctl "$@"\n';
    await host.writeFile('/usr/local/sbin/systemctl', wrapper, '0755');
    const calls = () => sh('sort /run/calls | uniq -c | sed "s/^ *//"; rm /run/calls');
    await declare(...services);
    expect((await apply()).filter(({ status }) => status === 'changed')).toHaveLength(MANY);
    expect(await calls()).toBe(`1 daemon-reload\n1 enable\n${MANY} is-active\n3 show\n1 start\n`);
    await inSync();
    expect(await calls()).toBe('2 show\n');
    expect(fields(await results('drift'))).toEqual([]);
    expect(await calls()).toBe('1 show\n');
    await declare();
    const removed = await apply();
    expect(removed.filter(({ action, status }) => action === 'remove' && status === 'changed')).toHaveLength(MANY);
    expect(await sh('ls /etc/systemd/system /etc/systemd/system/multi-user.target.wants | grep -c many- || true')).toBe(
      '0\n',
    );
  });

  it('checks the health of units after an apply', async () => {
    const check = async (unit: string) => {
      const verify = [{ name: 'unit', within: '1s', unit }];
      await host.writeFile(
        FILE,
        JSON.stringify({ name: 'services', supports: [{ platform: 'linux' }], resources: [], verify }),
      );
      const { stdout } = await orch('apply', '--yes');
      const { status, error, checks } = JSON.parse(stdout) as RunResult;
      return { status, code: error?.code, reasons: checks?.map(({ reason }) => reason) };
    };
    const failed = (reason: string) => ({
      status: 'failed',
      code: 'verify_failed',
      reasons: [expect.stringContaining(reason)],
    });
    await sh('systemctl start adopted');
    expect(await check('adopted.service')).toEqual({ status: 'succeeded', code: undefined, reasons: [null] });
    expect(await check('adopted')).toMatchObject({ status: 'succeeded' });
    await sh('systemctl stop adopted');
    expect(await check('adopted')).toEqual(failed('adopted.service is stopped'));
    expect(await check('nothing.service')).toEqual(failed('systemd has not loaded nothing.service'));
    await sh('systemd-run --wait --unit=ends-with-7 --quiet sh -c "exit 7" || true');
    expect(await check('ends-with-7')).toEqual(failed('ends-with-7.service is failed'));
    await sh('systemctl reset-failed ends-with-7');
  });
});
