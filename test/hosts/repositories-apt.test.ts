/** Repositories of apt on a booted Debian: read before they are put into place, used by packages of the same apply, removed. */
import { createHash } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type DebRepository, debRepository, debTools } from './deb-repository.js';
import { type Fleet, startFleet } from './fleet.js';
import type { BootedHost } from './host.js';
import { absent, type Body, entry, failures, LocalOrch, sh } from './local-orch.js';
import { describeHosts } from './requirements.js';
import { keyTools, type SigningKey, signingKey } from './signing-key.js';

const SOURCES = '/etc/apt/sources.list.d/site.sources';
const KEY = '/etc/apt/keyrings/site.asc';
const BINARY = '/etc/apt/keyrings/site.gpg';
const tool = entry('package-apt', { name: 'tool' });

describeHosts(
  'repositories of apt on a booted machine',
  () => {
    let fleet: Fleet;
    let host: BootedHost;
    let orch: LocalOrch;
    let debs: DebRepository;
    let key: SigningKey;
    let other: SigningKey;
    let server: Server;
    const run = (script: string) => sh(host, script);
    const site = (more: Body) =>
      entry('repository-apt', { name: 'site', uris: ['file:/srv/debs'], suites: ['./'], ...more });
    const downloaded = (key_sha256 = createHash('sha256').update(key.binary).digest('hex')) => {
      const address = server.address();
      const port = typeof address === 'object' ? address?.port : 0;
      return site({ key_url: `http://${fleet.gateway}:${port}/key.gpg`, key_sha256 });
    };
    const publish = async (version: string) => {
      await debs.publish([{ name: 'tool', version }]);
      await key.sign(debs.directory);
    };

    beforeAll(async () => {
      debs = debRepository();
      key = await signingKey('site');
      other = await signingKey('other');
      await publish('1.0');
      fleet = await startFleet({ hosts: ['repo'], binds: [{ from: debs.directory, to: '/srv/debs' }] });
      host = fleet.host('repo');
      orch = new LocalOrch(host, '/root/site.orch.yaml');
      server = createServer((_, response) => response.end(key.binary));
      await new Promise<void>((resolve) => server.listen(0, fleet.gateway, resolve));
      await run('rm -rf /etc/apt/sources.list /etc/apt/sources.list.d/* /etc/apt/keyrings; ln -s debs /srv/same');
    });

    afterAll(async () => {
      server?.close();
      await fleet?.stop();
      debs?.remove();
      await key?.remove();
      await other?.remove();
    });

    it('are there for the packages of the same apply, whose plan says what it cannot know', async () => {
      await orch.declare(site({ key: key.armoured }), tool);
      expect(await orch.differences()).toEqual([
        [SOURCES, 'create', 'key,key_parents,key_owner,key_group,key_mode,owner,group,mode'],
        ['tool', 'create', ''],
      ]);
      const [, planned] = await orch.results('plan');
      expect(planned?.reason).toContain('its version is known only once the repositories above are changed');
      expect(failures(await orch.apply())).toEqual({});
      expect(await run(`grep -v '^#' ${SOURCES}; stat -c '%n %U:%G %a' ${SOURCES} ${KEY}; dpkg-query -W tool`)).toBe(
        `Types: deb
URIs: file:/srv/debs
Suites: ./
Signed-By: ${KEY}
${SOURCES} root:root 644
${KEY} root:root 644
tool\t1.0`,
      );
      expect(await orch.differences()).toEqual([]);
      expect(await orch.differences('drift')).toEqual([]);
      expect((await orch.apply()).map(({ status }) => status)).toEqual(['unchanged', 'unchanged']);
    });

    it('are repaired when a person has changed them, and bring what is new to later packages', async () => {
      await run(`sed -i 's,^URIs.*,URIs: file:/srv/elsewhere,' ${SOURCES}; chmod 666 ${KEY}; echo >>${KEY}`);
      expect(await orch.differences('drift')).toEqual([[SOURCES, 'update', 'key,key_mode,content']]);
      await publish('2.0');
      const [, planned] = await orch.results('plan');
      expect(planned).toMatchObject({ identity: 'tool', status: 'unchanged' });
      expect(failures(await orch.apply())).toEqual({});
      expect(await run(`grep URIs ${SOURCES}; stat -c %a ${KEY}; dpkg-query -W tool`)).toBe(
        'URIs: file:/srv/debs\n644\ntool\t2.0',
      );
      expect(await orch.differences()).toEqual([]);
    });

    it('are refused with what apt says, and nothing is defined that apt could not read', async () => {
      const list = '/etc/apt/sources.list.d/hand.list';
      await run(`echo 'deb [signed-by=/etc/apt/keyrings/hand.asc] file:/srv/debs ./' >${list}`);
      await orch.declare(site({ key: key.armoured }), tool);
      await run(`rm ${SOURCES}`);
      expect(failures(await orch.apply())[SOURCES]).toMatch(
        /^command_failed: apt cannot use the repository site, so its file was left as it was: E: Conflicting values set for option Signed-By/,
      );
      await run(`rm ${list}`);
      await orch.declare(
        site({ key: other.armoured, name: 'broken', uris: ['file:/srv/same'] }),
        site({ key: key.armoured }),
        tool,
      );
      const failed = failures(await orch.apply());
      expect(Object.keys(failed)).toEqual(['/etc/apt/sources.list.d/broken.sources']);
      expect(Object.values(failed)[0]).toContain('NO_PUBKEY');
      await orch.declare(
        site({ trusted: true, name: 'broken', uris: ['file:/srv/none'] }),
        site({ key: key.armoured }),
        tool,
      );
      expect(Object.values(failures(await orch.apply()))[0]).toContain('/srv/none');
      expect(await run('ls /etc/apt/sources.list.d /etc/apt/keyrings; apt-get update >/dev/null')).toBe(
        '/etc/apt/keyrings:\nsite.asc\n\n/etc/apt/sources.list.d:\nsite.sources',
      );
    });

    it('download their key, whose SHA-256 has to be the declared one, and drop one that they no longer need', async () => {
      await orch.declare(downloaded('0'.repeat(64)), tool);
      const { status, stdout, stderr } = await orch.run('apply', '--yes');
      expect(status).not.toBe(0);
      expect(stdout + stderr).toContain('nothing was changed');
      expect(await run('ls /etc/apt/keyrings')).toBe('site.asc');
      expect(await orch.appliedAsPlanned(downloaded(), tool)).toEqual([
        [SOURCES, 'update', 'key,key_owner,key_group,key_mode,key,content'],
      ]);
      expect(await run(`ls /etc/apt/keyrings; grep Signed ${SOURCES}; apt-get update >/dev/null`)).toBe(
        `site.gpg\nSigned-By: ${BINARY}`,
      );
      expect(await orch.differences()).toEqual([]);
      expect(await orch.differences('drift')).toEqual([]);
    });

    it('go with their key, unless another repository uses it', async () => {
      const second = entry('repository-apt', {
        name: 'second',
        uris: ['file:/srv/same'],
        suites: ['./'],
        key_file: BINARY,
      });
      await orch.declare(downloaded(), second);
      expect(failures(await orch.apply())).toEqual({});
      await orch.declare(second);
      const removal = (await orch.results('plan')).find(({ identity }) => identity === SOURCES);
      const stays = `its key ${BINARY} stays, because /etc/apt/sources.list.d/second.sources may use it`;
      expect(removal).toMatchObject({ action: 'remove', reason: stays });
      expect(failures(await orch.apply())).toEqual({});
      const left = 'ls /etc/apt/sources.list.d /etc/apt/keyrings | grep site';
      expect(await run(left)).toBe('site.gpg');
      await run(`printf 'Types: deb\nURIs: file:/srv/x\nSuites: ./\nSigned-By: ${KEY}\n' >${SOURCES}; echo x >${KEY}`);
      expect(await orch.appliedAsPlanned(absent('repository-apt', { name: 'site' }), second)).toEqual([
        [SOURCES, 'remove', ''],
      ]);
      expect(await run(left)).toBe('site.gpg');
      await orch.declare(site({ key: key.armoured }));
      expect(failures(await orch.apply())).toEqual({});
      await orch.declare(site({ key: key.armoured, name: 'renamed-site' }));
      expect(failures(await orch.apply())).toEqual({});
      expect(await run(left)).toBe('renamed-site.asc\nsite.gpg\nrenamed-site.sources');
      await orch.declare();
      expect(failures(await orch.apply())).toEqual({});
      expect(await run(left)).toBe('site.gpg');
    });

    it('are not for an agent that is not root', async () => {
      await run('useradd -m ida');
      const hers = new LocalOrch(host, '/home/ida/site.orch.yaml', 'ida');
      await hers.declare(site({ trusted: true }));
      expect(failures(await hers.apply())[SOURCES]).toMatch(/^permission_denied: /);
    });
  },
  { ...debTools, ...keyTools },
);
