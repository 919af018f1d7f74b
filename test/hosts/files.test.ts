/** Files and directories of a booted Debian through the program itself, as root and as an ordinary user, against odds and attackers. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { until } from '../support/orch.js';
import { type Fleet, startFleet } from './fleet.js';
import type { BootedHost } from './host.js';
import { type Body, entry, failures, LocalOrch, sh } from './local-orch.js';
import { describeHosts } from './requirements.js';

const file = (path: string, body: Body = {}) => entry('file-unix', { path, ...body });
const directory = (path: string, body: Body = {}) => entry('directory-unix', { path, ...body });

/** Exchanges a directory for a link to another one, again and again, until it is ended. */
const ATTACK = `
const fs = require('node:fs');
process.chdir('/srv/eve');
const pause = (rounds) => { for (let i = 0; i < rounds * 1000; i += 1); };
console.log('at it');
for (;;) {
  fs.renameSync('www', 'aside');
  fs.symlinkSync('/srv/vault', 'www');
  pause(Math.random() * 400);
  fs.unlinkSync('www');
  fs.renameSync('aside', 'www');
  pause(Math.random() * 1600);
}`;

describeHosts('files and directories on a booted machine', () => {
  let fleet: Fleet;
  let host: BootedHost;
  let orch: LocalOrch;
  const run = (script: string) => sh(host, script);

  beforeAll(async () => {
    fleet = await startFleet({ hosts: ['files'] });
    host = fleet.host('files');
    orch = new LocalOrch(host, '/root/site.orch.yaml');
    await run('useradd -m eve && useradd -m -G audio olaf');
  });

  afterAll(async () => {
    await fleet?.stop();
  });

  beforeEach(async () => {
    await run('rm -rf /root/.local /var/lib/orch-local /srv/site && mkdir /srv/site');
  });

  describe('what is written', () => {
    it('has owner, group and every bit of the mode, also when only the owner changes', async () => {
      const tool = { content: '#!/bin/sh\n', group: 'audio', mode: '6755' };
      expect(
        await orch.applied(
          file('/srv/site/tool', { ...tool, owner: 'olaf' }),
          directory('/srv/site/open', { mode: '1777' }),
        ),
      ).toEqual({});
      expect(await run('stat -c %U:%G:%a /srv/site/tool /srv/site/open')).toBe('olaf:audio:6755\nroot:root:1777');
      expect(
        await orch.applied(
          file('/srv/site/tool', { ...tool, owner: 'eve' }),
          directory('/srv/site/open', { mode: '2750' }),
        ),
      ).toEqual({});
      expect(await run('stat -c %U:%G:%a /srv/site/tool /srv/site/open')).toBe('eve:audio:6755\nroot:root:2750');
      await run('chmod u-s /srv/site/tool && chmod g-s /srv/site/open');
      expect(await orch.differences('drift')).toEqual([
        ['/srv/site/tool', 'update', 'mode'],
        ['/srv/site/open', 'update', 'mode'],
      ]);
    });

    it('is exactly the content: with and without a last line end, empty, long, and in place of binary data', async () => {
      const long = 'ä line that is not short\n'.repeat(30_000);
      const texts = {
        ended: 'a\nb\n',
        open: 'a\nb',
        empty: '',
        blank: '\n',
        carriage: 'a\r\nb\r',
        long,
        binary: 'text\n',
      };
      await run(`head -c 3000000 /dev/urandom >/srv/site/binary; printf 'a\\0b' >/srv/site/blank`);
      const entries = Object.entries(texts).map(([name, content]) => file(`/srv/site/${name}`, { content }));
      expect(await orch.applied(...entries)).toEqual({});
      for (const [name, content] of Object.entries(texts))
        expect(await host.readFile(`/srv/site/${name}`)).toBe(content);
      expect(await orch.differences()).toEqual([]);
      await run(`printf 'a\\nb' >/srv/site/ended; echo >>/srv/site/open; head -c 100 /dev/zero >/srv/site/empty`);
      expect((await orch.differences('drift')).map(([path, , field]) => [path, field])).toEqual(
        ['ended', 'open', 'empty'].map((name) => [`/srv/site/${name}`, 'content']),
      );
      expect(await orch.run('apply', '--yes')).toMatchObject({ status: 0 });
      expect(await host.readFile('/srv/site/empty')).toBe('');
    });

    it('is another file under this name only: other names of the old one keep it, and so does whoever has it open', async () => {
      await run('echo old >/srv/site/f && ln /srv/site/f /srv/site/other');
      const reader = await host.spawn(['sh', '-c', 'exec 3</srv/site/f; echo open; read go; cat <&3']);
      await reader.said(/open/);
      expect(await orch.applied(file('/srv/site/f', { content: 'new\n' }))).toEqual({});
      reader.write('go\n');
      expect((await reader.ended).stdout).toBe('open\nold\n');
      expect(await run('cat /srv/site/f /srv/site/other')).toBe('new\nold');
      expect(await run('ls -A /srv/site')).toBe('f\nother');
    });

    it('keeps its access list, until its mode is closed', async () => {
      await run(`echo old >/srv/site/f && chmod 640 /srv/site/f
        echo 'a+ /srv/site/f - - - - u:olaf:r' >/run/acl.conf && systemd-tmpfiles --create /run/acl.conf`);
      expect(await run('runuser -u olaf -- cat /srv/site/f')).toBe('old');
      expect(await orch.applied(file('/srv/site/f', { content: 'new\n' }))).toEqual({});
      expect(await run('runuser -u olaf -- cat /srv/site/f; runuser -u eve -- cat /srv/site/f 2>&1 || true')).toMatch(
        /^new\n.*Permission denied$/,
      );
      expect(await orch.applied(file('/srv/site/f', { content: 'secret\n', mode: '0600' }))).toEqual({});
      expect(await run('runuser -u olaf -- cat /srv/site/f 2>&1 || true')).toContain('Permission denied');
    });
  });

  it('fails each thing that cannot be, says why, leaves what was there, and does the rest', async () => {
    await run(`cd /srv/site && mkdir full still bound folder && mkfifo pipe && echo below >bound/f && echo mounted >source
      mount -t tmpfs -o size=64k none full && echo old >full/f
      mount -t tmpfs none still && echo old >still/f && mount -o remount,ro still
      mount --bind source bound/f && echo plain >plain && ln -s /etc/passwd link`);
    try {
      const content = 'x'.repeat(100_000);
      const found = await orch.applied(
        file('/srv/site/full/f', { content }),
        file('/srv/site/still/f', { content: 'new\n' }),
        file('/srv/site/bound/f', { content: 'new\n' }),
        file('/srv/site/folder', { content: 'new\n' }),
        file('/srv/site/pipe', { content: 'new\n' }),
        file('/srv/site/nowhere/f', { content: 'new\n', parents: false }),
        file('/srv/site/plain/f', { content: 'new\n' }),
        file('/srv/site/whose', { content: 'new\n', owner: 'nemo' }),
        directory('/srv/site/plain'),
        directory('/srv/site/link'),
        file('/srv/site/good', { content: 'new\n' }),
        file('/srv/site/full/small', { content: 'small\n' }),
      );
      expect(found).toEqual({
        '/srv/site/full/f': 'disk_full: cannot write /srv/site/full/f: the disk is full (ENOSPC)',
        '/srv/site/still/f': 'read_only: cannot write /srv/site/still/f: the file system is read-only (EROFS)',
        '/srv/site/bound/f': 'busy: cannot write /srv/site/bound/f: it is in use or a mount point (EBUSY)',
        '/srv/site/folder': 'wrong_type: /srv/site/folder is a directory, not a file',
        '/srv/site/pipe': 'wrong_type: /srv/site/pipe is a fifo, not a file',
        '/srv/site/nowhere/f':
          'parent_missing: the directory /srv/site/nowhere does not exist; declare it as a directory-unix resource before this one',
        '/srv/site/plain/f': 'parent_missing: /srv/site/plain is not a directory, so nothing can lie in it',
        '/srv/site/whose': 'unknown_owner: there is no user "nemo" on this machine',
        '/srv/site/plain': 'wrong_type: /srv/site/plain is a file, not a directory',
        '/srv/site/link': 'wrong_type: /srv/site/link is a symlink to /etc/passwd, not a directory',
      });
      expect(await run('cd /srv/site && cat full/f still/f bound/f plain good full/small')).toBe(
        'old\nold\nmounted\nplain\nnew\nsmall',
      );
      expect(await run('ls -A /srv/site/full /srv/site/still /srv/site/bound')).not.toContain('.orch-');
    } finally {
      await run('umount /srv/site/full /srv/site/still /srv/site/bound/f');
    }
  });

  it('makes the missing directories on the way, owned as what holds them, shows each once, and leaves them', async () => {
    await run('rm -rf /srv/eve && mkdir /srv/eve && chown eve:eve /srv/eve');
    const content = 'x\n';
    await orch.declare(
      file('/srv/site/a/b/f', { content }),
      file('/srv/site/a/b/g'),
      directory('/srv/site/a/c/d', { mode: '0700' }),
      directory('/srv/site/p', { owner: 'eve' }),
      file('/srv/site/p/q/f', { content, owner: 'eve' }),
      file('/srv/eve/.config/app/f', { content, owner: 'eve' }),
    );
    const made = (results: Awaited<ReturnType<LocalOrch['results']>>) =>
      Object.fromEntries(
        results.flatMap(({ identity, changes }) =>
          changes.flatMap(({ field, after }) => (field === 'parents' ? [[identity, after]] : [])),
        ),
      );
    const planned = made(await orch.results('plan'));
    expect(planned).toEqual({
      '/srv/site/a/b/f': '/srv/site/a, /srv/site/a/b',
      '/srv/site/a/c/d': '/srv/site/a/c',
      '/srv/site/p/q/f': '/srv/site/p/q',
      '/srv/eve/.config/app/f': '/srv/eve/.config, /srv/eve/.config/app',
    });
    const results = await orch.apply();
    expect([failures(results), made(results)]).toEqual([{}, planned]);
    expect(await run('cd /srv && stat -c %U:%G:%a site/a site/a/b site/a/c site/p/q eve/.config eve/.config/app')).toBe(
      ['root:root:755', 'root:root:755', 'root:root:755', 'eve:root:755', 'eve:eve:755', 'eve:eve:755'].join('\n'),
    );
    expect(await orch.differences()).toEqual([]);
    expect(await orch.applied(file('/srv/site/other'))).toEqual({});
    expect(await run('cd /srv && find site eve -type f; find site eve -type d | sort')).toBe(
      'site/other\neve\neve/.config\neve/.config/app\nsite\nsite/a\nsite/a/b\nsite/a/c\nsite/p\nsite/p/q',
    );
  });

  it('says that a file is immutable, and leaves it', async (context) => {
    const { status } = await host.run(['sh', '-c', 'echo old >/srv/site/f && chattr +i /srv/site/f']);
    if (status !== 0) context.skip('the file system of this machine knows no immutable files');
    const found = await orch.applied(
      file('/srv/site/f', { content: 'new\n' }),
      file('/srv/site/g', { content: 'g\n' }),
    );
    expect(found['/srv/site/f']).toMatch(/^immutable: .*lsattr/);
    expect(await run('cat /srv/site/f /srv/site/g; chattr -i /srv/site/f')).toBe('old\ng');
    expect(failures(await orch.apply())).toEqual({});
    expect(await host.readFile('/srv/site/f')).toBe('new\n');
  });

  describe('what an attacker lays in the way', () => {
    beforeEach(async () => {
      await run(`rm -rf /srv/eve /srv/vault && mkdir -p /srv/eve/www /srv/vault && chown -R eve /srv/eve
        for n in $(seq 0 199); do echo vault >/srv/vault/f$n; done; chmod 600 /srv/vault/*`);
    });

    it('never leads out of the directory, however often it is exchanged during an apply', async () => {
      const wanted = (round: number) =>
        Array.from({ length: 200 }, (_, n) =>
          file(`/srv/eve/www/f${n}`, { content: `${round}\n`, owner: 'eve', mode: '0644' }),
        );
      const before = await run('stat -c %n:%U:%a:%i /srv/vault /srv/vault/*');
      const eve = await host.spawn(['runuser', '-u', 'eve', '--', 'node', '-e', ATTACK]);
      await eve.said(/at it/);
      const codes = new Set<string>();
      const others = new Set<string>();
      const expected = ['done', 'unsafe_path', 'parent_missing', 'not_converged'];
      // It is a race: it goes on until both sides have won some rounds.
      for (let round = 0; round < 6 || (round < 40 && !(codes.has('done') && codes.has('unsafe_path'))); round += 1) {
        await orch.declare(...wanted(round));
        for (const { status, error } of await orch.apply()) {
          const code = error?.code ?? (status === 'changed' ? 'done' : status);
          codes.add(code);
          if (!expected.includes(code)) others.add(`${code}: ${error?.message}`);
        }
      }
      eve.kill('SIGKILL');
      await run('pkill -KILL -u eve; true');
      await eve.ended;
      expect(await run('stat -c %n:%U:%a:%i /srv/vault /srv/vault/*')).toBe(before);
      expect(await run('cat /srv/vault/* | sort -u')).toBe('vault');
      expect(await run('ls -A /srv/vault | grep -v "^f[0-9]*$" || true')).toBe('');
      expect([...codes]).toEqual(expect.arrayContaining(['done', 'unsafe_path']));
      expect([...others]).toEqual([]);
    });

    it('is a link at the place of the file, or of a directory on the way', async () => {
      await run(
        `cd /srv/eve/www && runuser -u eve -- ln -s /srv/vault/f0 f0 && runuser -u eve -- ln -s /srv/vault sub`,
      );
      const found = await orch.applied(
        file('/srv/eve/www/f0', { content: 'new\n' }),
        file('/srv/eve/www/sub/f1', { content: 'new\n', mode: '0666' }),
      );
      expect(found).toEqual({
        '/srv/eve/www/sub/f1':
          'unsafe_path: /srv/eve/www/sub leads through a symbolic link that users other than root could have made',
      });
      expect(
        await run(
          'cat /srv/eve/www/f0 /srv/vault/f0; stat -c %a /srv/vault/f1; test ! -L /srv/eve/www/f0 && echo file',
        ),
      ).toBe('new\nvault\n600\nfile');
    });

    it("is another name of root's file", async () => {
      // As an attacker could where the kernel does not protect hard links.
      await run('ln /srv/vault/f0 /srv/eve/www/f0 && ln /srv/vault/f1 /srv/eve/www/f1');
      const found = await orch.applied(
        file('/srv/eve/www/f0', { mode: '0666' }),
        file('/srv/eve/www/f1', { content: 'new\n', owner: 'eve' }),
      );
      expect(found).toEqual({
        '/srv/eve/www/f0':
          'unsafe_path: an unprivileged user could have put /srv/eve/www/f0 there, so its mode is not changed; declare its content, or remove it so that it is created again',
      });
      expect(await run('cat /srv/vault/f1; stat -c %U:%a /srv/vault/f0 /srv/vault/f1 /srv/eve/www/f1')).toBe(
        'vault\nroot:600\nroot:600\neve:600',
      );
    });
  });

  describe('what a user has made before', () => {
    const ours = '/srv/eve/box';
    const changesOf = async (verb: 'plan' | 'drift' = 'plan') =>
      (await orch.results(verb)).map(({ identity, action, changes }) => [
        identity,
        action,
        ...changes.map(({ field, before, after }) => `${field} ${before} -> ${after}`),
      ]);

    beforeEach(async () => {
      await run(`rm -rf /srv/eve && mkdir -p /srv/eve && chown eve /srv/eve && runuser -u eve -- mkdir ${ours}`);
    });

    it("never becomes another owner's program, whoever owns the directory", async () => {
      await run(`cd /srv/eve && runuser -u eve -- sh -c 'cp /bin/sh app && chmod 6777 app'
        cp /bin/sh /srv/site/app && chown eve:eve /srv/site/app && chmod 6777 /srv/site/app
        mkdir /srv/site/d && chown eve:eve /srv/site/d && chmod 2777 /srv/site/d`);
      await orch.declare(
        file('/srv/eve/app', { owner: 'root' }),
        file('/srv/site/app', { owner: 'root' }),
        directory('/srv/site/d', { group: 'audio' }),
      );
      expect(await changesOf()).toEqual([
        ['/srv/eve/app', 'none'],
        ['/srv/site/app', 'update', 'owner eve -> root', 'mode 6777 -> 0755'],
        ['/srv/site/d', 'update', 'group eve -> audio', 'mode 2777 -> 0775'],
      ]);
      expect(failures(await orch.apply())).toEqual({
        '/srv/eve/app':
          'unsafe_path: an unprivileged user could have put /srv/eve/app there, so its owner and group are not changed; declare its content, or remove it so that it is created again',
      });
      expect(await run('stat -c %U:%G:%a /srv/eve/app /srv/site/app /srv/site/d')).toBe(
        'eve:eve:6777\nroot:eve:755\neve:audio:775',
      );
      expect(await orch.applied(file('/srv/eve/app', { owner: 'root', content: 'ours\n' }))).toEqual({});
      expect(await run('stat -c %U:%a /srv/eve/app; cat /srv/eve/app')).toBe('root:755\nours');
      expect(await orch.differences()).toEqual([]);
    });

    it('is not handed to another user, nor opened, when it was moved there', async () => {
      await run(`cd /srv/eve && echo root >theirs && chmod 600 theirs && runuser -u eve -- mv theirs box/f
        mkdir box/d && echo root >box/d/f && chmod 700 box/d`);
      const found = await orch.applied(file(`${ours}/f`, { owner: 'eve' }), directory(`${ours}/d`, { owner: 'eve' }));
      expect(Object.values(found).map((why) => why.split(':')[0])).toEqual(['unsafe_path', 'unsafe_path']);
      expect(await orch.applied(file(`${ours}/f`, { mode: '0644' }))).toEqual({
        [`${ours}/f`]: expect.stringMatching(/^unsafe_path: .* so its mode is not changed/),
      });
      expect(await run(`stat -c %U:%a ${ours}/f ${ours}/d`)).toBe('root:600\nroot:700');
    });

    it('does not become a file with a secret that its maker reads, by owner, group or access list', async () => {
      await run(`cd ${ours} && runuser -u eve -- sh -c 'echo x >early; echo x >listed; chmod 666 early listed'
        echo 'a+ ${ours}/listed - - - - u:eve:r' >/run/acl.conf && systemd-tmpfiles --create /run/acl.conf
        printf %s hunter2hunter2 >/root/token`);
      const content = `\${{ secrets.token }}`;
      const flag = ['--secret-file', 'token=/root/token'];
      await orch.declare(
        file(`${ours}/early`, { content }),
        file(`${ours}/listed`, { content, owner: 'root', mode: '0640' }),
      );
      const planned = await orch.results('plan', ...flag);
      expect(planned.map(({ changes, reason }) => [changes.map(({ field, after }) => [field, after]), reason])).toEqual(
        [
          [
            [
              ['content', null],
              ['owner', 'root'],
              ['group', 'root'],
              ['mode', '0600'],
            ],
            'it holds a secret, and user eve made the file',
          ],
          [
            [
              ['content', null],
              ['owner', 'root'],
              ['group', 'root'],
              ['mode', '0640'],
            ],
            'it holds a secret, and user eve made the file',
          ],
        ],
      );
      expect(failures(await orch.results('apply', '--yes', ...flag))).toEqual({});
      expect(await run(`stat -c %U:%G:%a ${ours}/early ${ours}/listed`)).toBe('root:root:600\nroot:root:640');
      for (const name of ['early', 'listed']) {
        expect(await run(`runuser -u eve -- cat ${ours}/${name} 2>&1 || true`)).toContain('Permission denied');
      }
    });
  });

  describe('an ordinary user', () => {
    it('does what it may do, and reports the rest', async () => {
      const olaf = new LocalOrch(host, '/srv/olaf.orch.yaml', 'olaf');
      await run(
        'echo mine >/home/olaf/mine; chown olaf: /home/olaf/mine; echo root >/srv/site/roots; chmod 600 /srv/site/roots; chmod 644 /etc/hostname',
      );
      await olaf.declare(
        directory('/home/olaf/made', { mode: '2770', group: 'audio' }),
        file('/home/olaf/made/f', { content: 'hello\n', group: 'audio', mode: '0640' }),
        file('/home/olaf/mine', { mode: '0600' }),
        file('/home/olaf/given', { content: 'x\n', owner: 'eve' }),
        file('/home/olaf/shared', { content: 'x\n', group: 'video' }),
        file('/etc/motd', { content: 'mine now\n' }),
        file('/srv/site/roots', { content: 'x\n' }),
        file('/srv/site/new', { content: 'x\n' }),
        directory('/srv/site/directory'),
        file('/etc/hostname', { mode: '0666' }),
        file('/root/f', { content: 'x\n' }),
      );
      const { status } = await olaf.run('plan');
      const results = await olaf.apply();
      const found = failures(results);
      expect(Object.keys(found).sort()).toEqual([
        '/etc/hostname',
        '/etc/motd',
        '/home/olaf/given',
        '/home/olaf/shared',
        '/root/f',
        '/srv/site/directory',
        '/srv/site/new',
        '/srv/site/roots',
      ]);
      for (const [path, why] of Object.entries(found))
        expect([path, why]).toEqual([
          path,
          expect.stringMatching(/^permission_denied: cannot .*(may not do that|only its owner or root)/),
        ]);
      expect(status).not.toBe(0);
      expect(await run('stat -c %U:%G:%a /home/olaf/made /home/olaf/made/f /home/olaf/mine')).toBe(
        'olaf:audio:2770\nolaf:audio:640\nolaf:olaf:600',
      );
      expect(await run('ls -A /home/olaf | grep -E "given|shared|orch-" || true')).toBe('');
      expect(await run('cat /srv/site/roots; stat -c %U:%a /etc/hostname; ls /srv/site')).toBe('root\nroot:644\nroots');
    });

    it('keeps what it applied in its own place, and removes it again', async () => {
      const olaf = new LocalOrch(host, '/srv/olaf.orch.yaml', 'olaf');
      await olaf.declare(file('/home/olaf/mine', { mode: '0600' }));
      expect(failures(await olaf.apply())).toEqual({});
      expect(await run('test ! -e /home/olaf/made && stat -c %U /home/olaf/.local/state/orch/local/state.json')).toBe(
        'olaf',
      );
      expect(await olaf.differences('drift')).toEqual([]);
    });
  });

  it('leaves nothing behind when it is killed while it writes, and every file whole', async () => {
    const content = (letter: string) => `${letter.repeat(20_000)}\n`;
    const entries = (letter: string) =>
      Array.from({ length: 40 }, (_, n) => file(`/srv/site/f${n}`, { content: content(letter) }));
    expect(await orch.applied(...entries('a'))).toEqual({});
    await orch.declare(...entries('b'));
    const killed = await host.spawn(['orch', 'apply', '--local', '--yes', '-f', '/root/site.orch.yaml']);
    await until(
      async () =>
        (await host.run(['sh', '-c', 'ls -A /srv/site | grep -q orch-'])).status === 0 ||
        hasB(await run('cat /srv/site/f*')),
      'it writes',
    );
    killed.kill('SIGKILL');
    await killed.ended;
    for (const line of (await run('cat /srv/site/f*')).split('\n'))
      expect(['a', 'b'].map((one) => one.repeat(20_000))).toContain(line);
    expect(failures(await orch.apply())).toEqual({});
    expect(await run('ls -A /srv/site | grep -c orch- || true')).toBe('0');
    expect(hasB(await run('cat /srv/site/f*'))).toBe(true);
  });
});

const hasB = (text: string): boolean => text.includes('b');
