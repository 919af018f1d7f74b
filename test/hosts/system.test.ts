/** Choices that a booted Debian keeps over a start: settings of the kernel, its name, its time zone, and entries of /etc/hosts. */
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { type Fleet, startFleet } from './fleet.js';
import type { BootedHost } from './host.js';
import { absent, type Body, entry, failures, LocalOrch, sh } from './local-orch.js';
import { describeHosts } from './requirements.js';

const FORWARD = '/proc/sys/net/ipv4/ip_forward';
const FILE = '/etc/sysctl.d/99-zz-orch-net.ipv4.ip_forward.conf';
const sysctl = (key: string, value: string | number) => entry('sysctl-linux', { key, value });
const hosts = (body: Body) => entry('host-entry-unix', body);

describeHosts('settings of the system on a booted machine', () => {
  let fleet: Fleet;
  let host: BootedHost;
  let orch: LocalOrch;
  const run = (script: string) => sh(host, script);

  beforeAll(async () => {
    fleet = await startFleet({ hosts: ['system'], capabilities: ['CAP_SYS_ADMIN'] });
    host = fleet.host('system');
    orch = new LocalOrch(host, '/root/site.orch.yaml');
    await run('useradd -m eve');
  });

  afterAll(async () => {
    await fleet?.stop();
  });

  beforeEach(async () => {
    await run('rm -rf /root/.local /var/lib/orch-local');
  });

  it('are refused in the plan and the apply where the kernel is read-only, and nothing is written', async () => {
    const expected = {
      'net.ipv4.ip_forward':
        'read_only: net.ipv4.ip_forward cannot be changed here, because the settings of the kernel are read-only, as in most containers; set it on the host',
      '/etc/hostname':
        'read_only: the name of the machine cannot be changed here, because the settings of the kernel are read-only, as in most containers; set it on the host',
    };
    await orch.declare(sysctl('net.ipv4.ip_forward', 1), entry('hostname-linux', { name: 'web-01' }));
    expect(failures(await orch.results('plan'))).toEqual(expected);
    expect(failures(await orch.apply())).toEqual(expected);
    expect(await run(`cat /etc/hostname; ls ${FILE} 2>/dev/null; true`)).toBe('system');
    // A value that the kernel has already needs only the file.
    expect(await orch.applied(sysctl('net.ipv4.ip_forward', 0))).toEqual({});
    expect(await run(`tail -n 1 ${FILE}`)).toBe('net.ipv4.ip_forward = 0');
    await orch.isSettled();
    await run(`rm ${FILE} && mount -o remount,rw /proc/sys`);
  });

  it('of the kernel hold now and in a file, are repaired, and leave the value when they go', async () => {
    const all = [sysctl('net.ipv4.ip_forward', 1), sysctl('net/ipv4/tcp_rmem', '4096  131072 4194304')];
    expect(await orch.appliedAsPlanned(...all)).toEqual([
      ['net.ipv4.ip_forward', 'create', 'value,at_boot'],
      ['net.ipv4.tcp_rmem', 'create', 'value,at_boot'],
    ]);
    expect(await run(`cat ${FORWARD} /proc/sys/net/ipv4/tcp_rmem; cat /etc/sysctl.d/99-zz-orch-*`)).toBe(
      [
        '1\n4096\t131072\t4194304',
        '# Managed by orch: what is changed here by hand will be undone.\nnet.ipv4.ip_forward = 1',
        '# Managed by orch: what is changed here by hand will be undone.\nnet.ipv4.tcp_rmem = 4096 131072 4194304',
      ].join('\n'),
    );
    await orch.isSettled();
    // A start of the machine does this; another file says something else.
    await run(`echo net.ipv4.ip_forward=0 >/etc/sysctl.conf; echo 0 >${FORWARD}; /lib/systemd/systemd-sysctl`);
    expect(await run(`cat ${FORWARD}`)).toBe('1');
    await run(`echo 0 >${FORWARD}; echo 'net.ipv4.tcp_rmem = 1' >/etc/sysctl.d/99-zz-orch-net.ipv4.tcp_rmem.conf`);
    expect(await orch.differences('drift')).toEqual([
      ['net.ipv4.ip_forward', 'update', 'value'],
      ['net.ipv4.tcp_rmem', 'update', 'at_boot'],
    ]);
    expect(failures(await orch.apply())).toEqual({});
    await orch.isSettled();
    expect(await orch.applied(entry('file-unix', { path: '/etc/kept', content: '' }))).toEqual({});
    expect(await run(`cat ${FORWARD}; ls -A /etc/sysctl.d`)).toBe('1\n99-sysctl.conf\nREADME.sysctl');
    await orch.isSettled();
  });

  it('of the kernel say why they cannot be set', async () => {
    const found = await orch.applied(
      sysctl('net.ipv4.nothing', 1),
      sysctl('net.ipv4', 1),
      sysctl('net.ipv4.tcp_congestion_control', 'nothing'),
      sysctl('net.ipv4.tcp_rmem', 'x'),
    );
    expect(found).toEqual({
      'net.ipv4.nothing':
        'value_unknown: the kernel of this machine has no setting net.ipv4.nothing; correct the name, or load the module that brings it first',
      'net.ipv4': 'value_unknown: net.ipv4 is a group of settings, not one',
      'net.ipv4.tcp_congestion_control': expect.stringMatching(
        /^(value_unknown: the kernel refuses the value of|command_failed: )/,
      ),
      'net.ipv4.tcp_rmem':
        'value_unknown: the kernel refuses the value of net.ipv4.tcp_rmem; look up which values it takes',
    });
    expect(await run('ls /etc/sysctl.d/99-zz* 2>/dev/null; true')).toBe('');
  });

  it('name the machine now and after a start, and stay', async () => {
    const named = entry('hostname-linux', { name: 'web-01.example.net' });
    expect(await orch.appliedAsPlanned(named)).toEqual([['/etc/hostname', 'update', 'name,at_boot']]);
    expect(await run('hostname; cat /etc/hostname; hostnamectl --static 2>/dev/null || cat /etc/hostname')).toBe(
      'web-01.example.net\nweb-01.example.net\nweb-01.example.net',
    );
    await orch.isSettled();
    await run('echo other >/proc/sys/kernel/hostname');
    expect(await orch.differences('drift')).toEqual([['/etc/hostname', 'update', 'name']]);
    expect(failures(await orch.apply())).toEqual({});
    expect(await orch.applied(entry('file-unix', { path: '/etc/kept', content: '' }))).toEqual({});
    expect(await run('hostname')).toBe('web-01.example.net');
    expect(
      await orch.applied(named, entry('file-unix', { path: '/etc/hostname', content: 'x' })).catch(String),
    ).toContain('Error');
  });

  it('set the time zone, which programs see at once', async () => {
    const zone = (name: string) => entry('timezone-linux', { name });
    expect(await orch.appliedAsPlanned(zone('Asia/Kolkata'))).toEqual([
      ['/etc/localtime', 'update', 'name,/etc/timezone'],
    ]);
    expect(await run('date +%z; cat /etc/timezone; readlink /etc/localtime')).toBe(
      '+0530\nAsia/Kolkata\n/usr/share/zoneinfo/Asia/Kolkata',
    );
    await orch.isSettled();
    await run('rm /etc/timezone /etc/localtime && cp /usr/share/zoneinfo/Etc/UTC /etc/localtime');
    expect(await orch.differences('drift')).toEqual([['/etc/localtime', 'update', 'name']]);
    expect(failures(await orch.apply())).toEqual({});
    expect(await run('date +%z; ls /etc/timezone 2>/dev/null; true')).toBe('+0530');
    expect(await orch.applied(zone('Mars/Olympus'))).toEqual({
      '/etc/localtime':
        'value_unknown: there is no time zone Mars/Olympus in /usr/share/zoneinfo/; correct the name, or install the package tzdata before',
    });
    expect(await run('date +%z')).toBe('+0530');
  });

  it('name other hosts, which the machine finds, and take only their lines away', async () => {
    const before = await run('cat /etc/hosts');
    const entries = [
      hosts({ name: 'db.example.net', addresses: ['10.9.0.5', 'fd00::5'], aliases: ['db'] }),
      hosts({ name: 'cache', addresses: ['10.9.0.6'] }),
    ];
    expect(await orch.appliedAsPlanned(...entries)).toEqual([
      ['/etc/hosts: db.example.net', 'create', 'addresses'],
      ['/etc/hosts: cache', 'create', 'addresses'],
    ]);
    expect(await run('getent ahostsv4 db | head -n 1; getent hosts cache')).toMatch(
      /^10\.9\.0\.5 +STREAM db\.example\.net\n10\.9\.0\.6 +cache$/,
    );
    await orch.isSettled();
    await run("sed -i -e 's/10.9.0.6/10.9.0.7/' /etc/hosts; echo '10.9.0.9 old cache2 # kept' >>/etc/hosts");
    expect(await orch.differences('drift')).toEqual([['/etc/hosts: cache', 'update', 'addresses']]);
    expect(failures(await orch.apply())).toEqual({});
    expect(await orch.applied(hosts({ name: 'cache2', addresses: ['10.9.0.8'] }))).toMatchObject({
      '/etc/hosts: cache2': expect.stringMatching(
        /^content_unsuitable: cache2 is a further name of another host on line \d+ of/,
      ),
    });
    expect(await orch.applied(absent('host-entry-unix', { name: 'cache2' }))).toEqual({});
    expect(await run('cat /etc/hosts')).toBe(`${before}\n10.9.0.9 old # kept`);
    await orch.isSettled();
  });

  it('name no host in a file that is a link, binary or enormous', async () => {
    await run('cp -p /etc/hosts /etc/hosts.kept; echo "10.9.0.1 target" >/etc/target');
    for (const [spoil, message] of [
      ['ln -sfn target /etc/hosts', 'wrong_type: /etc/hosts is a symlink to target, which is not followed'],
      ["rm /etc/hosts; printf 'a\\377b\\n' >/etc/hosts", 'content_unsuitable: /etc/hosts is not text in UTF-8'],
      ["head -c 1100000 /dev/zero | tr '\\0' '\\n' >/etc/hosts", 'content_unsuitable: /etc/hosts has 1100000 bytes'],
    ] as const) {
      await run(spoil);
      const before = await run('sha256sum /etc/hosts /etc/target; ls -l /etc/hosts');
      expect((await orch.applied(hosts({ name: 'db', addresses: ['10.9.0.5'] })))['/etc/hosts: db']).toContain(message);
      expect(await run('sha256sum /etc/hosts /etc/target; ls -l /etc/hosts')).toBe(before);
    }
    await run('mv /etc/hosts.kept /etc/hosts');
  });

  it('are those of root: an ordinary user is refused with the reason', async () => {
    const eve = new LocalOrch(host, '/home/eve/site.orch.yaml', 'eve');
    await eve.declare(
      sysctl('net.ipv4.ip_forward', 0),
      entry('hostname-linux', { name: 'eve' }),
      hosts({ name: 'eve', addresses: ['10.9.0.1'] }),
      entry('timezone-linux', { name: 'UTC' }),
    );
    expect(failures(await eve.apply())).toEqual({
      'net.ipv4.ip_forward': 'permission_denied: the kernel lets only root of the host change net.ipv4.ip_forward',
      '/etc/hostname': 'permission_denied: the kernel lets only root of the host change the name of the machine',
      '/etc/hosts: eve': expect.stringMatching(/^permission_denied: /),
      '/etc/localtime': expect.stringMatching(/^permission_denied: /),
    });
  });
});
