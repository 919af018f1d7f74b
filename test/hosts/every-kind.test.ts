/** Each kind once on one booted Debian: made as planned, repaired after a change by hand, and taken back. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { MODULE_KINDS } from '../../src/resources/catalogue.js';
import { tarGzOf } from '../support/archives.js';
import { type DebRepository, debRepository, debTools } from './deb-repository.js';
import { type Fleet, startFleet } from './fleet.js';
import type { BootedHost } from './host.js';
import { type Body, entry, failures, LocalOrch, sh } from './local-orch.js';
import { describeHosts } from './requirements.js';

interface Round {
  readonly body: Body;
  /** Prints what the resource is about. */
  readonly look: string;
  readonly made: string;
  /** Changes it by hand. */
  readonly spoil: string;
  /** What is seen when the resource is no longer declared [default: nothing]. */
  readonly left?: string;
}

const KEY = `ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI${'x'.repeat(43)} ida`;

/** In the order in which they are declared: later ones need earlier ones. */
const ROUNDS: Readonly<Record<string, Round>> = {
  'group-unix': {
    body: { name: 'ops', gid: 3000 },
    look: 'getent group ops | cut -d: -f1,3',
    made: 'ops:3000',
    spoil: 'groupmod -g 3001 ops',
  },
  'user-unix': {
    body: { name: 'anna', uid: 5001, shell: '/bin/bash' },
    look: 'getent passwd anna | cut -d: -f1,3,7',
    made: 'anna:5001:/bin/bash',
    spoil: 'usermod -s /bin/sh anna',
  },
  'authorized-key-unix': {
    body: { user: 'ida', key: KEY },
    look: 'cat /home/ida/.ssh/authorized_keys',
    made: KEY,
    spoil: 'rm -r /home/ida/.ssh',
  },
  'directory-unix': {
    body: { path: '/srv/site', owner: 'ida', mode: '0750' },
    look: 'stat -c "%U %a" /srv/site',
    made: 'ida 750',
    spoil: 'chmod 777 /srv/site',
  },
  'file-unix': {
    body: { path: '/srv/site/page', content: 'hello\n', owner: 'ida', mode: '0640' },
    look: 'cat /srv/site/page; stat -c "%U %a" /srv/site/page',
    made: 'hello\nida 640',
    spoil: 'echo mine >/srv/site/page',
  },
  'symlink-unix': {
    body: { path: '/srv/current', target: 'site' },
    look: 'readlink /srv/current',
    made: 'site',
    spoil: 'ln -sfn /tmp /srv/current',
  },
  'line-unix': {
    body: { path: '/etc/line.conf', line: 'Port 2222', match: '^#?Port ' },
    look: 'cat /etc/line.conf',
    made: 'last\nPort 2222',
    spoil: 'echo last >/etc/line.conf',
    left: 'last',
  },
  'block-unix': {
    body: { path: '/etc/block.conf', name: 'limits', content: 'a\n' },
    look: 'cat /etc/block.conf',
    made: 'first\n# BEGIN orch limits\na\n# END orch limits',
    spoil: 'sed -i s/a/b/ /etc/block.conf',
    left: 'first',
  },
  'setting-unix': {
    body: { path: '/etc/app.ini', format: 'ini', section: 'main', key: 'workers', value: 4 },
    look: 'cat /etc/app.ini',
    made: '[main]\nworkers = 4',
    spoil: 'sed -i s/4/5/ /etc/app.ini',
    left: '[main]',
  },
  'archive-unix': {
    body: { path: '/srv/tool', source: 'files/tool.tar.gz', strip: 1 },
    look: 'cat /srv/tool/bin/tool',
    made: 'one',
    spoil: 'echo two >/srv/tool/bin/tool',
  },
  'git-unix': {
    body: { path: '/srv/checkout', url: 'file:///srv/origin', revision: 'v1' },
    look: 'cat /srv/checkout/text',
    made: 'one',
    spoil: 'git -C /srv/checkout fetch -q origin main && git -C /srv/checkout checkout -q FETCH_HEAD',
  },
  'host-entry-unix': {
    body: { name: 'db.example.net', addresses: ['10.9.0.5'] },
    look: "getent hosts db.example.net | cut -d' ' -f1",
    made: '10.9.0.5',
    spoil: 'sed -i s/10.9.0.5/10.9.0.6/ /etc/hosts',
  },
  'sysctl-linux': {
    body: { key: 'net.ipv4.ip_forward', value: 1 },
    look: 'cat /proc/sys/net/ipv4/ip_forward; ls /etc/sysctl.d | grep orch',
    made: '1\n99-zz-orch-net.ipv4.ip_forward.conf',
    spoil: 'echo 0 >/proc/sys/net/ipv4/ip_forward',
    left: '1',
  },
  'hostname-linux': {
    body: { name: 'web-01.example.net' },
    look: 'hostname; cat /etc/hostname',
    made: 'web-01.example.net\nweb-01.example.net',
    spoil: 'echo other >/proc/sys/kernel/hostname',
    left: 'web-01.example.net\nweb-01.example.net',
  },
  'timezone-linux': {
    body: { name: 'Asia/Kolkata' },
    look: 'date +%z',
    made: '+0530',
    spoil: 'ln -sfn /usr/share/zoneinfo/Etc/UTC /etc/localtime',
    left: '+0530',
  },
  'locale-linux': {
    body: { lang: 'C.UTF-8' },
    look: 'grep LANG= /etc/default/locale',
    made: 'LANG=C.UTF-8',
    spoil: 'echo LANG=C >/etc/default/locale',
    left: 'LANG=C.UTF-8',
  },
  'kernel-module-linux': {
    body: { name: 'dummy' },
    look: 'ls /sys/module; ls /etc/modules-load.d | grep orch',
    made: 'dummy\norch-dummy.conf',
    spoil: 'rmdir /sys/module/dummy',
    left: 'dummy',
  },
  'alternatives-linux': {
    body: { name: 'tool', path: '/opt/a' },
    look: 'tool',
    made: 'a',
    spoil: 'update-alternatives --auto tool',
    left: 'b',
  },
  'mount-linux': {
    body: { path: '/srv/cache', source: 'tmpfs', type: 'tmpfs', options: ['size=8m'] },
    look: 'findmnt -rn --mountpoint /srv/cache -o FSTYPE; grep /srv/cache /etc/fstab',
    made: 'tmpfs\ntmpfs /srv/cache tmpfs size=8m 0 0',
    spoil: 'umount /srv/cache',
  },
  'cron-unix': {
    body: { name: 'backup', schedule: '17 3 * * *', user: 'ida', command: 'true' },
    look: 'tail -n 1 /etc/cron.d/backup',
    made: '17 3 * * * ida true',
    spoil: 'rm /etc/cron.d/backup',
  },
  'repository-apt': {
    body: { name: 'site', uris: ['file:/srv/debs'], suites: ['./'], trusted: true },
    look: 'grep URIs /etc/apt/sources.list.d/site.sources',
    made: 'URIs: file:/srv/debs',
    spoil: 'sed -i s,debs,other, /etc/apt/sources.list.d/site.sources',
  },
  'package-apt': {
    body: { name: 'hello-tool', version: '1.0' },
    look: "dpkg-query -W -f '${Version}' hello-tool",
    made: '1.0',
    spoil: 'dpkg -i /srv/debs/hello-tool_2.0.deb',
  },
  'service-systemd': {
    body: { name: 'worker', exec_start: '/bin/sleep infinity', enabled: true, running: true },
    look: 'systemctl is-active worker; systemctl is-enabled worker; ls /etc/systemd/system/worker.service',
    made: 'active\nenabled\n/etc/systemd/system/worker.service',
    spoil: 'systemctl disable --now worker',
    left: 'inactive',
  },
  'timer-systemd': {
    body: { name: 'job', command: ['/bin/true'], on_calendar: 'daily' },
    look: 'systemctl is-active job.timer; systemctl is-enabled job.timer; ls /etc/systemd/system/job.*',
    made: 'active\nenabled\n/etc/systemd/system/job.service\n/etc/systemd/system/job.timer',
    spoil: 'systemctl disable --now job.timer',
    left: 'inactive',
  },
  script: {
    body: {
      program: 'sh',
      manages: 'a note',
      check: 'test -e /srv/note',
      apply: 'touch /srv/note',
      undo: 'rm /srv/note',
    },
    look: 'ls /srv/note',
    made: '/srv/note',
    spoil: 'rm /srv/note',
  },
};

