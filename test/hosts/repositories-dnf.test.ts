/** Repositories of dnf on a booted machine (a Debian with dnf and rpm): read, used by packages of the same apply, removed. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { DNF_PACKAGES, NO_LOCAL_PLUGIN } from './base-image.js';
import { type Fleet, startFleet } from './fleet.js';
import type { BootedHost } from './host.js';
import { type Body, entry, failures, LocalOrch, sh } from './local-orch.js';
import { describeHosts } from './requirements.js';
import { type RpmRepository, rpmRepository, rpmTools } from './rpm-repository.js';
import { keyTools, type SigningKey, signingKey } from './signing-key.js';

const REPO = '/etc/yum.repos.d/site.repo';
const KEY = '/etc/pki/rpm-gpg/RPM-GPG-KEY-site';
const tool = entry('package-dnf', { name: 'tool' });

describeHosts(
  'repositories of dnf on a booted machine',
  () => {
    let fleet: Fleet;
    let host: BootedHost;
    let orch: LocalOrch;
    let rpms: RpmRepository;
    let key: SigningKey;
    const run = (script: string) => sh(host, script);
    const site = (more: Body) => entry('repository-dnf', { name: 'site', baseurl: ['file:///srv/rpms'], ...more });

    beforeAll(async () => {
      rpms = rpmRepository();
      key = await signingKey('site');
      await rpms.publish([{ name: 'tool', version: '1.0' }]);
      const binds = [{ from: rpms.directory, to: '/srv/rpms' }];
      fleet = await startFleet({ hosts: ['repo-dnf'], packages: DNF_PACKAGES, binds });
      host = fleet.host('repo-dnf');
      orch = new LocalOrch(host, '/root/site.orch.yaml');
      await host.writeFile(...NO_LOCAL_PLUGIN);
      await run('mkdir -p /etc/yum.repos.d; rm -rf /etc/yum.repos.d/* /etc/pki');
    });

    afterAll(async () => {
      await fleet?.stop();
      rpms?.remove();
      await key?.remove();
    });

    it('are there for the packages of the same apply, repaired, and left alone otherwise', async () => {
      await orch.declare(site({ trusted: true }), tool);
      expect(await orch.differences()).toEqual([
        [REPO, 'create', 'owner,group,mode'],
        ['tool', 'create', ''],
      ]);
      expect((await orch.results('plan'))[1]?.reason).toContain(
        'its version is known only once the repositories above',
      );
      expect(failures(await orch.apply())).toEqual({});
      expect(await run(`grep -v '^#' ${REPO}; rpm -q tool`)).toBe(
        '[site]\nname=site\nbaseurl=file:///srv/rpms\nenabled=1\ngpgcheck=0\ntool-1.0-1.noarch',
      );
      expect(await orch.differences()).toEqual([]);
      await run(`sed -i s/enabled=1/enabled=0/ ${REPO}; chmod 600 ${REPO}`);
      expect(await orch.differences('drift')).toEqual([[REPO, 'update', 'content,mode']]);
      await rpms.publish([{ name: 'tool', version: '2.0' }]);
      expect(failures(await orch.apply())).toEqual({});
      expect(await run(`grep enabled ${REPO}; rpm -q tool`)).toBe('enabled=1\ntool-2.0-1.noarch');
      expect((await orch.apply()).map(({ status }) => status)).toEqual(['unchanged', 'unchanged']);
    });

    it('are refused with what dnf says, and then neither the file nor a new key is there', async () => {
      const broken = entry('repository-dnf', { name: 'broken', baseurl: ['file:///srv/none'], key: key.armoured });
      await orch.declare(site({ trusted: true }), tool, broken);
      const failed = failures(await orch.apply());
      expect(Object.keys(failed)).toEqual(['/etc/yum.repos.d/broken.repo']);
      expect(Object.values(failed)[0]).toMatch(
        /^command_failed: dnf cannot use the repository broken, so its file was left as it was: Error: Failed to download metadata for repo 'broken'/,
      );
      expect(await run('ls -A /etc/yum.repos.d /etc/pki/rpm-gpg')).toBe(
        '/etc/pki/rpm-gpg:\n\n/etc/yum.repos.d:\nsite.repo',
      );
      const signed = { key: key.armoured, repo_gpgcheck: true };
      await orch.declare(site(signed), tool);
      expect(Object.values(failures(await orch.apply()))[0]).toContain('dnf cannot use the repository site');
      expect(await run(`ls -A /etc/pki/rpm-gpg; grep gpgcheck ${REPO}`)).toBe('gpgcheck=0');
    });

    it('check packages against their key, and go with it', async () => {
      expect(await orch.appliedAsPlanned(site({ key: key.armoured }), tool)).toEqual([
        [REPO, 'update', 'key,key_owner,key_group,key_mode,content'],
      ]);
      expect(await run(`grep gpg ${REPO}; stat -c '%U %a' ${KEY}`)).toBe(`gpgcheck=1\ngpgkey=file://${KEY}\nroot 644`);
      await orch.declare();
      expect(failures(await orch.apply())).toEqual({});
      expect(await run('ls -A /etc/yum.repos.d /etc/pki/rpm-gpg')).toBe('/etc/pki/rpm-gpg:\n\n/etc/yum.repos.d:');
    });

    it('are not for an agent that is not root', async () => {
      await run('useradd -m ida');
      const hers = new LocalOrch(host, '/home/ida/site.orch.yaml', 'ida');
      await hers.declare(site({ trusted: true }));
      expect(failures(await hers.apply())[REPO]).toMatch(/^permission_denied: /);
      expect(await run('ls -A /etc/yum.repos.d')).toBe('');
    });
  },
  { ...rpmTools, ...keyTools },
);
