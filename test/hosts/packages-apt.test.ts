/** Packages of apt on a booted Debian machine, from a repository of the test. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { until } from '../support/orch.js';
import { type DebRepository, debRepository, debTools } from './deb-repository.js';
import { type Fleet, startFleet } from './fleet.js';
import type { BootedHost } from './host.js';
import { absent, type Entry, entry, failures, LocalOrch } from './local-orch.js';
import { fates, localPackages, versions } from './local-packages.js';
import { describeHosts } from './requirements.js';

const MANY = 50;
const many = Array.from({ length: MANY }, (_, at) => `many-${at}`);

/** Notes each call, and lets a test say how many seconds apt waits for its lock. */
const counting = (program: string) => `#!/bin/bash
echo ${program} >>/root/calls
patience=$(cat /root/patience 2>/dev/null || echo 120)
exec /usr/bin/${program} "\${@/Timeout=120/Timeout=$patience}"
`;

const CONF = '/etc/conffed.conf';

describeHosts(
  'packages of apt on a booted machine',
  () => {
    let fleet: Fleet;
    let host: BootedHost;
    let repository: DebRepository;

    const { run: local, start, finished, declared } = localPackages(() => host, 'package-apt');
    const sh = async (line: string) => (await host.run(['sh', '-c', line], { timeoutMs: 60_000 })).stdout.trim();
    const installed = (name: string) =>
      sh(`dpkg-query -W -f '\${Version} \${db:Status-Status}' ${name} 2>/dev/null | sed 's/^ //'`);

    beforeAll(async () => {
      repository = debRepository();
      await repository.publish([
        { name: 'tool', version: '1.0' },
        { name: 'tool', version: '1.1' },
        { name: 'tool', version: '2.0' },
        { name: 'lib', version: '1.0' },
        { name: 'app', version: '1.0', fields: { Depends: 'lib' } },
        { name: 'user-of-lib', version: '1.0', fields: { Depends: 'lib' } },
        { name: 'rival', version: '1.0', fields: { Conflicts: 'tool' } },
        { name: 'mta', version: '1.0', fields: { Provides: 'mail-service' } },
        { name: 'conffed', version: '1.0', files: { [CONF]: 'colour = red\n' }, conffiles: [CONF] },
        { name: 'conffed', version: '2.0', files: { [CONF]: 'colour = blue\nsize = 2\n' }, conffiles: [CONF] },
        {
          name: 'bad',
          version: '1.0',
          postinst: 'echo looking\n[ -e /etc/good ] || { echo "no licence found" >&2; exit 3; }',
        },
        {
          name: 'slow',
          version: '1.0',
          postinst:
            'touch /root/began\nfor i in $(seq 300); do [ -e /root/go ] && break; sleep 0.1; done\ntouch /root/ended',
        },
        {
          name: 'daemon',
          version: '1.0',
          files: {
            '/usr/lib/systemd/system/daemon.service':
              '[Service]\nExecStart=/bin/sleep infinity\n[Install]\nWantedBy=multi-user.target\n',
          },
          postinst: 'systemctl daemon-reload\nsystemctl enable --now daemon.service',
        },
        { name: 'shipper', version: '1.0', files: { '/usr/share/shipper/words': 'theirs\n' } },
        ...many.map((name) => ({ name, version: '1.0' })),
      ]);
      fleet = await startFleet({ hosts: ['web-01'], binds: [{ from: repository.directory, to: '/srv/debs' }] });
      host = fleet.host('web-01');
      await host.writeFile('/etc/apt/sources.list', 'deb [trusted=yes] file:/srv/debs ./\n');
      for (const program of ['apt-get', 'apt-cache', 'dpkg-query', 'dpkg', 'find']) {
        await host.writeFile(`/usr/local/bin/${program}`, counting(program), '0755');
      }
    });

    afterAll(async () => {
      await fleet?.stop();
      repository?.remove();
    });

    it('are planned without the index of a new machine, which only an apply brings', async () => {
      const planned = await local('plan', { tool: null });
      expect(fates(planned)).toEqual(['tool create pending']);
      expect(planned[0]?.reason).toContain('an apply refreshes the index first');
      expect(await sh('ls /var/lib/apt/lists')).not.toContain('Packages');
      const applied = await local('apply', { tool: null });
      expect(fates(applied)).toEqual(['tool create changed']);
      expect(versions(applied)).toEqual(['null -> 2.0']);
      expect(await installed('tool')).toBe('2.0 installed');
    });

    it('go to an exact version, up and down, and without one to the newest', async () => {
      expect(versions(await local('apply', { tool: '1.0' }))).toEqual(['2.0 -> 1.0']);
      expect(await installed('tool')).toBe('1.0 installed');
      expect(fates(await local('apply', { tool: '1.0' }))).toEqual(['tool none unchanged']);
      expect(versions(await local('apply', { tool: '1.1' }))).toEqual(['1.0 -> 1.1']);
      expect(versions(await local('plan', { tool: 'latest' }))).toEqual(['1.1 -> 2.0']);
      expect(versions(await local('apply', { tool: 'latest' }))).toEqual(['1.1 -> 2.0']);
    });

    it('are known and unknown by the index, which an apply refreshes for what it lacks', async () => {
      const unknown = await local('apply', { tool: '7.0', nosuch: null, 'mail-service': null });
      expect(fates(unknown)).toEqual([
        'tool none failed package_version_unknown',
        'nosuch none failed package_unknown',
        'mail-service none failed package_unknown',
      ]);
      expect(unknown[0]?.error?.message).toBe('tool is not offered in version 7.0, only in 2.0, 1.1, 1.0');
      await repository.publish([{ name: 'tool', version: '3.0' }]);
      expect(versions(await local('plan', { tool: null }))).toEqual([]);
      expect(versions(await local('apply', { tool: '3.0' }))).toEqual(['2.0 -> 3.0']);
    });

    it('refresh an index that is older than a day, in an apply only, and drift asks for what was left', async () => {
      await repository.publish([{ name: 'tool', version: '4.0' }]);
      await sh(
        'touch -d "2 days ago" /var/lib/apt/periodic/update-success-stamp; find /var/lib/apt/lists -exec touch -h -d "2 days ago" {} +',
      );
      expect(versions(await local('plan', { tool: null }))).toEqual([]);
      expect(fates(await local('drift', { tool: null }))).toEqual(['tool none unchanged']);
      expect(versions(await local('apply', { tool: null }))).toEqual(['3.0 -> 4.0']);
      await sh('apt-get install -y --allow-downgrades tool=1.0');
      expect(versions(await local('drift', { tool: null }))).toEqual(['1.0 -> 4.0']);
      expect(versions(await local('apply', { tool: null }))).toEqual(['1.0 -> 4.0']);
    });

    it('are many in one transaction, and a plan of them takes as many commands as one of a single package', async () => {
      const all = Object.fromEntries(many.map((name) => [name, null]));
      await sh('rm -f /root/calls');
      await local('plan', { 'many-0': null });
      const single = await sh('cat /root/calls; rm /root/calls');
      expect(fates(await local('plan', all))).toHaveLength(MANY);
      expect(await sh('cat /root/calls; rm /root/calls')).toBe(single);
      expect(single.split('\n')).toHaveLength(3);
      expect(new Set(fates(await local('apply', all)).map((fate) => fate.split(' ')[2]))).toEqual(new Set(['changed']));
      expect((await sh('cat /root/calls')).split('\n').filter((call) => call === 'apt-get')).toHaveLength(1);
      expect(await sh('dpkg-query -W "many-*" | wc -l')).toBe(String(MANY));
    });

    it('keep what a person has written into a configuration file', async () => {
      await local('apply', { conffed: '1.0' });
      await host.writeFile(CONF, 'colour = mine\n');
      expect(versions(await local('apply', { conffed: '2.0' }))).toEqual(['1.0 -> 2.0']);
      expect(await host.readFile(CONF)).toBe('colour = mine\n');
    });

    it('start what they bring', async () => {
      expect(fates(await local('apply', { daemon: null }))).toEqual(['daemon create changed']);
      expect(await sh('systemctl is-active daemon; systemctl is-enabled daemon')).toBe('active\nenabled');
    });

    it('fail alone when their script fails, and are repaired by the next apply', async () => {
      const failed = await local('apply', { bad: null, lib: null, mta: null });
      expect(fates(failed)).toEqual(['bad create failed command_failed', 'lib create changed', 'mta create changed']);
      expect(failed[0]?.error?.message).toContain('exit status 3');
      expect(failed[0]?.error?.message).toContain('looking\nno licence found');
      const [planned] = await local('plan', { bad: null });
      expect(planned?.changes).toEqual([{ field: 'state', before: 'half-configured', after: 'installed' }]);
      expect(fates(await local('apply', { app: null, bad: null }))).toEqual([
        'app create changed',
        'bad update failed command_failed',
      ]);
      await sh('touch /etc/good');
      expect(fates(await local('apply', { bad: null }))).toEqual(['bad update changed']);
      expect(await installed('bad')).toBe('1.0 installed');
    });

    it('are not installed at the cost of others, and not changed when they are held', async () => {
      const [rival] = await local('apply', { rival: null });
      expect(rival?.error).toEqual({
        code: 'removal_refused',
        message: 'rival is not installed, because tool would have to be removed for it; remove that first',
      });
      await sh('apt-mark hold tool');
      expect(fates(await local('apply', { tool: '1.0' }))).toEqual(['tool none failed package_held']);
      await sh('apt-mark unhold tool');
    });

    it('are held in their version where the module says so, also in another one, and until they are removed', async () => {
      const orch = new LocalOrch(host, '/root/held.orch.yaml');
      const others = [...declared].filter(([name]) => name !== 'tool');
      const rest = others.map(([name, version]) => entry('package-apt', { name, ...(version && { version }) }));
      const declare = (body: object) => orch.declare(...rest, entry('package-apt', { name: 'tool', ...body }));
      const state = async () => `${await installed('tool')} ${await sh('apt-mark showhold')}`.trim();
      await declare({ version: '1.0', hold: true });
      expect(failures(await orch.apply())).toEqual({});
      expect(await state()).toBe('1.0 installed tool');
      expect(await orch.differences()).toEqual([]);
      await declare({ hold: true });
      expect(await orch.differences()).toEqual([]);
      await sh('apt-mark unhold tool');
      expect(await orch.differences('drift')).toEqual([['tool', 'update', 'hold']]);
      await declare({ version: '1.1', hold: true });
      expect(await orch.differences()).toEqual([['tool', 'update', 'version,hold']]);
      expect(failures(await orch.apply())).toEqual({});
      await declare({ version: '2.0', hold: true });
      expect(failures(await orch.apply())).toEqual({});
      expect(await state()).toBe('2.0 installed tool');
      await declare({ version: '2.0', hold: false });
      expect(await orch.differences()).toEqual([['tool', 'update', 'hold']]);
      expect(failures(await orch.apply())).toEqual({});
      expect(await state()).toBe('2.0 installed');
      const tool = declared.get('tool');
      expect(fates(await local('apply', { tool: tool ?? null }))).toHaveLength(1);
    });

    it('wait for the lock, and say who holds it when they waited in vain', async () => {
      const holder = await host.spawn(['/usr/bin/apt-get', 'install', '-y', 'slow']);
      await until(async () => (await sh('ls /root/began')) !== '', 'apt is at work');
      await sh('echo 1 >/root/patience');
      const [locked] = await local('apply', { tool: '1.1' });
      expect(locked?.error).toEqual({
        code: 'package_manager_locked',
        message: expect.stringMatching(/^process \d+ \(apt-get\) holds \/var\/lib\/dpkg\/lock-frontend/),
      });
      await sh('rm /root/patience /root/calls');
      const waiting = await start('apply', { tool: '1.1' });
      await until(async () => (await sh('grep apt-get /root/calls')) !== '', 'orch waits');
      await sh('touch /root/go');
      expect((await holder.ended).status).toBe(0);
      expect(versions(await finished(waiting))).toEqual(['4.0 -> 1.1']);
      declared.set('tool', '1.1');
      await sh('apt-get remove -y slow; rm -f /root/go /root/began /root/ended');
    });

    it('are installed to the end when orch dies in the middle, and found by the next apply', async () => {
      const cut = await start('apply', { slow: null });
      await until(async () => (await sh('ls /root/began')) !== '', 'dpkg is at work');
      cut.kill('SIGKILL');
      await cut.ended;
      expect(await installed('slow')).toBe('1.0 half-configured');
      await sh('touch /root/go');
      await until(async () => (await installed('slow')) === '1.0 installed', 'dpkg has finished');
      await until(async () => (await sh('pgrep -x apt-get')) === '', 'apt has finished');
      expect(fates(await local('apply', { slow: null }))).toEqual(['slow none unchanged']);
    });

    it('tell of a dpkg that was cut off', async () => {
      await sh('dpkg-query -s tool | sed "s/ok installed/ok unpacked/" >/var/lib/dpkg/updates/0001');
      const [broken] = await local('apply', { tool: '1.0' });
      expect(broken?.error).toEqual({
        code: 'package_manager_broken',
        message: expect.stringContaining('dpkg --configure -a'),
      });
      await sh('rm /var/lib/dpkg/updates/0001');
    });

    it('are not removed while others need them, and leave their configuration and what came along', async () => {
      await sh('apt-get install -y user-of-lib');
      for (const name of ['lib', 'app', 'conffed']) declared.delete(name);
      const [app, lib, conffed] = await local('apply', {});
      expect([app, lib, conffed].map((one) => `${one?.identity} ${one?.action} ${one?.status}`)).toEqual([
        'app remove changed',
        'lib none failed',
        'conffed remove changed',
      ]);
      expect(lib?.error).toEqual({
        code: 'removal_refused',
        message: 'lib is not removed, because user-of-lib would go with it; remove that first, or keep lib',
      });
      expect(await host.readFile(CONF)).toBe('colour = mine\n');
      await sh('apt-get remove -y user-of-lib');
      expect(fates(await local('apply', {}))).toEqual(['lib remove changed']);
      expect(await installed('lib')).toBe('');
    });

    describe('beside other resources', () => {
      const SHIPPED = '/usr/share/shipper/words';
      const KEEP = entry('file-unix', { path: '/root/keep', content: 'x' });
      const apt = (name: string, version?: string) =>
        entry('package-apt', { name, ...(version === undefined ? {} : { version }) });
      const orch = () => new LocalOrch(host, '/root/beside.orch.yaml');
      const apart = ['--data-dir', '/root/beside'];
      const run = async (verb: 'plan' | 'apply', ...entries: readonly Entry[]) => {
        await orch().declare(...entries);
        const consent = verb === 'apply' ? ['--yes', '--allow-removals', '9'] : [];
        return fates([...(await orch().results(verb, ...apart, ...consent))]);
      };
      /** Applies after a plan that has to say the same. */
      const foretold = async (...entries: readonly Entry[]) => {
        const planned = await run('plan', ...entries);
        const applied = await run('apply', ...entries);
        expect(applied).toEqual(planned.map((fate) => fate.replace('pending', 'changed')));
        return applied;
      };

      beforeAll(async () => {
        await sh(
          'systemctl disable --now daemon; rm -f /etc/good; apt-get update; for name in rival tool bad lib app daemon; do apt-get remove -y $name; done; systemctl daemon-reload',
        );
      });
      beforeEach(async () => {
        await run('apply');
        await sh(`rm -rf ${apart[1]}`);
      });

      it('are named by a list, which one command installs, and another one removes', async () => {
        const list = (...names: readonly string[]) =>
          entry('package-apt', { names, version: 'installed' }, { id: 'all' });
        const after = entry('script', {
          program: 'sh',
          manages: 'after',
          check: 'true',
          apply: 'echo ran >>/root/after',
          rerun_on: ['all'],
        });
        const calls = async () =>
          (await sh('cat /root/calls; rm /root/calls')).split('\n').filter((one) => one === 'apt-get');
        await sh('apt-get purge -y mta');
        // From here on the index is new.
        await run('apply', apt('mta'));
        await sh('apt-get purge -y tool lib mta; rm -f /root/calls /root/after');
        expect(await foretold(list('tool', 'lib', 'mta'), after)).toEqual([
          'tool create changed',
          'lib create changed',
          'mta create changed',
          'after run changed',
        ]);
        expect(await calls()).toHaveLength(1);
        expect(await foretold(list('tool', 'lib', 'mta'), after)).toEqual([
          'tool none unchanged',
          'lib none unchanged',
          'mta none unchanged',
          'after none unchanged',
        ]);
        await sh('apt-get purge -y lib');
        expect(await foretold(list('tool', 'lib', 'mta'), after)).toContain('lib create changed');
        expect(await sh('cat /root/after')).toBe('ran\nran');
        expect(await foretold(list('tool'), after)).toEqual([
          'tool none unchanged',
          'mta remove changed',
          'lib remove changed',
          'after run changed',
        ]);
        await orch().declare(absent('package-apt', { names: ['tool', 'lib'] }, { id: 'all' }), after);
        const gone = await orch().results('apply', ...apart, '--yes', '--allow-removals', '9');
        expect(fates([...gone]).filter((fate) => fate.startsWith('tool'))).toContain('tool remove changed');
        expect(`${await installed('tool')}${await installed('lib')}${await installed('mta')}`).not.toContain(
          'installed',
        );
      });

      it('take the place of packages that they conflict with, in one apply', async () => {
        expect(await run('apply', apt('tool'), KEEP)).toEqual(['tool create changed', '/root/keep create changed']);
        expect(await foretold(apt('rival'), KEEP)).toEqual([
          'tool remove changed',
          'rival create changed',
          '/root/keep none unchanged',
        ]);
        expect(await installed('rival')).toBe('1.0 installed');
      });

      it('are not removed when the one in their place, or anything else, cannot be installed', async () => {
        await run('apply', apt('tool'), apt('lib'));
        const results = await run('apply', apt('lib', '9.9'));
        expect(results).toEqual(['lib none failed package_version_unknown', 'tool none skipped dependency_failed']);
        expect(await installed('tool')).not.toBe('');
        expect(await run('apply', apt('lib'))).toEqual(['lib none unchanged', 'tool remove changed']);
      });

      it('are one package with their architecture and without, and handed over', async () => {
        const native = await sh('/usr/bin/dpkg --print-architecture');
        await run('apply', apt('tool'));
        expect(await foretold(apt(`tool:${native}`))).toEqual([
          `tool:${native} none unchanged`,
          'tool release changed',
        ]);
        expect(await run('plan', apt('tool'), apt(`tool:${native}`))).toEqual([
          'tool none failed module_conflict',
          `tool:${native} none failed module_conflict`,
        ]);
        await run('apply');
        expect(await installed('tool')).toBe('');
      });

      it('give back a file that is still declared when they are removed', async () => {
        const file = entry('file-unix', { path: SHIPPED, content: 'mine\n' });
        await run('apply', apt('shipper'), file);
        expect(await run('apply', file)).toEqual([`${SHIPPED} create changed`, 'shipper remove changed']);
        expect(await sh(`cat ${SHIPPED}`)).toBe('mine');
      });

      it('are removed when their installation has failed half way', async () => {
        expect(await run('apply', apt('bad'), apt('lib'))).toEqual([
          'bad create failed command_failed',
          'lib create changed',
        ]);
        expect(await installed('bad')).toBe('1.0 half-configured');
        expect(await foretold(apt('lib'))).toEqual(['lib none unchanged', 'bad remove changed']);
        expect(await installed('bad')).toBe('');
      });

      it('bring units that did not exist before, and that are stopped before they go', async () => {
        const unit = entry('service-systemd', { name: 'daemon', running: true });
        expect(await run('apply', apt('daemon'), unit, KEEP)).toEqual([
          'daemon create changed',
          'daemon none unchanged',
          '/root/keep create changed',
        ]);
        await orch().declare(KEEP);
        const removed = await orch().results('apply', ...apart, '--yes');
        expect(removed.map(({ kind, action, status }) => `${kind} ${action} ${status}`)).toEqual([
          'file-unix none unchanged',
          'service-systemd remove changed',
          'package-apt remove changed',
        ]);
        expect(await sh('systemctl is-active daemon')).toBe('inactive');
      });

      it('no longer go with the packages that brought them', async () => {
        await sh('apt-get install -y app');
        expect(await sh('apt-mark showauto lib')).toBe('lib');
        await orch().declare(apt('lib', '1.0'));
        const [planned] = await orch().results('plan', ...apart);
        expect(planned).toMatchObject({
          action: 'update',
          changes: [{ field: 'mark', before: 'automatic', after: 'manual' }],
        });
        expect(await run('apply', apt('lib', '1.0'))).toEqual(['lib update changed']);
        await sh('apt-get remove -y app && apt-get autoremove -y');
        expect(await installed('lib')).toBe('1.0 installed');
        expect(await run('apply', apt('lib', '1.0'))).toEqual(['lib none unchanged']);
      });

      it('are planned although the sources cannot be read, when an earlier resource mends them', async () => {
        const path = '/etc/apt/sources.list.d/broken.list';
        await sh(`apt-get remove -y mta; echo deb nonsense >${path}`);
        const mended = entry('file-unix', { path, content: '# none\n' });
        expect(await foretold(mended, apt('mta'))).toEqual([`${path} update changed`, 'mta create changed']);
      });
    });
  },
  debTools,
);
