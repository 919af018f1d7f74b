/** Mounts of a booted Debian, now and in /etc/fstab: in memory and bind mounts, which need no device. */
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { type Fleet, startFleet } from './fleet.js';
import type { BootedHost } from './host.js';
import { absent, type Body, type Entry, entry, failures, LocalOrch, sh } from './local-orch.js';
import { describeHosts } from './requirements.js';

const mount = (body: Body, more: Omit<Entry, 'resource'> = {}) => entry('mount-linux', body, more);
const cache = (options: readonly string[], more: Body = {}) =>
  mount({ path: '/srv/cache', source: 'tmpfs', type: 'tmpfs', options, ...more });
const bind = (source: string, options: readonly string[] = ['bind']) =>
  mount({ path: '/srv/shown', source, type: 'none', options });

/** Bytes that have to stay as they are. */
const FSTAB = [
  '# /etc/fstab: static file system information.',
  '',
  'UUID=1234-ABCD\t/data\text4\tnoauto,errors=remount-ro 0\t 1   ',
  '  # a comment with blanks',
  'tmpfs /srv/other\\040place tmpfs noauto 0 0',
].join('\n');

describeHosts('mounts of a booted machine', () => {
  let fleet: Fleet;
  let host: BootedHost;
  let orch: LocalOrch;
  const run = (script: string) => sh(host, script);
  const fstab = () => run('cat /etc/fstab');
  const shown = (path: string, fields = 'FSTYPE,SOURCE,VFS-OPTIONS') =>
    run(`findmnt -rn --mountpoint ${path} -o ${fields} || true`);

  beforeAll(async () => {
    fleet = await startFleet({ hosts: ['mounts'], capabilities: ['CAP_SYS_ADMIN'] });
    host = fleet.host('mounts');
    orch = new LocalOrch(host, '/root/site.orch.yaml');
    await run('useradd -m eve');
  });

  afterAll(async () => {
    await fleet?.stop();
  });

  beforeEach(async () => {
    await run(`if [ -e /run/user-of-mount ]; then kill "$(cat /run/user-of-mount)" 2>/dev/null; fi; rm -rf /root/.local /var/lib/orch-local
      for at in /srv/shown /srv/cache/inner /srv/cache; do while umount "$at" 2>/dev/null; do :; done; done
      rm -rf /srv/cache /srv/shown`);
    await host.writeFile('/etc/fstab', FSTAB, '0644');
    await run('systemctl daemon-reload');
  });

  it('come now and at the next start, change by a remount that keeps what is in them, and are repaired', async () => {
    expect(await orch.appliedAsPlanned(cache(['size=8m', 'nosuid', 'nodev']))).toEqual([
      ['/srv/cache', 'create', 'mounted,at_boot'],
    ]);
    expect(await shown('/srv/cache')).toBe('tmpfs tmpfs rw,nosuid,nodev,relatime');
    expect(await shown('/srv/cache', 'SIZE')).toBe('8M');
    const line = 'tmpfs /srv/cache tmpfs size=8m,nosuid,nodev 0 0';
    expect(await fstab()).toBe(`${FSTAB}\n${line}`);
    expect(
      await run('systemctl show -P What,Where srv-cache.mount | sort; systemctl is-active srv-cache.mount'),
    ).toContain('active');
    expect(await run('systemctl show -P SourcePath srv-cache.mount')).toBe('/etc/fstab');
    await orch.isSettled();
    await run('echo kept >/srv/cache/file');

    // By hand: other options, and another line.
    await run('mount -o remount,size=4m,noatime,exec,suid /srv/cache');
    expect(await orch.differences('drift')).toEqual([['/srv/cache', 'update', 'options']]);
    expect(failures(await orch.apply())).toEqual({});
    expect(await shown('/srv/cache')).toBe('tmpfs tmpfs rw,nosuid,nodev,relatime');
    expect(await shown('/srv/cache', 'SIZE')).toBe('8M');
    await run("sed -i 's/size=8m/size=9m/' /etc/fstab");
    expect(await orch.differences('drift')).toEqual([['/srv/cache', 'update', 'at_boot']]);
    expect(failures(await orch.apply())).toEqual({});
    await orch.isSettled();

    // Another value of the module.
    expect(await orch.appliedAsPlanned(cache(['size=16m', 'noexec', 'ro'], { pass: 0 }))).toEqual([
      ['/srv/cache', 'update', 'options,at_boot'],
    ]);
    expect(await shown('/srv/cache')).toBe('tmpfs tmpfs ro,noexec,relatime');
    expect(await shown('/srv/cache', 'SIZE')).toBe('16M');
    expect(await run('cat /srv/cache/file')).toBe('kept');
    await orch.isSettled();

    // By hand: unmounted; unmounted and something else mounted.
    await run('umount /srv/cache');
    expect(await orch.differences('drift')).toEqual([['/srv/cache', 'update', 'mounted']]);
    expect(failures(await orch.apply())).toEqual({});
    await run('umount /srv/cache; mkdir -p /srv/there; mount --bind /srv/there /srv/cache');
    expect(await orch.differences('drift')).toEqual([['/srv/cache', 'update', 'type']]);
    expect(failures(await orch.apply())).toEqual({});
    expect(await shown('/srv/cache')).toBe('tmpfs tmpfs ro,noexec,relatime');
    await orch.isSettled();

    // It goes with its line, and nothing else does.
    expect(await orch.applied(entry('file-unix', { path: '/etc/kept', content: '' }))).toEqual({});
    expect(await shown('/srv/cache')).toBe('');
    expect(await fstab()).toBe(FSTAB);
    expect(await run('ls -A /srv/cache; systemctl show -P LoadState srv-cache.mount')).toBe('not-found');
    await orch.isSettled();
  });

  it('hold over a start of the machine', async () => {
    await run('mkdir -p "/srv/with space/in it" && echo here >"/srv/with space/in it/file"');
    const entries = [cache(['size=8m'], { path: '/srv/a b' }), bind('/srv/with space/in it', ['bind', 'ro'])];
    expect((await orch.appliedAsPlanned(...entries)).map(([path]) => path)).toEqual(['/srv/a b', '/srv/shown']);
    expect(await fstab()).toBe(
      `${FSTAB}\ntmpfs /srv/a\\040b tmpfs size=8m 0 0\n/srv/with\\040space/in\\040it /srv/shown none bind,ro 0 0`,
    );
    expect(await shown('/srv/shown', 'VFS-OPTIONS')).toBe('ro,relatime');
    await orch.isSettled();
    await host.reboot();
    expect(await run('cat /srv/shown/file; findmnt -rn -o FSTYPE --mountpoint "/srv/a b"')).toBe('here\ntmpfs');
    await orch.isSettled();
    expect(await orch.applied()).toEqual({});
    expect(await fstab()).toBe(FSTAB);
    await run('rmdir "/srv/a b" && rm -r "/srv/with space"');
  });

  it('show other directories, and are mounted anew where another one is wanted', async () => {
    await run('mkdir -p /srv/one /srv/two && echo one >/srv/one/file && echo two >/srv/two/file');
    expect(await orch.appliedAsPlanned(bind('/srv/one'))).toEqual([['/srv/shown', 'create', 'mounted,at_boot']]);
    await orch.isSettled();
    expect(await orch.appliedAsPlanned(bind('/srv/two'))).toEqual([['/srv/shown', 'update', 'source,at_boot']]);
    expect(await run('cat /srv/shown/file; findmnt -rn --mountpoint /srv/shown | wc -l')).toBe('two\n1');
    await orch.isSettled();
    await run('umount /srv/shown && mount --bind /srv/one /srv/shown');
    expect(await orch.differences('drift')).toEqual([['/srv/shown', 'update', 'source']]);
    expect(failures(await orch.apply())).toEqual({});
    expect(await run('cat /srv/shown/file')).toBe('two');

    // Another source that cannot be mounted leaves no line that would stop the next start of the machine.
    const broken = { path: '/srv/shown', source: '/dev/null', type: 'ext4', options: ['defaults'] };
    expect(await orch.applied(mount(broken))).toEqual({
      '/srv/shown': expect.stringMatching(/^(value_unknown|file_missing|wrong_type|command_failed): /),
    });
    expect(await fstab()).not.toContain('/dev/null');
    expect(await orch.applied(bind('/srv/two'))).toEqual({});
    expect(await run('cat /srv/shown/file; findmnt -rn --mountpoint /srv/shown | wc -l')).toBe('two\n1');

    // A mount in use stays, and so does its line.
    await run('cd /srv/shown && (setsid sleep 300 </dev/null >/dev/null 2>&1 & echo $! >/run/user-of-mount)');
    const before = await fstab();
    const inUse =
      '/srv/shown is in use, so it stays mounted, and nothing was changed; "fuser -vm /srv/shown" names the programs and "findmnt -R /srv/shown" what is mounted in it; stop them, and apply again';
    await orch.declare(absent('mount-linux', { path: '/srv/shown' }));
    expect((await orch.apply())[0]?.error).toEqual({ code: 'busy', message: inUse });
    expect(await fstab()).toBe(before);
    expect(await orch.applied()).toEqual({ '/srv/shown': `busy: ${inUse}` });
    expect(await orch.applied(bind('/srv/one'))).toEqual({ '/srv/shown': `busy: ${inUse}` });
    expect(await fstab()).toBe(before);
    expect(await run('cat /srv/shown/file')).toBe('two');
    await run('pid=$(cat /run/user-of-mount); kill "$pid"; while [ -d "/proc/$pid" ]; do sleep 0.1; done');

    // Something else is mounted there by hand when the module no longer names it.
    await run('umount /srv/shown && mount --bind /srv/one /srv/shown');
    expect(await orch.applied()).toEqual({});
    expect(await run('cat /srv/shown/file')).toBe('one');
    expect(await fstab()).toBe(FSTAB);
    expect(await orch.applied(absent('mount-linux', { path: '/srv/shown' }))).toEqual({});
    expect(await run('ls -A /srv/shown')).toBe('');
    await orch.isSettled();
  });

  it('are made before what lies in them, which waits where a mount fails', async () => {
    const inside = entry('file-unix', { path: '/srv/cache/inner/deep/file', content: 'x' });
    const inner = mount({ path: '/srv/cache/inner', source: 'tmpfs', type: 'tmpfs' });
    const owned = entry('directory-unix', { path: '/srv/cache', mode: '0750' });
    await run('mkdir /srv/cache');
    expect((await orch.appliedAsPlanned(cache(['size=8m']), owned, inner, inside)).map(([path]) => path)).toEqual([
      '/srv/cache',
      '/srv/cache',
      '/srv/cache/inner',
      '/srv/cache/inner/deep/file',
    ]);
    expect(await run('findmnt -rn -o TARGET -T /srv/cache/inner/deep/file; stat -c %a /srv/cache')).toBe(
      '/srv/cache/inner\n750',
    );
    await orch.isSettled();
    expect(await orch.applied()).toEqual({});
    expect(await run('ls -A /srv/cache')).toBe('');

    // A directory that is declared first goes last.
    const before = [
      entry('directory-unix', { path: '/srv/shown' }, { id: 'place' }),
      mount({ path: '/srv/shown', source: 'tmpfs', type: 'tmpfs' }, { depends_on: ['place'] }),
    ];
    await orch.appliedAsPlanned(...before);
    await orch.isSettled();
    expect(await orch.applied()).toEqual({});
    expect(await run('ls -d /srv/shown 2>/dev/null || true')).toBe('');

    const wrong = await orch.applied(cache(['size=8m', 'nothing=1']), inside);
    expect(wrong).toMatchObject({
      '/srv/cache': expect.stringMatching(/^value_unknown: tmpfs cannot be mounted as tmpfs with these options; /),
      '/srv/cache/inner/deep/file': expect.stringMatching(/^dependency_failed: /),
    });
    expect(await run('ls -A /srv/cache')).toBe('');
    expect(await fstab()).toBe(FSTAB);
  });

  it('stay only in the file, or are absent', async () => {
    expect(await orch.appliedAsPlanned(cache(['noauto']))).toEqual([['/srv/cache', 'create', 'at_boot']]);
    expect(await fstab()).toBe(`${FSTAB}\ntmpfs /srv/cache tmpfs noauto 0 0`);
    await run('mkdir /srv/cache && mount /srv/cache');
    await orch.isSettled();
    expect(await orch.appliedAsPlanned(cache(['noauto'], { mounted: false }))).toEqual([
      ['/srv/cache', 'update', 'mounted'],
    ]);
    expect(await shown('/srv/cache')).toBe('');
    await orch.isSettled();
    expect(await orch.applied(absent('mount-linux', { path: '/srv/cache' }))).toEqual({});
    expect(await fstab()).toBe(FSTAB);
    await run('mount -t tmpfs one /srv/cache; mount -t tmpfs two /srv/cache; echo "x /srv/cache/ auto" >>/etc/fstab');
    expect(await orch.applied(absent('mount-linux', { path: '/srv/cache' }))).toEqual({});
    expect(await shown('/srv/cache')).toBe('');
    expect(await fstab()).toBe(`${FSTAB}\n`.trimEnd());
    await orch.isSettled();
  });

  it('come from an image, by its path and as a device', async () => {
    await run(`for at in 0 1 2 3 4 5 6 7; do [ -e /dev/loop$at ] || mknod /dev/loop$at b 7 $at; done
      [ -e /dev/loop-control ] || mknod /dev/loop-control c 10 237
      truncate -s 8M /srv/image && mkfs.ext4 -q /srv/image`);
    const image = (options: readonly string[]) =>
      mount({ path: '/srv/cache', source: '/srv/image', type: 'ext4', options });
    await orch.appliedAsPlanned(image(['loop', 'noatime']));
    expect(await shown('/srv/cache', 'FSTYPE,VFS-OPTIONS')).toBe('ext4 rw,noatime');
    await orch.isSettled();
    await run('echo kept >/srv/cache/file');
    // The kernel keeps noatime in a remount that does not name the access times.
    await orch.appliedAsPlanned(image(['loop', 'nodev']));
    expect(await shown('/srv/cache', 'FSTYPE,VFS-OPTIONS')).toBe('ext4 rw,nodev,relatime');
    expect(await run('cat /srv/cache/file')).toBe('kept');
    await orch.isSettled();
    await orch.appliedAsPlanned(image(['loop', 'nodev', 'errors=remount-ro']));
    await orch.isSettled();
    const [dropped] = await (async () => {
      await orch.declare(image(['loop', 'nodev']));
      return orch.apply();
    })();
    expect(dropped).toMatchObject({
      status: 'changed',
      reason: 'errors=remount-ro holds until /srv/cache is unmounted and mounted anew',
    });
    await orch.isSettled();
    const wrong = await orch.applied(image(['loop', 'nodev', 'nothing=1']));
    expect(wrong).toEqual({
      '/srv/cache': expect.stringMatching(
        /^value_unknown: the file system does not take these options while it is mounted; correct them, or unmount \/srv\/cache and apply again/,
      ),
    });
    expect(await run('cat /srv/cache/file; tail -n 1 /etc/fstab')).toBe(
      'kept\n/srv/image /srv/cache ext4 loop,nodev 0 0',
    );
    // The same file system as a device.
    const device = await shown('/srv/cache', 'SOURCE');
    await orch.appliedAsPlanned(mount({ path: '/srv/cache', source: device, type: 'auto', options: ['nodev'] }));
    expect(await run('cat /srv/cache/file')).toBe('kept');
    await orch.isSettled();
    expect(await orch.applied(mount({ path: '/srv/cache', source: device, type: 'xfs' }))).toEqual({
      '/srv/cache': expect.stringMatching(/^(value_unknown|file_missing|command_failed): /),
    });
    expect(await orch.applied(absent('mount-linux', { path: '/srv/cache' }))).toEqual({});
    await run('rm /srv/image');
  });

  it('that were there before are taken over, and left when the module no longer names them', async () => {
    await run('mkdir /srv/cache && mount -t tmpfs -o size=8m tmpfs /srv/cache');
    await run("printf '\\ntmpfs\\t/srv/cache/\\ttmpfs\\tsize=8m\\n' >>/etc/fstab");
    const before = await fstab();
    expect(await orch.applied(cache(['size=8m']))).toEqual({});
    expect(await fstab()).toBe(before);
    await orch.isSettled();
    expect(await orch.applied()).toEqual({});
    expect(await fstab()).toBe(before);
    expect(await shown('/srv/cache')).toBe('tmpfs tmpfs rw,relatime');
  });

  it('say what is in the way, and change nothing', async () => {
    await run(`mkdir -p /srv/cache /srv/one && touch /srv/cache/held /srv/file /srv/image && mkdir -p /srv/seven && ln -sfn /srv /srv/link
      mkdir -p /home/eve/mine && chown eve /home/eve/mine`);
    const at = (path: string, source = 'tmpfs', type = 'tmpfs', more: Body = {}) =>
      mount({ path, source, type, ...more });
    const wrong = [
      at('/srv/cache'),
      at('/srv/file'),
      at('/srv/link/below'),
      at('/srv/link'),
      at('/home/eve/mine/disk'),
      at('/tmp/disk'),
      at('/srv/one', '/dev/nothing', 'ext4'),
      at('/srv/two', 'UUID=0000-0000', 'ext4'),
      at('/srv/three', '/srv/nothing', 'none', { options: ['bind'] }),
      at('/srv/four', '/srv/image', 'none', { options: ['bind'] }),
      at('/srv/five', '/home/eve/mine/dir', 'none', { options: ['bind'] }),
      at('/srv/six', '/srv/seven', 'ext4'),
    ];
    const refused = {
      '/srv/cache':
        'content_unsuitable: /srv/cache holds 1 entry, which the mount would hide; move them away, or write "non_empty: true"',
      '/srv/file': 'wrong_type: /srv/file is a file, not a directory',
      '/srv/link/below': 'unsafe_path: /srv/link is a symlink to /srv; declare the path without links',
      '/srv/link': 'wrong_type: /srv/link is a symlink to /srv; declare the path that it leads to',
      '/home/eve/mine/disk':
        'unsafe_path: /home/eve/mine belongs to eve, so that others could exchange what is mounted, or where; declare paths in directories of root',
      '/tmp/disk':
        'unsafe_path: /tmp can be changed by everyone, so that others could exchange what is mounted, or where; declare paths in directories of root',
      '/srv/one': 'file_missing: /dev/nothing does not exist, so it cannot be mounted',
      '/srv/two': 'file_missing: no file system of this machine has UUID=0000-0000; "lsblk -f" lists them',
      '/srv/three': 'file_missing: /srv/nothing does not exist, so it cannot be mounted',
      '/srv/four': 'wrong_type: /srv/image is a file, and only directories are mounted with bind',
      '/srv/five': 'file_missing: /home/eve/mine/dir does not exist, so it cannot be mounted',
      '/srv/six': 'wrong_type: /srv/seven is a directory; "options: [bind]" with "type: none" mounts one',
    };
    await orch.declare(...wrong);
    expect(failures(await orch.results('plan'))).toEqual(refused);
    expect(failures(await orch.apply())).toEqual(refused);
    expect(await fstab()).toBe(FSTAB);
    await run('mkdir /home/eve/mine/dir');
    expect(await orch.applied(at('/srv/five', '/home/eve/mine/dir', 'none', { options: ['bind'] }))).toEqual({
      '/srv/five': expect.stringMatching(/^unsafe_path: \/home\/eve\/mine belongs to eve/),
    });
    expect(await orch.applied(at('/srv/eight', 'nas:/x', 'nfs'))).toEqual({
      '/srv/eight': expect.stringMatching(
        /^value_unknown: .*; correct the type, or install the package that brings it$/,
      ),
    });
    expect(await fstab()).toBe(FSTAB);

    // Over a directory that holds something, where the module says so.
    expect(await orch.applied(cache(['size=8m'], { non_empty: true }))).toEqual({});
    expect(await run('ls -A /srv/cache')).toBe('');
    await orch.isSettled();
    expect(await orch.applied()).toEqual({});
    expect(await run('ls -A /srv/cache')).toBe('held');

    await run('printf "\\na /srv/cache tmpfs\\nb /srv/cache tmpfs\\n" >>/etc/fstab');
    expect(await orch.applied(cache(['size=8m'], { non_empty: true }))).toEqual({
      '/srv/cache': 'content_unsuitable: lines 7 and 8 of /etc/fstab are both for /srv/cache; take all but one out',
    });
    await run('mv /etc/fstab /etc/fstab.real && ln -s fstab.real /etc/fstab');
    expect(await orch.applied(cache(['size=8m'], { non_empty: true }))).toEqual({
      '/srv/cache': expect.stringMatching(/^wrong_type: \/etc\/fstab is a symlink to fstab\.real/),
    });
    await run('rm /etc/fstab.real /etc/fstab');
    expect(await orch.applied(cache(['size=8m'], { non_empty: true }))).toEqual({});
    expect(await run('stat -c "%a %U" /etc/fstab; cat /etc/fstab')).toBe(
      '644 root\ntmpfs /srv/cache tmpfs size=8m 0 0',
    );
    expect(await orch.applied()).toEqual({});
  });

  it('are those of root: an ordinary user is refused with the reason', async () => {
    const eve = new LocalOrch(host, '/home/eve/site.orch.yaml', 'eve');
    await eve.declare(cache(['size=8m']));
    const refused = {
      '/srv/cache':
        'permission_denied: only root mounts and unmounts file systems; run the agent as root, or leave this resource out',
    };
    expect(failures(await eve.results('plan'))).toEqual(refused);
    expect(failures(await eve.apply())).toEqual(refused);
  });
});