/** Kinds of Linux whose rounds need another host. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  'package-dnf': 'packages-dnf.test.ts, whose image has dnf',
  'repository-dnf': 'repositories-dnf.test.ts, whose image has dnf',
  'service-openrc': 'openrc.test.ts, whose host was started by OpenRC',
};

describeHosts(
  'each kind on a booted machine',
  () => {
    let fleet: Fleet;
    let host: BootedHost;
    let orch: LocalOrch;
    let debs: DebRepository;
    const run = (script: string) => sh(host, script);
    /** What is there, by kind. */
    const look = async () => {
      const shown = await Promise.all(
        Object.entries(ROUNDS).map(async ([kind, round]) => [
          kind,
          await run(`{ ${round.look}; } 2>/dev/null || true`),
        ]),
      );
      return Object.fromEntries(shown);
    };
    const expected = (of: (round: Round) => string) =>
      Object.fromEntries(Object.entries(ROUNDS).map(([kind, round]) => [kind, of(round)]));
    const kindsIn = async (verb: 'plan' | 'drift') =>
      (await orch.results(verb)).filter(({ status }) => status !== 'unchanged').map(({ kind }) => kind);

    beforeAll(async () => {
      debs = debRepository();
      await debs.publish(['1.0', '2.0'].map((version) => ({ name: 'hello-tool', version })));
      fleet = await startFleet({
        hosts: ['kinds'],
        binds: [{ from: debs.directory, to: '/srv/debs' }],
        capabilities: ['CAP_SYS_ADMIN'],
      });
      host = fleet.host('kinds');
      orch = new LocalOrch(host, '/root/site.orch.yaml');
      const tool = tarGzOf({ name: 'tool-1/bin/tool', content: 'one\n', mode: 0o755 });
      await host.writeFile('/root/files/tool.tar.gz', tool);
      // The kernel of the test loads no modules, so a directory stands in for it.
      await host.writeFile('/usr/sbin/modprobe', '#!/bin/sh\nexec mkdir "/sys/module/$2"\n', '0755');
      await run(`mount -o remount,rw /proc/sys; mount -t tmpfs none /sys/module; mkdir -p /etc/cron.d; useradd -m ida
        echo last >/etc/line.conf; echo first >/etc/block.conf; echo '[main]' >/etc/app.ini
        git config --global user.email a@example.net; git config --global user.name a
        git init -q -b main /srv/origin && cd /srv/origin && echo one >text && git add . && git commit -qm one && git tag v1
        echo two >text && git commit -qam two
        for one in a b; do printf '#!/bin/sh\\necho %s\\n' $one >/opt/$one; chmod 755 /opt/$one; done
        update-alternatives --quiet --install /usr/local/bin/tool tool /opt/a 10
        update-alternatives --quiet --install /usr/local/bin/tool tool /opt/b 20`);
      await orch.declare(...Object.entries(ROUNDS).map(([kind, { body }]) => entry(kind, body)));
    });

    afterAll(async () => {
      await fleet?.stop();
      debs?.remove();
    });

    it('has a round here, or in the suite that is named', () => {
      const ofLinux = [...MODULE_KINDS.values()].filter(({ platforms }) => platforms.includes('linux'));
      expect(Object.keys({ ...ROUNDS, ...ELSEWHERE }).sort()).toEqual(ofLinux.map(({ kind }) => kind).sort());
    });

    it('is made as the plan says, once', async () => {
      const planned = await orch.results('plan');
      expect(failures(planned)).toEqual({});
      const results = await orch.apply();
      expect(failures(results)).toEqual({});
      const actions = (all: typeof results) => all.map(({ kind, action }) => `${kind} ${action}`).sort();
      expect(actions(results)).toEqual(actions(planned));
      expect(await look()).toEqual(expected(({ made }) => made));
      await orch.isSettled();
    });

    it('is found and repaired when it was changed by hand', async () => {
      for (const { spoil } of Object.values(ROUNDS)) await run(spoil);
      expect((await kindsIn('drift')).sort()).toEqual(Object.keys(ROUNDS).sort());
      expect(failures(await orch.apply())).toEqual({});
      expect(await look()).toEqual(expected(({ made }) => made));
      await orch.isSettled();
    });

    it('goes with what it has made when it is no longer declared', async () => {
      await orch.declare();
      expect(failures(await orch.apply())).toEqual({});
      expect(await look()).toEqual(expected(({ left }) => left ?? ''));
    });
  },
  debTools,
);
