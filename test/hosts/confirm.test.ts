/** Applies that cut a booted machine off: the agent undoes them by itself, and the machine is as before. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Agent } from '../../src/contract/agents.js';
import type { OperationDetail } from '../../src/contract/operations.js';
import type { RunResult } from '../../src/contract/runs.js';
import { tarOf } from '../support/archives.js';
import { until } from '../support/orch.js';
import { type Fleet, startFleet } from './fleet.js';
import type { BootedHost } from './host.js';
import { type AbsentEntry, absent, type Entry, entry } from './local-orch.js';
import { describeHosts } from './requirements.js';

const unit = (name: string) => readFileSync(fileURLToPath(new URL(`units/${name}.service`, import.meta.url)), 'utf8');

const SNAPSHOT = '/var/lib/orch-agent/snapshot';
const GUARD = '/etc/systemd/system/orch-agent-restore.service';
const OPEN =
  '#!/usr/sbin/nft -f\nflush ruleset\ntable inet filter {\n  chain input { type filter hook input priority 0; }\n}\n';
/** Lets the present connection live, and no new one. */
const CLOSED = OPEN.replace(
  'priority 0; }',
  'priority 0; }\n  chain output { type filter hook output priority 0; tcp dport 4747 ct state new drop; }',
);

const script = (apply: string): Entry =>
  entry('script', {
    program: 'sh',
    manages: 'a step',
    apply: `touch /root/begun; ${apply}`,
    check: 'test -e /root/begun',
  });

const network = (address: string): string =>
  `auto lo eth0\niface lo inet loopback\niface eth0 inet static\n  address ${address}\n`;

const failures = ({ resources }: RunResult) => resources.flatMap(({ error }) => error?.message ?? []);

