/** Packages of dnf on a booted machine (a Debian with dnf and rpm), from a repository of the test. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { ResourceResult } from '../../src/resources/result.js';
import { until } from '../support/orch.js';
import { DNF_PACKAGES, NO_LOCAL_PLUGIN } from './base-image.js';
import { type Fleet, startFleet } from './fleet.js';
import type { BootedHost } from './host.js';
import { absent, type Body, entry, failures, LocalOrch } from './local-orch.js';
import { fates, localPackages, versions } from './local-packages.js';
import { describeHosts } from './requirements.js';
import { type RpmRepository, rpmRepository, rpmTools } from './rpm-repository.js';

const MANY = 50;
const many = Array.from({ length: MANY }, (_, at) => `many-${at}`);

const KEEP = entry('file-unix', { path: '/root/keep', content: '' });
const CONF = '/etc/conffed.conf';

/** Notes each call, and lets a test say how many seconds orch waits for the lock of dnf. */
const counting = (program: string) => `#!/bin/bash
echo ${program} >>/root/calls
exec /usr/bin/${program} "$@"
`;
const impatient = `#!/bin/bash
patience=$(cat /root/patience 2>/dev/null || echo 120)
exec /usr/bin/sh "\${@/#120/$patience}"
`;

const REPO = '[test]\nname=test\nbaseurl=file:///srv/rpms\ngpgcheck=0\n';

describeHosts(
  'packages of dnf on a booted machine',
  () => {
    let fleet: Fleet;
    let host: BootedHost;
    let repository: RpmRepository;

    const { run: local, start, finished, declared } = localPackages(() => host, 'package-dnf');
    const sh = async (line: string) => (await host.run(['sh', '-c', line], { timeoutMs: 60_000 })).stdout.trim();
    const installed = (name: string) => sh(`rpm -q ${name} | grep -v "not installed"`);

    beforeAll(async () => {
      repository = rpmRepository();
      await repository.publish([
        { name: 'shell', version: '1', head: ['Provides: /bin/sh'] },
        { name: 'tool', version: '1.0' },
        { name: 'tool', version: '1.10' },
        { name: 'tool', version: '1.9', release: '1' },
        { name: 'tool', version: '1.9', release: '2' },
        { name: 'lib', version: '1.0' },
        { name: 'app', version: '1.0', head: ['Requires: lib'] },
        { name: 'plugin', version: '1.0', head: ['Requires: mta'] },
        { name: 'rival', version: '1.0', head: ['Conflicts: tool'] },
        { name: 'aged', version: '1.0', head: ['Epoch: 2'] },
        { name: 'aged', version: '3.0', head: ['Epoch: 1'] },
        { name: 'mta', version: '1.0', head: ['Provides: mail-service'] },
        { name: 'conffed', version: '1.0', files: { [CONF]: 'colour = red\n' }, config: [CONF] },
        { name: 'conffed', version: '2.0', files: { [CONF]: 'colour = blue\n' }, config: [CONF] },
        { name: 'bad', version: '1.0', scripts: { post: 'echo looking; echo "no licence found" >&2; exit 3' } },
        { name: 'worse', version: '1.0', scripts: { pre: '[ -e /etc/good ] || { echo "not here" >&2; exit 4; }' } },
        {
          name: 'slow',
          version: '1.0',
          scripts: { post: 'touch /root/began; for i in $(seq 300); do [ -e /root/go ] && break; sleep 0.1; done' },
        },
        {
          name: 'daemon',
          version: '1.0',
          files: {
            '/usr/lib/systemd/system/daemon.service':
              '[Service]\nExecStart=/bin/sleep infinity\n[Install]\nWantedBy=multi-user.target\n',
          },
          scripts: { post: 'systemctl daemon-reload; systemctl enable --now daemon.service' },
        },
        ...many.map((name) => ({ name, version: '1.0' })),
      ]);
      const binds = [{ from: repository.directory, to: '/srv/rpms' }];
      fleet = await startFleet({ hosts: ['web-02'], packages: DNF_PACKAGES, binds });
      host = fleet.host('web-02');
      await host.writeFile('/etc/yum.repos.d/test.repo', REPO);
      await host.writeFile(...NO_LOCAL_PLUGIN);
      for (const program of ['dnf', 'rpm', 'find', 'uname']) {
        await host.writeFile(`/usr/local/bin/${program}`, counting(program), '0755');
      }
      await host.writeFile('/usr/local/bin/sh', impatient, '0755');
    });

    afterAll(async () => {
      await fleet?.stop();
      repository?.remove();
    });

    it('are planned without the index of a new machine, which only an apply brings', async () => {
      const planned = await local('plan', { shell: null, tool: null });
      expect(fates(planned)).toEqual(['shell create pending', 'tool create pending']);
      expect(planned[1]?.reason).toContain('an apply refreshes the index first');
      expect(versions(await local('apply', { shell: null, tool: null }))).toEqual(['null -> 1-1', 'null -> 1.10-1']);
      expect(await installed('tool')).toBe('tool-1.10-1.noarch');
    });

    it('go to an exact version, up and down, and without one to the newest', async () => {
      expect(versions(await local('apply', { tool: '1.0' }))).toEqual(['1.10-1 -> 1.0-1']);
      expect(fates(await local('apply', { tool: '1.0' }))).toEqual(['tool none unchanged']);
      expect(versions(await local('apply', { tool: '1.9' }))).toEqual(['1.0-1 -> 1.9-2']);
      expect(versions(await local('apply', { tool: '1.9-1' }))).toEqual(['1.9-2 -> 1.9-1']);
      expect(fates(await local('apply', { tool: '1.9' }))).toEqual(['tool none unchanged']);
      expect(versions(await local('plan', { tool: 'latest' }))).toEqual(['1.9-1 -> 1.10-1']);
      expect(versions(await local('apply', { tool: 'latest' }))).toEqual(['1.9-1 -> 1.10-1']);
      expect(versions(await local('apply', { aged: null }))).toEqual(['null -> 2:1.0-1']);
      expect(versions(await local('apply', { aged: '1:3.0-1' }))).toEqual(['2:1.0-1 -> 1:3.0-1']);
    });

    it('are known and unknown by the index, which an apply refreshes for what it lacks', async () => {
      const unknown = await local('apply', { tool: '7.0', nosuch: null, 'mail-service': null });
      expect(fates(unknown)).toEqual([
        'tool none failed package_version_unknown',
        'nosuch none failed package_unknown',
        'mail-service none failed package_unknown',
      ]);
      expect(unknown[0]?.error?.message).toBe(
        'tool is not offered in version 7.0, only in 1.10-1, 1.9-2, 1.9-1, 1.0-1',
      );
      await repository.publish([{ name: 'tool', version: '3.0' }]);
      expect(versions(await local('plan', { tool: null }))).toEqual([]);
      expect(versions(await local('apply', { tool: '3.0' }))).toEqual(['1.10-1 -> 3.0-1']);
    });

    it('refresh an index that is older than a day, in an apply only, and drift asks for what was left', async () => {
      await repository.publish([{ name: 'tool', version: '4.0' }]);
      await sh('find /etc/yum.repos.d /var/cache/dnf -exec touch -d "2 days ago" {} +');
      expect(versions(await local('plan', { tool: null }))).toEqual([]);
      expect(fates(await local('drift', { tool: null }))).toEqual(['tool none unchanged']);
      expect(versions(await local('apply', { tool: null }))).toEqual(['3.0-1 -> 4.0-1']);
      await sh('dnf -y install tool-1.0-1');
      expect(versions(await local('drift', { tool: null }))).toEqual(['1.0-1 -> 4.0-1']);
      expect(versions(await local('apply', { tool: null }))).toEqual(['1.0-1 -> 4.0-1']);
    });

    it('are many in one transaction, and a plan of them takes as many commands as one of a single package', async () => {
      const all = Object.fromEntries(many.map((name) => [name, null]));
      await sh('rm -f /root/calls');
      await local('plan', { 'many-0': null });
      const single = await sh('cat /root/calls; rm /root/calls');
      expect(fates(await local('plan', all))).toHaveLength(MANY);
      expect(await sh('cat /root/calls; rm /root/calls')).toBe(single);
      // The first call of dnf asks why installed packages are there.
      expect(single.split('\n')).toEqual(['rpm', 'uname', 'dnf', 'find', 'dnf']);
      expect(new Set(fates(await local('apply', all)).map((fate) => fate.split(' ')[2]))).toEqual(new Set(['changed']));
      // Before and after the one installation, dnf is asked why packages are there.
      expect((await sh('cat /root/calls')).split('\n').filter((call) => call === 'dnf')).toHaveLength(5);
      expect(await sh('rpm -qa | grep -c "^many-"')).toBe(String(MANY));
    });

    it('keep what a person has written into a configuration file', async () => {
      await local('apply', { conffed: '1.0' });
      await host.writeFile(CONF, 'colour = mine\n');
      expect(versions(await local('apply', { conffed: '2.0' }))).toEqual(['1.0-1 -> 2.0-1']);
      expect(await host.readFile(CONF)).toBe('colour = mine\n');
    });

    it('start what they bring', async () => {
      expect(fates(await local('apply', { daemon: null }))).toEqual(['daemon create changed']);
      expect(await sh('systemctl is-active daemon; systemctl is-enabled daemon')).toBe('active\nenabled');
    });

    it('fail alone when their scripts fail', async () => {
      const failed = await local('apply', { bad: null, worse: null, mta: null, app: null });
      expect(fates(failed)).toEqual([
        'bad create failed command_failed',
        'worse create failed command_failed',
        'mta create changed',
        'app create changed',
      ]);
      expect(failed[0]?.error?.message).toContain('looking\nno licence found');
      expect(failed[0]?.error?.message).toContain('rpm counts the package as installed');
      expect(failed[1]?.error?.message).toContain('not here');
      await sh('touch /etc/good');
      // A package that is half installed is removed once it is no longer declared.
      expect(fates(await local('apply', { worse: null }))).toEqual(['worse create changed', 'bad remove changed']);
    });

    it('are not installed at the cost of others', async () => {
      const [rival] = await local('apply', { rival: null });
      expect(rival?.error?.code).toBe('command_failed');
      expect(rival?.error?.message).toContain('conflicts with tool provided by tool-4.0-1');
    });

    it('wait for the lock, and say who holds it when they waited in vain', async () => {
      const holder = await host.spawn(['/usr/bin/dnf', '-y', 'install', 'slow']);
      await until(async () => (await sh('ls /root/began')) !== '', 'dnf is at work');
      await sh('echo 1 >/root/patience');
      const [locked] = await local('apply', { tool: '1.0' });
      expect(locked?.error).toEqual({
        code: 'package_manager_locked',
        message: expect.stringMatching(/^process \d+ \(.*dnf.*\) holds dnf's lock/),
      });
      await sh('rm /root/patience /root/calls');
      const waiting = await start('apply', { tool: '1.0' });
      await until(async () => (await sh('grep -c dnf /root/calls')) > '1', 'orch waits');
      await sh('touch /root/go');
      expect((await holder.ended).status).toBe(0);
      expect(versions(await finished(waiting))).toEqual(['4.0-1 -> 1.0-1']);
      declared.set('tool', '1.0');
      await sh('dnf -y remove slow; rm -f /root/go /root/began');
    });

    it('are installed to the end when orch dies in the middle, and found by the next apply', async () => {
      const cut = await start('apply', { slow: null });
      await until(async () => (await sh('ls /root/began')) !== '', 'rpm is at work');
      cut.kill('SIGKILL');
      await cut.ended;
      await sh('touch /root/go');
      await until(async () => (await sh('pgrep -f "[u]sr/bin/dnf"')) === '', 'dnf has finished');
      expect(await installed('slow')).toBe('slow-1.0-1.noarch');
      expect(fates(await local('apply', { slow: null }))).toEqual(['slow none unchanged']);
    });

    it('are not removed while others need them, and leave their configuration and what came along', async () => {
      await sh('dnf -y install plugin');
      for (const name of ['mta', 'app', 'conffed']) declared.delete(name);
      const refused = await local('apply', {});
      expect(fates(refused)).toEqual([
        'app remove changed',
        'mta none failed removal_refused',
        'conffed remove changed',
      ]);
      expect(refused[1]?.error?.message).toBe(
        'mta is not removed, because plugin would go with it; remove that first, or keep mta',
      );
      expect(await installed('mta')).toBe('mta-1.0-1.noarch');
      expect(await sh(`cat ${CONF}.rpmsave`)).toBe('colour = mine');
      expect(await installed('lib')).toBe('lib-1.0-1.noarch');
      await sh('dnf -y remove plugin');
      expect(fates(await local('apply', {}))).toEqual(['mta remove changed']);
      expect(await installed('mta')).toBe('');
    });

    it('take the place of packages that they conflict with, in one apply', async () => {
      declared.delete('tool');
      expect(fates(await local('plan', { rival: null }))).toEqual(['tool remove pending', 'rival create pending']);
      expect(fates(await local('apply', { rival: null }))).toEqual(['tool remove changed', 'rival create changed']);
      expect(await installed('tool')).toBe('');
    });

    it('are one package with their architecture and without', async () => {
      const both = fates(await local('plan', { lib: null, 'lib.noarch': null }));
      expect(both.filter((fate) => fate.startsWith('lib'))).toEqual([
        'lib none failed module_conflict',
        'lib.noarch none failed module_conflict',
      ]);
    });

    it('are handed over under another name, and stay', async () => {
      // The apply has installed it, so that it would be removed.
      expect(fates(await local('apply', { rival: null }))).toEqual(['rival none unchanged']);
      declared.delete('rival');
      const respelled = { 'rival.noarch': null };
      expect(fates(await local('plan', respelled))).toEqual(['rival.noarch none unchanged', 'rival release pending']);
      expect(fates(await local('apply', respelled))).toEqual(['rival.noarch none unchanged', 'rival release changed']);
      expect(await installed('rival')).toBe('rival-1.0-1.noarch');
    });

    it('take the place of packages that they obsolete', async () => {
      // From then on dnf takes the new one for both names.
      await repository.publish([{ name: 'heir', version: '1.0', head: ['Obsoletes: rival'] }]);
      await sh('dnf -q makecache --refresh');
      declared.delete('rival.noarch');
      expect(fates(await local('plan', { heir: null }))).toEqual([
        'heir create pending',
        'rival.noarch remove pending',
      ]);
      // The transaction that installs it takes the other one away.
      const applied = await local('apply', { heir: null });
      expect(fates(applied)).toEqual(['heir create changed', 'rival.noarch remove changed']);
      expect(applied[1]?.reason).toBe('it went with an earlier change of this apply');
      expect([await installed('rival'), await installed('heir')]).toEqual(['', 'heir-1.0-1.noarch']);
    });

    it('begin anew', async () => {
      await sh('dnf -y remove rival heir slow daemon aged worse lib; rm -rf /root/.local /var/lib/orch-local');
      declared.clear();
    });

    it('are marked as wanted by the user, so that they stay without the packages that brought them', async () => {
      const orch = new LocalOrch(host, '/root/site.orch.yaml');
      const lib = entry('package-dnf', { name: 'lib', version: 'installed' });
      await sh('dnf -y install app');
      await orch.declare(lib);
      expect(await orch.differences()).toEqual([['lib', 'update', 'mark']]);
      const [planned] = await orch.results('plan');
      expect(planned?.changes).toEqual([{ field: 'mark', before: 'automatic', after: 'manual' }]);
      expect(failures(await orch.apply())).toEqual({});
      expect(await orch.differences()).toEqual([]);
      await sh('dnf -y mark remove lib');
      expect(await orch.differences('drift')).toEqual([['lib', 'update', 'mark']]);
      expect(failures(await orch.apply())).toEqual({});
      await sh('dnf -y remove app; dnf -y autoremove');
      expect(await installed('lib')).toBe('lib-1.0-1.noarch');
    });

    it('are planned although dnf cannot read its settings, when an earlier resource mends them', async () => {
      const path = '/etc/dnf/dnf.conf';
      await sh(`dnf -q -y remove mta; echo nonsense >${path}`);
      const orch = new LocalOrch(host, '/root/mended.orch.yaml');
      const mended = entry('file-unix', { path, content: '[main]\n' });
      const done = await orch.doneBy(mended, entry('package-dnf', { name: 'mta' }));
      expect(done).toEqual(expect.arrayContaining([`${path} update`, 'mta create']));
      expect(await installed('mta')).toBe('mta-1.0-1.noarch');
    });

    it('are held in one version, which only a declared one or the end of the hold changes', async () => {
      const orch = new LocalOrch(host, '/root/site.orch.yaml');
      const held = (body: Body) => entry('package-dnf', { name: 'aged', ...body });
      const applied = async (body: Body) => {
        await orch.declare(held(body), KEEP);
        const shown = ({ action, changes }: ResourceResult) =>
          [action, ...changes.map(({ field, before, after }) => `${field} ${before} -> ${after}`)].join(', ');
        const planned = (await orch.results('plan')).filter(({ identity }) => identity === 'aged').map(shown);
        const results = await orch.apply();
        expect(failures(results)).toEqual({});
        expect(results.filter(({ identity }) => identity === 'aged').map(shown)).toEqual(planned);
        expect(await orch.differences()).toEqual([]);
        return planned;
      };
      const locks = () => sh('grep -v "^#" /etc/dnf/plugins/versionlock.list | grep .');
      await sh('dnf -y remove aged');
      expect(await applied({ version: '1:3.0-1', hold: true })).toEqual([
        'create, version null -> 1:3.0-1, hold false -> true',
      ]);
      expect(await locks()).toBe('aged-1:3.0-1.*');
      await sh('dnf -y upgrade');
      expect(await installed('aged')).toBe('aged-3.0-1.noarch');
      await sh('dnf versionlock delete aged');
      expect(await orch.differences('drift')).toEqual([['aged', 'update', 'hold']]);
      expect(await applied({ hold: true })).toEqual(['update, hold false -> true']);
      expect(await applied({ version: '2:1.0-1', hold: true })).toEqual(['update, version 1:3.0-1 -> 2:1.0-1']);
      expect(await locks()).toBe('aged-2:1.0-1.*');
      await orch.declare(held({ version: '1:3.0-1' }), KEEP);
      expect(failures(await orch.apply())).toEqual({
        aged: 'package_held: aged is held on this machine, so it is left as it is; end that with: dnf versionlock delete aged',
      });
      expect(await applied({ version: '1:3.0-1', hold: false })).toEqual([
        'update, version 2:1.0-1 -> 1:3.0-1, hold true -> false',
      ]);
      expect(await locks()).toBe('');
      expect(await applied({ hold: true })).toEqual(['update, hold false -> true']);
      await orch.declare(KEEP);
      expect(failures(await orch.apply())).toEqual({});
      expect(`${await locks()}${await installed('aged')}`).toBe('');
    });

    it('are not held without the plugin of dnf 4, which is said before anything is changed', async () => {
      const orch = new LocalOrch(host, '/root/site.orch.yaml');
      await sh('mv /etc/dnf/plugins/versionlock.conf /root');
      await orch.declare(entry('package-dnf', { name: 'aged', hold: true }), KEEP);
      const why =
        'command_missing: aged cannot be held: dnf 4 locks versions with a plugin, which this machine lacks; install python3-dnf-plugin-versionlock (on Debian dnf-plugins-core) before';
      expect(failures(await orch.results('plan'))).toEqual({ aged: why });
      expect(failures(await orch.apply())).toEqual({ aged: why });
      expect(await installed('aged')).toBe('');
      // An earlier change may bring the plugin.
      const brings = entry('script', {
        program: 'sh',
        manages: 'plugin',
        check: 'test -e /etc/dnf/plugins/versionlock.conf',
        apply: 'mv /root/versionlock.conf /etc/dnf/plugins',
      });
      await orch.declare(brings, entry('package-dnf', { name: 'aged', hold: true }), KEEP);
      expect(failures(await orch.results('plan'))).toEqual({});
      expect(failures(await orch.apply())).toEqual({});
      expect(await sh('dnf -q versionlock list')).toContain('aged');
      await orch.declare(KEEP);
      expect(failures(await orch.apply())).toEqual({});
    });

    it('are named by a list, which is one transaction', async () => {
      const orch = new LocalOrch(host, '/root/site.orch.yaml');
      const names = ['many-0', 'many-1', 'many-2'];
      await sh(`dnf -y remove ${names.join(' ')}; rm -f /root/calls`);
      await orch.declare(entry('package-dnf', { names }), KEEP);
      expect(failures(await orch.apply())).toEqual({});
      expect(await sh('rpm -q many-0 many-1 many-2 | wc -l')).toBe('3');
      expect((await sh('cat /root/calls')).split('\n').filter((call) => call === 'dnf')).toHaveLength(4);
      await sh('rpm -e many-1');
      expect(await orch.differences('drift')).toEqual([['many-1', 'create', 'version']]);
      await orch.declare(absent('package-dnf', { names: ['many-0', 'many-1'] }), KEEP);
      expect(failures(await orch.apply())).toEqual({});
      expect(await sh('rpm -qa "many-0" "many-1" "many-2"')).toBe('');
    });

    it('are not changed by an ordinary user', async () => {
      await sh('useradd -m eve');
      const eve = new LocalOrch(host, '/home/eve/site.orch.yaml', 'eve');
      await eve.declare(entry('package-dnf', { name: 'mta' }));
      expect(failures(await eve.apply())).toEqual({
        mta: 'permission_denied: this user may not change the package mta; run the agent as root',
      });
    });
  },
  rpmTools,
);