describeHosts('an apply that has to be confirmed', () => {
  let fleet: Fleet;
  let control: BootedHost;
  let web: BootedHost;
  let node: string;

  const orch = (...args: readonly string[]) => control.run(['orch', ...args], { timeoutMs: 120_000 });
  const json = async <T>(...args: readonly string[]): Promise<T> => {
    const { status, stdout, stderr } = await orch(...args, '-o', 'json');
    if (status !== 0) throw new Error(`orch ${args.join(' ')} ended with ${status}:\n${stderr}${stdout}`);
    return JSON.parse(stdout) as T;
  };
  const sh = async (line: string) => (await web.run(['sh', '-c', line])).stdout;
  const isThere = async (path: string) => (await web.run(['test', '-e', path])).status === 0;
  const declare = (...resources: readonly (Entry | AbsentEntry)[]) =>
    control.writeFile(
      '/root/site.orch.yaml',
      JSON.stringify({ name: 'site', supports: [{ platform: 'linux' }], resources }),
    );
  /** Applies what was declared, and returns the exit status with the result. */
  const apply = async (within: string) => {
    await sh('rm -f /root/begun');
    const words = ['apply', 'web-01', '-f', '/root/site.orch.yaml', '--yes', '--confirm-within', within, '-o', 'json'];
    const { status, stdout, stderr } = await orch(...words, '--allow-removals', '99');
    if (!stdout.startsWith('{')) throw new Error(`no result, status ${status}:\n${stderr}${stdout}`);
    return { exit: status, run: JSON.parse(stdout) as RunResult };
  };
  /** Begins an apply without waiting for its end, and returns as soon as its script has begun. */
  const begin = async (secs: number): Promise<string> => {
    await sh('rm -f /root/begun');
    expect(await orch('module', 'publish', '/root/site.orch.yaml')).toMatchObject({ status: 0 });
    const body = JSON.stringify({ modules: ['site'], wait: false, allow_removals: 99, confirm_secs: secs });
    const { operation_id: id } = await json<RunResult>('api', 'POST', `/agents/${node}/apply`, '--data', body);
    await until(() => isThere('/root/begun'), 'the script has begun');
    return id ?? '';
  };
  const ended = async (id: string): Promise<OperationDetail> => {
    let operation: OperationDetail | undefined;
    await until(async () => {
      operation = await json<OperationDetail>('ops', 'show', id).catch(() => undefined);
      return operation !== undefined && operation.finished_at !== null;
    }, `operation ${id} has ended`);
    if (operation === undefined) throw new Error('it has ended');
    return operation;
  };
  const serve = async (verb: 'start' | 'stop') =>
    expect(await control.run(['systemctl', verb, 'orch-serve'])).toMatchObject({ status: 0 });
  const isAwaiting = () =>
    until(
      async () => (await sh(`cat ${SNAPSHOT}/record.json`)).includes('"state":"awaiting"'),
      'the apply awaits its confirmation',
    );
  const isConnected = () =>
    until(
      async () => (await json<Agent[]>('agents', 'list').catch(() => [])).some(({ connected }) => connected),
      'the agent is connected',
    );
  /** Everything about files that an apply could change. */
  const look = (...paths: readonly string[]) =>
    sh(`for f in ${paths.join(' ')}; do stat -c '%n %U %G %a %F' $f; sha256sum $f; done 2>&1`);
  const nothingIsLeft = async () => {
    await until(async () => !(await isThere(SNAPSHOT)), 'the snapshot is deleted');
    await until(async () => !(await isThere(GUARD)), 'the guard is removed');
  };

  beforeAll(async () => {
    fleet = await startFleet({
      hosts: ['orch', 'web-01'],
      capabilities: ['CAP_NET_ADMIN'],
    });
    control = fleet.host('orch');
    web = fleet.host('web-01');
    expect(await orch('operator', 'init')).toMatchObject({ status: 0 });
    await control.writeFile('/etc/systemd/system/orch-serve.service', unit('orch-serve'));
    expect(await control.run(['systemctl', 'enable', '--now', 'orch-serve'])).toMatchObject({ status: 0 });
    await until(async () => (await orch('status')).stderr.includes('--tls-fingerprint'), 'the API answers');
    const fingerprint = /--tls-fingerprint ([0-9a-f:]{64,})/.exec((await orch('status')).stderr)?.[1] as string;
    const url = ['--url', 'https://127.0.0.1:4748', '--tls-fingerprint', fingerprint];
    expect(await orch('profile', 'create', 'here', ...url)).toMatchObject({ status: 0 });
    const { public_key: key } = await json<{ public_key: string }>('status');
    await web.writeFile(
      '/etc/orch/agent.env',
      `ORCHESTRATOR=${control.address}:4747\nORCHESTRATOR_KEY=${key}\n`,
      '0600',
    );
    await web.writeFile('/etc/systemd/system/orch-agent.service', unit('orch-agent'));
    await web.writeFile('/etc/nftables.conf', OPEN, '0755');
    await web.writeFile('/etc/network/interfaces', network(`${web.address}/24`), '0640');
    await sh('chgrp adm /etc/network/interfaces; ip address flush dev eth0; systemctl enable nftables networking');
    await sh('systemctl restart nftables networking');
    expect(await web.run(['systemctl', 'enable', '--now', 'orch-agent'])).toMatchObject({ status: 0 });
    await until(async () => (await json<Agent[]>('agents', 'list')).length === 1, 'the machine waits');
    node = (await json<Agent[]>('agents', 'list'))[0]?.node_id as string;
    expect(await orch('agents', 'approve', node, '--name', 'web-01', '--yes')).toMatchObject({ status: 0 });
    await isConnected();
  });

  afterAll(async () => {
    await fleet?.stop();
  });

  it('stays when the machine comes back, and leaves nothing behind', async () => {
    await sh(`ln -s /etc ${SNAPSHOT}`);
    await declare(entry('file-unix', { path: '/etc/motd', content: 'hello\n' }));
    const { exit, run } = await apply('60s');
    expect({ exit, status: run.status, error: run.error }).toEqual({ exit: 0, status: 'succeeded', error: null });
    expect(await sh('cat /etc/motd')).toBe('hello\n');
    expect(await isThere('/etc/passwd')).toBe(true);
    await nothingIsLeft();
  });

  it('is undone when the firewall lets no new connection through', async () => {
    const before = await look('/etc/nftables.conf', '/etc/motd');
    await declare(
      entry('file-unix', { path: '/etc/motd', content: 'closed\n' }),
      entry('file-unix', { path: '/etc/nftables.conf', content: CLOSED, mode: '0600' }, { id: 'rules' }),
      entry('service-systemd', { name: 'nftables', running: true, restart_on: ['rules'] }),
    );
    const { exit, run } = await apply('10s');
    expect(failures(run)).toEqual([]);
    expect(run.error?.message).toContain('did not come back within 10 s');
    expect({ exit, status: run.status }).toEqual({ exit: 7, status: 'rolled_back' });
    expect(run.restored).toMatchObject({ restored: 3, not_restored: 0 });
    expect(await look('/etc/nftables.conf', '/etc/motd')).toBe(before);
    expect(await sh('nft list ruleset')).not.toContain('drop');
    await nothingIsLeft();
    expect(await json('ops', 'list', '--status', 'rolled_back')).toMatchObject({ total: 1 });
  });

  it('is undone when the machine loses its address', async () => {
    const path = '/etc/network/interfaces';
    const before = await look(path);
    await declare(
      entry('file-unix', { path: '/etc/motd', content: 'hello\n' }),
      entry('file-unix', { path, content: network('10.99.0.1/24') }, { id: 'net' }),
      entry('service-systemd', { name: 'networking', running: true, restart_on: ['net'] }),
    );
    const { exit, run } = await apply('10s');
    expect(failures(run)).toEqual([]);
    expect({ exit, status: run.status, left: run.restored?.not_restored }).toEqual({
      exit: 7,
      status: 'rolled_back',
      left: 0,
    });
    expect(await look(path)).toBe(before);
    expect(await sh('ip -4 addr show eth0')).toContain(`${web.address}/24`);
    await nothingIsLeft();
  });

  it('brings back what was to be absent, and names what stays gone', async () => {
    await sh(`printf '[Service]\\nExecStart=/bin/sleep infinity\\n[Install]\\nWantedBy=multi-user.target\\n' >/usr/lib/systemd/system/idle.service
systemctl daemon-reload; systemctl enable --now idle; useradd -m eve; mkdir -p /srv/empty /srv/full
echo secret >/etc/left; chgrp adm /etc/left; chmod 640 /etc/left; ln -s left /etc/pointing; touch /srv/full/f`);
    const all = async () =>
      (await look('/etc/left', '/srv/empty')) +
      (await sh(
        'readlink /etc/pointing; getent passwd eve; getent group eve; systemctl is-active idle; systemctl is-enabled idle',
      ));
    const before = await all();
    await declare(
      absent('file-unix', { path: '/etc/left' }),
      absent('file-unix', { path: '/etc/pointing' }),
      absent('directory-unix', { path: '/srv/empty' }),
      absent('directory-unix', { path: '/srv/full', recursive: true }),
      absent('user-unix', { name: 'eve' }),
      absent('service-systemd', { name: 'idle' }),
      script('test ! -e /etc/left && test ! -e /srv/full && ! getent passwd eve && exit 3'),
    );
    const { run } = await apply('20s');
    expect(failures(run)).toContain('apply ended with status 3');
    expect(run.status).toBe('rolled_back');
    expect(run.restored?.resources.filter(({ reason }) => reason !== null)).toEqual([
      { kind: 'script', identity: 'a step', reason: 'what a script has done cannot be undone' },
      { kind: 'absent-directory-unix', identity: '/srv/full', reason: 'what was in the directory stays gone' },
    ]);
    expect(await all()).toBe(before);
    await nothingIsLeft();
  });

  it('brings back the files and links that a purge deletes, which needs consent, and names what stays gone', async () => {
    await sh(`mkdir -p /srv/purged/full && cd /srv/purged && echo a >a && chgrp adm a && chmod 640 a && ln -s a link
      touch full/f && seq -f f%g 12 | xargs touch`);
    const all = () => sh('cd /srv/purged && find . -maxdepth 1 ! -name full -printf "%p %u %g %m %l\\n" | sort; cat a');
    const before = await all();
    await declare(
      entry('directory-unix', { path: '/srv/purged', purge: true }),
      script('test -z "$(ls -A /srv/purged)" && exit 3'),
    );
    const planned = await json<RunResult>('plan', 'web-01', '-f', '/root/site.orch.yaml');
    expect(planned.refusals).toMatchObject([{ code: 'removal_guard', allow_removals: 15 }]);
    const { stdout } = await orch('apply', 'web-01', '-f', '/root/site.orch.yaml', '--yes', '-o', 'json');
    expect((JSON.parse(stdout) as RunResult).error).toMatchObject({
      code: 'removal_guard',
      message: expect.stringContaining('this apply would delete 15 entries that nothing declares from /srv/purged'),
    });
    expect(await all()).toBe(before);
    const { run } = await apply('20s');
    expect(failures(run)).toContain('apply ended with status 3');
    expect(run.status).toBe('rolled_back');
    expect(run.restored?.resources.filter(({ reason }) => reason !== null)).toEqual([
      { kind: 'directory-unix', identity: '/srv/purged/full', reason: 'what was in the directory stays gone' },
      { kind: 'script', identity: 'a step', reason: 'what a script has done cannot be undone' },
    ]);
    expect(await all()).toBe(before);
    await nothingIsLeft();
  });

  it('brings back links and files of which it changed parts, also several of one file', async () => {
    await sh(`printf 'k=1\\r\\nold\\r\\nend' >/etc/parts; chown daemon:adm /etc/parts; chmod 640 /etc/parts
      ln -s a /srv/moved; ln -s b /srv/gone; echo precious | tee /srv/replaced /srv/replaced-too >/srv/kept; touch -d 2020-01-01 /etc/parts`);
    const all = async () =>
      (await look('/etc/parts', '/srv/replaced', '/srv/replaced-too', '/srv/kept')) +
      (await sh('stat -c %Y /etc/parts; readlink /srv/moved /srv/gone; ls -d /srv/new /srv/once /etc/new-parts 2>&1'));
    const before = await all();
    await declare(
      entry('symlink-unix', { path: '/srv/moved', target: 'z' }),
      entry('symlink-unix', { path: '/srv/replaced', target: 'z', replace: true }),
      entry('symlink-unix', { path: '/srv/new/link', target: 'z' }),
      absent('symlink-unix', { path: '/srv/gone' }),
      entry('file-unix', { path: '/srv/once', content: 'x', only_if_missing: true }),
      entry('file-unix', { path: '/srv/replaced-too', content: 'x', validate: 'test -e /srv/replaced-too' }),
      entry('file-unix', { path: '/srv/kept', content: 'x', mode: '0600', only_if_missing: true }),
      entry('setting-unix', { path: '/etc/parts', format: 'env', key: 'k', value: '2' }),
      entry('line-unix', { path: '/etc/parts', line: 'new' }),
      entry('block-unix', { path: '/etc/parts', name: 'b', content: 'x' }),
      absent('line-unix', { path: '/etc/parts', line: 'old' }),
      entry('line-unix', { path: '/etc/new-parts', line: 'new', create: true }),
      script(
        'grep -q new /etc/parts && ! grep -q old /etc/parts && test -L /srv/replaced && test -e /srv/once && exit 3',
      ),
    );
    const { run } = await apply('20s');
    expect(failures(run)).toContain('apply ended with status 3');
    expect(run.status).toBe('rolled_back');
    expect(run.restored?.resources.filter(({ reason }) => reason !== null)).toEqual([
      { kind: 'script', identity: 'a step', reason: 'what a script has done cannot be undone' },
    ]);
    expect(await all()).toBe(before);
    await nothingIsLeft();
  });

  it('brings checkouts back to their commits, and takes away those that it made', async () => {
    const commit = 'git -c user.name=a -c user.email=a@example.net commit -q --allow-empty -m x';
    await sh(`git init -q -b main /srv/origin && cd /srv/origin && ${commit} && git tag v1 && ${commit}
      git clone -q file:///srv/origin /srv/checkout && git -C /srv/checkout checkout -q v1`);
    const checkout = (path: string) => entry('git-unix', { path, url: 'file:///srv/origin', revision: 'main' });
    const all = () => sh('git -C /srv/checkout rev-parse HEAD; ls -d /srv/made 2>&1');
    const before = await all();
    await declare(
      checkout('/srv/checkout'),
      checkout('/srv/made/new/checkout'),
      script('test -d /srv/made/new/checkout/.git && exit 3'),
    );
    const { run } = await apply('20s');
    expect(failures(run)).toContain('apply ended with status 3');
    expect({ status: run.status, left: run.restored?.not_restored }).toEqual({ status: 'rolled_back', left: 1 });
    expect(await all()).toBe(before);
    await nothingIsLeft();
  });

  it('brings back what an archive has replaced and removed, and what was unpacked before', async () => {
    const file = (name: string, content: string) => ({ name, content });
    const one = tarOf(file('a/x', '1'), file('b', '1'), { name: 'l', type: 'SymbolicLink', target: 'b' });
    await control.writeFile('/root/one.tar', one);
    await control.writeFile('/root/two.tar', tarOf(file('c/d/y', '2'), file('a', '2'), file('b', '2')));
    const archive = (path: string, source: string) => entry('archive-unix', { path, source });
    await declare(archive('/srv/unpacked', 'one.tar'));
    expect((await apply('60s')).run.status).toBe('succeeded');
    await sh('echo changed >/srv/unpacked/b; chmod 600 /srv/unpacked/b; echo mine >/srv/unpacked/mine');
    const all = () =>
      sh(`cd /srv/unpacked && find . -printf '%p %M %u %l\\n' | sort; cat b a/x mine; ls -d /srv/fresh 2>&1
      cat /var/lib/orch-agent/unpacked/*`);
    const before = await all();
    await declare(
      archive('/srv/unpacked', 'two.tar'),
      archive('/srv/fresh/new', 'one.tar'),
      script('test -f /srv/unpacked/c/d/y && test -f /srv/unpacked/a && test -f /srv/fresh/new/b && exit 3'),
    );
    const { run } = await apply('20s');
    expect(failures(run)).toContain('apply ended with status 3');
    expect({ status: run.status, left: run.restored?.not_restored }).toEqual({ status: 'rolled_back', left: 1 });
    expect(await all()).toBe(before);
    await nothingIsLeft();
    await declare();
    expect((await apply('60s')).run.status).toBe('succeeded');
    await sh('rm -r /srv/unpacked');
  });

  it('brings back settings of the kernel and of the system', async () => {
    // The kernel of the test loads no modules, so a directory stands in for it.
    const modprobe = '#!/bin/sh\ncase $1 in --) mkdir "/sys/module/$2";; -r) rmdir "/sys/module/$3";; esac\n';
    await web.writeFile('/usr/sbin/modprobe', modprobe, '0755');
    await sh(`mount -o remount,rw /proc/sys; rm -f /etc/timezone; ln -sfn /usr/share/zoneinfo/Etc/UTC /etc/localtime
      mkdir -p /usr/share/zoneinfo/Test; touch /usr/share/zoneinfo/Test/Zone
      for one in a b; do cp /bin/true /opt/$one; update-alternatives --install /usr/local/bin/tool tool /opt/$one 10; done
      mount -t tmpfs none /sys/module`);
    const all = async () =>
      (await look('/etc/hosts', '/etc/hostname')) +
      (await sh(`hostname; cat /proc/sys/net/ipv4/ip_forward /proc/sys/net/ipv4/tcp_rmem; ls -A /etc/sysctl.d
        readlink /etc/localtime; ls /sys/module /etc/modules-load.d /etc/modprobe.d /etc/default/locale 2>&1
        update-alternatives --query tool | grep -E "^(Status|Value)"`));
    const before = await all();
    await declare(
      entry('sysctl-linux', { key: 'net.ipv4.ip_forward', value: 1 }),
      entry('sysctl-linux', { key: 'net.ipv4.tcp_rmem', value: '4096 131072 4194304' }),
      entry('hostname-linux', { name: 'other' }),
      entry('timezone-linux', { name: 'Test/Zone' }),
      entry('host-entry-unix', { name: 'db', addresses: ['10.0.0.5'] }),
      entry('locale-linux', { lang: 'C.UTF-8' }),
      entry('kernel-module-linux', { name: 'dummy', options: 'numdummies=2' }),
      entry('alternatives-linux', { name: 'tool', path: '/opt/b' }),
      script(
        'test -d /sys/module/dummy && test "$(hostname)" = other && test "$(cat /proc/sys/net/ipv4/ip_forward)" = 1 && exit 3',
      ),
    );
    const { run } = await apply('20s');
    expect(failures(run)).toContain('apply ended with status 3');
    expect(run.status).toBe('rolled_back');
    expect(run.restored).toMatchObject({ restored: 8, not_restored: 1 });
    expect(await all()).toBe(before);
    await nothingIsLeft();
    await sh('umount /sys/module; rm /usr/sbin/modprobe');
  });

  it('brings mounts back, and /etc/fstab as it was', async () => {
    await sh(`mkdir -p /mnt/kept /mnt/shown /mnt/gone && echo kept >/mnt/kept/file && mount -t tmpfs -o size=8m,noatime,nosuid tmpfs /mnt/gone
      mount --bind -o ro /mnt/kept /mnt/shown
      printf '# static\\ntmpfs /mnt/gone tmpfs size=8m 0 0' >/etc/fstab && echo kept >/mnt/gone/file`);
    const all = () =>
      sh(
        'cat /etc/fstab /mnt/gone/file /mnt/shown/file; findmnt -rn -o TARGET,SOURCE,VFS-OPTIONS,SIZE | grep /mnt/; ls /mnt',
      );
    const before = await all();
    await declare(
      entry('mount-linux', { path: '/mnt/gone', source: 'tmpfs', type: 'tmpfs', options: ['size=16m', 'noexec'] }),
      entry('mount-linux', { path: '/mnt/new/place', source: 'tmpfs', type: 'tmpfs' }),
      absent('mount-linux', { path: '/mnt/shown' }),
      script(
        'mountpoint -q /mnt/new/place && ! mountpoint -q /mnt/shown && findmnt -O noexec /mnt/gone >/dev/null && exit 3',
      ),
    );
    const { run } = await apply('20s');
    expect(failures(run)).toContain('apply ended with status 3');
    expect(run.restored).toMatchObject({ restored: 3, not_restored: 1 });
    expect(await all()).toBe(before);
    await nothingIsLeft();
    await sh('umount /mnt/gone /mnt/shown');
  });

  it('brings the hash and the keys of users back, and entries of cron', async () => {
    const key = (name: string) => `ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI${'x'.repeat(43)} ${name}`;
    await sh(`useradd -m -c Old -G adm ida; useradd -m jon; echo 'ida:$6$a$old' | chpasswd -e
install -d -m 700 -o ida -g ida /home/ida/.ssh; echo '${key('old')}' >/home/ida/.ssh/authorized_keys
chown ida:ida /home/ida/.ssh/authorized_keys; chmod 640 /home/ida/.ssh/authorized_keys
mkdir -p /etc/cron.d; echo '@daily root old' >/etc/cron.d/job; echo '@daily root gone' >/etc/cron.d/gone`);
    const keys = [
      '/home/ida/.ssh',
      '/home/ida/.ssh/authorized_keys',
      '/home/jon/.ssh',
      '/etc/cron.d/job',
      '/etc/cron.d/gone',
      '/etc/cron.d/new',
    ];
    const all = async () =>
      (await look(...keys)) + (await sh('getent passwd ida; getent shadow ida | cut -d: -f2; id ida'));
    const before = await all();
    const body = { name: 'ida', comment: 'New', append_groups: ['audio'], password_hash: '$6$a$new' };
    await declare(
      entry('user-unix', { ...body, authorized_keys: { keys: [key('new')], exclusive: true } }),
      entry('authorized-key-unix', { user: 'jon', key: key('new') }),
      entry('cron-unix', { name: 'job', schedule: '@daily', user: 'root', command: 'new' }),
      entry('cron-unix', { name: 'new', schedule: '@daily', user: 'ida', command: 'new' }),
      absent('cron-unix', { name: 'gone' }),
      script(
        'grep -q new /home/ida/.ssh/authorized_keys && grep -q new /etc/cron.d/new && ! test -e /etc/cron.d/gone && exit 3',
      ),
    );
    const { run } = await apply('20s');
    expect(failures(run)).toContain('apply ended with status 3');
    expect(run.status).toBe('rolled_back');
    expect(run.restored?.resources.filter(({ reason }) => reason !== null)).toEqual([
      { kind: 'script', identity: 'a step', reason: 'what a script has done cannot be undone' },
    ]);
    expect(await all()).toBe(before);
    await nothingIsLeft();
  });

  it('brings repositories back with their keys', async () => {
    const key = (name: string) =>
      `-----BEGIN PGP PUBLIC KEY BLOCK-----\n\n${name}\n-----END PGP PUBLIC KEY BLOCK-----\n`;
    await sh(`cd /etc/apt/sources.list.d; mkdir -p ../keyrings
      for one in old gone; do echo "Signed-By: /etc/apt/keyrings/$one.asc" >$one.sources; echo $one >../keyrings/$one.asc; done
      mkdir -p /etc/yum.repos.d /etc/pki/rpm-gpg; echo old >/etc/yum.repos.d/old.repo`);
    const files = ['old', 'gone', 'new'].flatMap((name) => [
      `/etc/apt/sources.list.d/${name}.sources`,
      `/etc/apt/keyrings/${name}.asc`,
      `/etc/yum.repos.d/${name}.repo`,
      `/etc/pki/rpm-gpg/RPM-GPG-KEY-${name}`,
    ]);
    const before = await look(...files);
    const body = { uris: ['file:/srv/none'], suites: ['./'], enabled: false };
    await declare(
      entry('repository-apt', { ...body, name: 'old', key: key('other') }),
      entry('repository-apt', { ...body, name: 'new', key: key('new') }),
      absent('repository-apt', { name: 'gone' }),
      ...['old', 'new'].map((name) =>
        entry('repository-dnf', { name, baseurl: ['file:///srv/none'], enabled: false, key: key(name) }),
      ),
      script(
        'cd /etc/apt/keyrings && grep -q other old.asc && test -e new.asc && ! test -e gone.asc && test -e /etc/pki/rpm-gpg/RPM-GPG-KEY-new && exit 3',
      ),
    );
    const { run } = await apply('20s');
    expect(failures(run)).toContain('apply ended with status 3');
    expect(run.restored).toMatchObject({ restored: 5, not_restored: 1 });
    expect(await look(...files)).toBe(before);
    await nothingIsLeft();
  });

  it('brings timers back with their units', async () => {
    await sh(`cd /etc/systemd/system; for one in changed gone; do
      printf "[Timer]\\nOnCalendar=yearly\\n[Install]\\nWantedBy=timers.target\\n" >$one.timer
      printf "[Service]\\nExecStart=/bin/true\\n" >$one.service; done
      systemctl daemon-reload; systemctl enable --now changed.timer gone.timer`);
    const files = ['changed', 'gone', 'new'].flatMap((name) =>
      ['timer', 'service'].map((type) => `/etc/systemd/system/${name}.${type}`),
    );
    const all = async () =>
      (await look(...files)) +
      (await sh(
        'for one in changed gone new; do systemctl is-enabled $one.timer; systemctl is-active $one.timer; done 2>&1',
      ));
    const before = await all();
    const body = { command: '/bin/true', on_calendar: 'daily' };
    await declare(
      entry('timer-systemd', { ...body, name: 'changed' }),
      entry('timer-systemd', { ...body, name: 'new' }),
      absent('timer-systemd', { name: 'gone' }),
      script('systemctl is-active -q new.timer && ! systemctl is-active -q gone.timer && exit 3'),
    );
    const { run } = await apply('20s');
    expect(failures(run)).toContain('apply ended with status 3');
    expect(run.restored).toMatchObject({ restored: 3, not_restored: 1 });
    expect(await all()).toBe(before);
    await nothingIsLeft();
  });

  it('brings back masks, new accounts and files beside the module, and names the package that stays', async () => {
    await sh(`for one in shown hidden kept brief; do
        printf '[Service]\\nExecStart=/bin/sleep infinity\\n[Install]\\nWantedBy=multi-user.target\\n' >/usr/lib/systemd/system/$one.service; done
      systemctl daemon-reload; systemctl enable --now shown; systemctl enable kept; systemctl mask hidden kept; systemctl mask --runtime brief
      groupadd -g 3300 crew; mkdir -p /srv/site/css; echo old >/srv/site/css/a; chmod 600 /srv/site/css/a; printf '\\000old' >/srv/blob
      rm -f /etc/apt/sources.list.d/*; : >/etc/apt/sources.list; apt-get update`);
    await control.run([
      'sh',
      '-c',
      `mkdir -p /root/site/css /root/deb/DEBIAN; echo new >/root/site/css/a; echo new >/root/site/b; printf '\\000new' >/root/blob
      printf 'Package: beside\\nVersion: 1\\nArchitecture: all\\nMaintainer: a <a@example.net>\\nDescription: test\\n' >/root/deb/DEBIAN/control
      dpkg-deb -b /root/deb /root/beside.deb`,
    ]);
    const all = async () =>
      (await look('/srv/site', '/srv/site/css', '/srv/site/css/a', '/srv/site/b', '/srv/blob')) +
      (await sh(`for one in shown hidden kept brief; do systemctl is-enabled $one; systemctl is-active $one; done
        ls /etc/systemd/system/*.wants; getent group crew kim fleet; getent passwd kim`));
    const before = await all();
    await declare(
      entry('service-systemd', { name: 'shown', masked: true, running: false }),
      entry('service-systemd', { name: 'hidden', masked: false, enabled: true, running: true }),
      entry('service-systemd', { name: 'kept', masked: false, enabled: false, running: true }),
      entry('service-systemd', { name: 'brief', masked: false, enabled: true, running: true }),
      entry('group-unix', { name: 'crew', gid: 3301 }),
      entry('group-unix', { name: 'fleet' }),
      entry('user-unix', { name: 'kim', append_groups: ['fleet'], home: '/home/kim' }),
      entry('directory-unix', { path: '/srv/site', source: 'site', file_mode: '0640' }),
      entry('file-unix', { path: '/srv/blob', source: 'blob', mode: '0600' }),
      entry('package-apt', { name: 'beside', version: 'installed', source: 'beside.deb' }),
      script(
        'for one in hidden kept brief; do systemctl is-active -q $one || exit 0; done; id kim >/dev/null && grep -q new /srv/site/css/a && grep -qa new /srv/blob && dpkg -s beside >/dev/null && exit 3',
      ),
    );
    const { run } = await apply('20s');
    expect(failures(run)).toEqual(['apply ended with status 3']);
    expect(run.status).toBe('rolled_back');
    expect(run.restored?.resources.filter(({ reason }) => reason !== null)).toEqual([
      { kind: 'script', identity: 'a step', reason: 'what a script has done cannot be undone' },
      { kind: 'package-apt', identity: 'beside', reason: 'packages stay as they are' },
      {
        kind: 'user-unix',
        identity: 'kim',
        reason: 'the account is removed again, its home directory /home/kim stays',
      },
    ]);
    expect(await all()).toBe(before);
    await nothingIsLeft();
  });

  it('is undone by an agent that is not root, in its own files', async () => {
    await sh('useradd -m zoe; printf "a=1\\n" >/home/zoe/conf; chown zoe: /home/zoe/conf; chmod 640 /home/zoe/conf');
    const { public_key: key } = await json<{ public_key: string }>('status');
    // A user without a session, as for a job that runs an agent of its own.
    await sh(
      `systemd-run --quiet --unit=zoe --uid=zoe --setenv=HOME=/home/zoe orch agent connect ${control.address}:4747 --orchestrator-key ${key} --hostname zoe`,
    );
    try {
      const found = async () =>
        (await json<Agent[]>('agents', 'list')).find(({ initial_hostname: host }) => host === 'zoe');
      await until(async () => (await found())?.status === 'pending', 'the agent of the user waits');
      const id = (await found())?.node_id ?? '';
      expect(await orch('agents', 'approve', id, '--name', 'zoe', '--yes')).toMatchObject({ status: 0 });
      await until(async () => (await found())?.connected === true, 'the agent of the user is connected');
      const paths = ['/home/zoe/conf', '/home/zoe/new'];
      const before = await look(...paths);
      await declare(
        entry('line-unix', { path: '/home/zoe/conf', line: 'b=2' }),
        entry('file-unix', { path: '/home/zoe/new', content: 'new\n' }),
        entry('script', { program: 'sh', manages: 'a step', apply: 'grep -q b=2 ~/conf && exit 3', check: 'exit 1' }),
      );
      const tried = await orch(
        ...['apply', 'zoe', '-f', '/root/site.orch.yaml', '--yes', '--confirm-within', '20s', '-o', 'json'],
      );
      const run = JSON.parse(tried.stdout) as RunResult;
      expect([tried.status, run.status, failures(run)]).toEqual([7, 'rolled_back', ['apply ended with status 3']]);
      expect(run.restored).toMatchObject({ restored: 2, not_restored: 1 });
      expect(await look(...paths)).toBe(before);
    } finally {
      await sh('systemctl stop zoe');
      await orch('agents', 'reject', 'zoe', '--yes');
      await orch('agents', 'remove', 'zoe', '--yes');
    }
    await nothingIsLeft();
  });

  it('is undone from outside when the agent no longer starts', async () => {
    const path = '/etc/systemd/system/orch-agent.service';
    const before = await look(path);
    await declare(
      entry('file-unix', { path: '/etc/motd', content: 'hello\n' }),
      entry('file-unix', { path, content: '[Service]\nExecStart=/bin/false\n' }),
      script('systemctl daemon-reload; systemctl kill -s KILL orch-agent; sleep 60'),
    );
    const { exit, run } = await apply('10s');
    expect(run.error?.message).toContain('the agent no longer started');
    expect({ exit, status: run.status }).toEqual({ exit: 7, status: 'rolled_back' });
    expect(run.restored?.resources[0]).toMatchObject({
      kind: 'script',
      reason: 'what a script has done cannot be undone',
    });
    expect(await look(path)).toBe(before);
    expect(await sh('systemctl show orch-agent -p ActiveState --value')).toBe('active\n');
    await nothingIsLeft();
  });

  describe('on a machine that the apply leaves nearly unusable', () => {
    const AGENT = '/etc/systemd/system/orch-agent.service';
    const changed = ['/srv/plain', '/srv/full/old', '/srv/eve/theirs', AGENT];
    /** Nothing can be written in /tmp and /var, a disk is full, and programs that the agent uses are gone. */
    const SPOIL = `mount -t tmpfs -o ro none /tmp && mount --bind /var /var && mount -o remount,bind,ro /var || exit 9
      (cd /srv/full && touch a b c d e f; cat /dev/zero >a) 2>/dev/null
      mkdir /root/tools && cd /usr/bin && mv cp ls mkfifo mktemp systemctl /root/tools/`;
    const MEND = `mv /root/tools/* /usr/bin/ && rmdir /root/tools; umount /tmp /var
      systemctl reset-failed orch-agent; systemctl start orch-agent`;

    it.for([
      ['by the agent', 'exit 1'],
      ['from outside', 'kill -s KILL $agent; sleep 60'],
    ] as const)('is undone %s', async ([, end]) => {
      await sh(`mkdir -p /srv/full /srv/eve && chown 1234:1234 /srv/eve && echo orig >/srv/plain && chmod 640 /srv/plain
        mount -t tmpfs -o size=64k,nr_inodes=6,mode=755 none /srv/full && echo orig >/srv/full/old
        echo orig >/srv/eve/theirs && chown 1234:1234 /srv/eve/theirs && chmod 600 /srv/eve/theirs`);
      await web.writeFile('/run/list.conf', 'a+ /srv/plain - - - - u:daemon:r\n');
      await sh('systemd-tmpfiles --create /run/list.conf');
      const listed = /^-rw-r-----\+/;
      expect(await sh('ls -l /srv/plain')).toMatch(listed);
      const before = await look(...changed);
      try {
        await declare(
          ...changed.slice(0, 3).map((path) => entry('file-unix', { path, content: 'changed\n', mode: '0644' })),
          entry('file-unix', { path: '/srv/eve/new/deep', content: 'new\n' }),
          entry('file-unix', { path: AGENT, content: '[Service]\nExecStart=/bin/false\n' }),
          script(`systemctl daemon-reload; agent=$(systemctl show -p MainPID --value orch-agent); ${SPOIL}; ${end}`),
        );
        const applied = apply('10s');
        await until(async () => (await look(...changed)) !== before, 'the files are changed');
        await until(async () => (await look(...changed)) === before, 'the files are as before');
        await until(async () => !(await isThere('/srv/eve/new')), 'what was made is gone');
        await sh(MEND);
        const { exit, run } = await applied;
        expect({ exit, status: run.status }).toEqual({ exit: 7, status: 'rolled_back' });
        expect(run.restored?.resources.flatMap(({ kind, reason }) => (reason === null ? [] : [kind]))).toEqual([
          'script',
        ]);
        expect(await look(...changed)).toBe(before);
        expect(await sh('ls -l /srv/plain')).toMatch(listed);
        expect(await sh('find /srv -name "*dpkg-tmp"')).toBe('');
        await isConnected();
        await nothingIsLeft();
      } finally {
        await sh('umount /srv/full; rm -rf /srv/plain /srv/eve');
      }
    });
  });

  it('is confirmed by an agent that was killed and has come back in time', async () => {
    await declare(entry('file-unix', { path: '/etc/motd', content: 'killed\n' }), script('sleep 3'));
    const id = await begin(120);
    await serve('stop');
    await isAwaiting();
    await sh('systemctl kill -s KILL orch-agent');
    await serve('start');
    expect(await ended(id)).toMatchObject({ status: 'succeeded' });
    expect(await sh('cat /etc/motd')).toBe('killed\n');
    await nothingIsLeft();
  });

  it('is undone when the orchestrator is away for too long', async () => {
    await declare(entry('file-unix', { path: '/etc/motd', content: 'away\n' }), script('sleep 3'));
    const id = await begin(10);
    await serve('stop');
    await until(async () => (await sh('cat /etc/motd')) === 'killed\n', 'the file is as before');
    await serve('start');
    expect(await ended(id)).toMatchObject({ status: 'rolled_back', restored: { restored: 1, not_restored: 1 } });
    await nothingIsLeft();
  });

  it('is undone before the agent speaks when the machine was started anew', async () => {
    await declare(entry('file-unix', { path: '/etc/motd', content: 'booted\n' }), script('sleep 3'));
    const id = await begin(600);
    await serve('stop');
    await isAwaiting();
    await web.reboot();
    await until(async () => (await sh('cat /etc/motd')) === 'killed\n', 'the file is as before');
    await serve('start');
    expect(await ended(id)).toMatchObject({ status: 'rolled_back' });
    await isConnected();
    await nothingIsLeft();
  });
});
