/** Users and groups of a booted Debian, through the real tools: made, changed field by field, in use, removed. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Fleet, startFleet } from './fleet.js';
import type { BootedHost } from './host.js';
import { absent, type Body, entry, failures, LocalOrch, sh } from './local-orch.js';
import { describeHosts } from './requirements.js';

const MANY = 20;
const user = (body: Body, depends_on: readonly string[] = []) => entry('user-unix', body, { depends_on });
const group = (body: Body) => entry('group-unix', body);

const OPS = group({ name: 'ops', gid: 3000 });
const ANNA = {
  name: 'anna',
  uid: 5001,
  primary_group: 'ops',
  additional_groups: ['adm', 'audio'],
  home: '/srv/anna',
  shell: '/bin/bash',
};

/** Notes every program of a name that runs in the host. */
const WATCHED = ['getent', 'id', 'passwd', 'chage', 'useradd', 'usermod', 'groupadd'];
const watch = `for tool in ${WATCHED.join(' ')}; do
  real=$(command -v $tool)
  printf '#!/bin/sh\\necho "%s $*" >>/run/ran\\nexec %s "$@"\\n' $tool $real >/usr/local/sbin/$tool
  chmod 755 /usr/local/sbin/$tool
done`;

describeHosts('users and groups on a booted machine', () => {
  let fleet: Fleet;
  let host: BootedHost;
  let orch: LocalOrch;
  const run = (script: string) => sh(host, script);
  const passwd = (name: string) => run(`getent passwd ${name} || true`);
  const groupsOf = (name: string) => run(`id -nG ${name} | tr ' ' '\\n' | sort | paste -sd' '`);

  beforeAll(async () => {
    fleet = await startFleet({ hosts: ['accounts'] });
    host = fleet.host('accounts');
    orch = new LocalOrch(host, '/root/site.orch.yaml');
  });

  afterAll(async () => {
    await fleet?.stop();
  });

  describe('what is made', () => {
    it('has every field, and files of new users come in the same apply', async () => {
      await orch.declare(
        OPS,
        user(ANNA),
        user({ name: 'plain' }),
        user({ name: 'daemon-of-ours', system: true, shell: '/usr/sbin/nologin', home: '/var/lib/ours' }),
        entry('directory-unix', { path: '/srv/anna/www', owner: 'anna', group: 'ops', mode: '0750' }),
        entry('file-unix', { path: '/srv/anna/www/index', content: 'hello\n', owner: 'anna' }),
        entry('directory-unix', { path: '/home/plain/.ssh', owner: 'plain', group: 'plain', mode: '0700' }),
        entry('file-unix', { path: '/home/plain/.ssh/authorized_keys', content: '', owner: 'plain', group: 'plain' }),
      );
      expect(await orch.differences()).toHaveLength(8);
      expect(await passwd('anna')).toBe('');
      expect(failures(await orch.apply())).toEqual({});
      expect(await passwd('anna')).toBe('anna:x:5001:3000::/srv/anna:/bin/bash');
      expect(await groupsOf('anna')).toBe('adm audio ops');
      expect(await run('stat -c %U:%G:%a /srv/anna /srv/anna/www /srv/anna/www/index')).toBe(
        'anna:ops:755\nanna:ops:750\nanna:root:644',
      );
      expect(await orch.differences()).toEqual([]);
      expect(await orch.differences('drift')).toEqual([]);
    });

    it('is an ordinary user with a home directory, or a system account without', async () => {
      const [, , uid, gid] = (await passwd('plain')).split(':');
      expect(Number(uid)).toBeGreaterThanOrEqual(1000);
      expect(await run(`getent group plain`)).toBe(`plain:x:${gid}:`);
      expect(await run('ls -A /home/plain')).toContain('.bashrc');
      const [, , number] = (await passwd('daemon-of-ours')).split(':');
      expect(Number(number)).toBeLessThan(1000);
      expect(await run('test ! -e /var/lib/ours && echo none')).toBe('none');
    });

    it('has no password that anybody could give', async () => {
      expect(await run(`getent shadow anna plain daemon-of-ours | cut -d: -f2`)).toBe('!\n!\n!');
    });
  });

  describe('what is changed by hand', () => {
    it.each([
      ['usermod -u 5999 anna', 'anna', 'uid'],
      ['usermod -g users anna', 'anna', 'primary_group'],
      ['usermod -aG video anna', 'anna', 'additional_groups'],
      ['gpasswd -d anna audio', 'anna', 'additional_groups'],
      ['usermod -d /elsewhere anna', 'anna', 'home'],
      ['usermod -s /bin/sh anna', 'anna', 'shell'],
      ['groupmod -g 3999 ops', 'ops', 'gid'],
    ])('is found and repaired: %s', async (command, name, field) => {
      const before = [await passwd('anna'), await groupsOf('anna'), await run('getent group ops')];
      await run(command);
      const found = await orch.differences('drift');
      expect(found.filter(([identity]) => !identity.startsWith('/'))).toEqual([[name, 'update', field]]);
      expect(failures(await orch.apply())).toEqual({});
      expect([await passwd('anna'), await groupsOf('anna'), await run('getent group ops')]).toEqual(before);
      expect(await orch.differences()).toEqual([]);
    });

    it('is left alone where the module says nothing of it', async () => {
      await run('usermod -s /bin/bash -aG video plain && usermod -c "Plain User" anna');
      expect(await orch.differences()).toEqual([]);
    });

    it('is a user that is gone', async () => {
      await run('userdel plain');
      expect(await orch.differences('drift')).toEqual([
        ['plain', 'create', ''],
        // Their owner is gone.
        ['/home/plain/.ssh', 'update', ''],
        ['/home/plain/.ssh/authorized_keys', 'update', ''],
      ]);
      expect(failures(await orch.apply())).toEqual({});
      expect(await orch.differences()).toEqual([]);
      expect(await passwd('plain')).toMatch(/^plain:/);
    });
  });

  describe('what the module says otherwise', () => {
    it('changes every field in one command, and the files at home follow', async () => {
      await run('touch /srv/mine && chown anna /srv/mine');
      await orch.declare(
        group({ name: 'ops', gid: 3001 }),
        user({ ...ANNA, uid: 5101, primary_group: 'users', additional_groups: ['video', '4'], shell: '/bin/sh' }),
      );
      const results = await orch.apply();
      expect(failures(results)).toEqual({});
      const anna = results.find(({ identity }) => identity === 'anna');
      expect(anna?.changes.map(({ field }) => field)).toEqual(['uid', 'primary_group', 'additional_groups', 'shell']);
      expect(anna?.reason).toBe('files outside its home directory still belong to the number 5001');
      expect(await passwd('anna')).toBe('anna:x:5101:100:Plain User:/srv/anna:/bin/sh');
      expect(await groupsOf('anna')).toBe('adm users video');
      expect(await run('stat -c %u /srv/anna /srv/mine')).toBe('5101\n5001');
      expect(await run('getent group ops')).toBe('ops:x:3001:');
      expect(await orch.differences()).toEqual([]);
    });

    it('moves nothing to another home directory, and takes the last group away', async () => {
      await orch.declare(user({ name: 'anna', additional_groups: [], home: '/srv/elsewhere' }));
      expect(failures(await orch.apply())).toEqual({});
      expect(await passwd('anna')).toBe('anna:x:5101:100:Plain User:/srv/elsewhere:/bin/sh');
      expect(await run('test -e /srv/anna/.bashrc && test ! -e /srv/elsewhere && groups anna')).toBe('anna : users');
      expect(await orch.differences()).toEqual([]);
    });
  });

  describe('what cannot be', () => {
    it('names who has a number, and the group that is missing', async () => {
      await orch.declare(
        user({ name: 'anna' }),
        group({ name: 'second', gid: 100 }),
        user({ name: 'late', uid: 5101 }),
        user({ name: 'lost', additional_groups: ['nowhere'] }),
        user({ name: 'one', uid: 5500 }),
        user({ name: 'two', uid: 5500 }),
      );
      const found = failures(await orch.apply());
      expect(found.second).toBe('id_taken: the group second cannot have the gid 100: it is taken by the group users');
      expect(found.late).toBe('id_taken: the user late cannot have the uid 5101: it is taken by the user anna');
      expect(found.lost).toContain('unknown_group: there is no group "nowhere"');
      expect(found.two).toContain('module_conflict: user-unix two and user-unix one have the uid 5500');
      expect(found.one).toContain('module_conflict: user-unix one and user-unix two have the uid 5500');
      expect(Object.keys(found)).toHaveLength(5);
      expect(await run('getent passwd late lost one two || true')).toBe('');
    });

    it('is said to an ordinary user', async () => {
      const ordinary = new LocalOrch(host, '/srv/ordinary.orch.yaml', 'anna');
      await run('install -d -o anna /srv/elsewhere');
      await ordinary.declare(user({ name: 'nobodys' }), user({ name: 'anna', shell: '/bin/bash' }), OPS);
      const found = failures(await ordinary.apply());
      expect(found.nobodys).toMatch(
        /^permission_denied: this user may not change the user nobodys; run the agent as root/,
      );
      expect(found.anna).toMatch(/^permission_denied: /);
      expect(found.ops).toMatch(/^permission_denied: /);
    });
  });

  it('runs the same few commands for many users as for one', async () => {
    const plan = async (count: number) => {
      const users = Array.from({ length: count }, (_, n) => [
        group({ name: `team${n}` }),
        user({ name: `member${n}`, primary_group: `team${n}`, additional_groups: ['adm'] }),
      ]);
      await orch.declare(user({ name: 'anna' }), ...users.flat());
      await run('rm -f /run/ran');
      expect((await orch.differences()).filter(([, action]) => action === 'create')).toHaveLength(2 * count);
      return (await run('cut -d" " -f1,2 /run/ran')).split('\n');
    };
    await run(watch);
    const one = await plan(1);
    expect(one).toEqual(['getent passwd', 'getent group', 'getent group']);
    expect(await plan(MANY)).toEqual(one);
    expect(failures(await orch.apply())).toEqual({});
    await run('rm -f /run/ran');
    expect(await orch.differences()).toEqual([]);
    expect(await run('cat /run/ran 2>/dev/null || true')).toBe('');
    await run(`rm ${WATCHED.map((tool) => `/usr/local/sbin/${tool}`).join(' ')}`);
  });

  it('reads accounts whose comments are in an old encoding', async () => {
    await run(`printf 'old:x:5700:100:M\\374ller:/home/old:/bin/sh\\n' >>/etc/passwd`);
    await orch.declare(user({ name: 'anna' }), user({ name: 'old', uid: 5700, shell: '/bin/bash' }));
    expect(failures(await orch.apply())).toEqual({});
    expect(await run(`grep -a '^old:' /etc/passwd | od -An -c | tr -d ' \\n'`)).toContain(
      'M374ller:/home/old:/bin/bash',
    );
  });

  describe('what is in use', () => {
    it('is neither renumbered nor removed under a user who is logged in', async () => {
      await orch.declare(user({ name: 'anna' }), user({ name: 'busy', primary_group: 'users' }));
      expect(failures(await orch.apply())).toEqual({});
      const work = await host.spawn(['runuser', '-u', 'busy', '--', 'sleep', '1000']);
      await run('until pgrep -u busy -x sleep >/dev/null; do sleep 0.1; done');
      const pid = await run('pgrep -u busy -x sleep');

      await orch.declare(user({ name: 'anna' }), user({ name: 'busy', primary_group: 'users', uid: 5600 }));
      const renumbered = failures(await orch.apply());
      expect(renumbered.busy).toMatch(
        new RegExp(`^account_busy: the user busy is in use: process ${pid} \\(sleep\\) runs as it; end its processes`),
      );
      await orch.declare(user({ name: 'anna' }));
      expect(failures(await orch.apply()).busy).toMatch(/^account_busy: /);
      expect(await passwd('busy')).toMatch(/^busy:/);

      await run('pkill -u busy');
      await work.ended;
      const [removed] = (await orch.apply()).filter(({ identity }) => identity === 'busy');
      expect(removed).toMatchObject({
        action: 'remove',
        status: 'changed',
        reason: '/home/busy stays',
      });
      expect(await passwd('busy')).toBe('');
      expect(await run('ls -A /home/busy')).toContain('.bashrc');
    });
  });

  describe('what is no longer declared', () => {
    it('is removed when orch made it, and released when it was there before', async () => {
      await run('useradd -m before && groupadd earlier');
      const before = [user({ name: 'before', shell: '/bin/bash' }), group({ name: 'earlier', gid: 3500 })];
      await orch.declare(
        user({ name: 'anna' }),
        ...before,
        group({ name: 'mine' }),
        user({ name: 'me', primary_group: 'mine' }),
      );
      expect(failures(await orch.apply())).toEqual({});
      await orch.declare(user({ name: 'anna' }));
      const results = await orch.apply();
      expect(results.map(({ identity, action, status }) => [identity, action, status])).toEqual([
        ['anna', 'none', 'unchanged'],
        ['me', 'remove', 'changed'],
        ['mine', 'remove', 'changed'],
        ['earlier', 'release', 'changed'],
        ['before', 'release', 'changed'],
      ]);
      expect(await run('getent passwd before me | cut -d: -f1; getent group earlier mine | cut -d: -f1,3')).toBe(
        'before\nearlier:3500',
      );
    });

    it('keeps the group of a user that is still wanted', async () => {
      await orch.declare(user({ name: 'anna' }), group({ name: 'crew', gid: 3600 }), user({ name: 'crew' }));
      expect(failures(await orch.apply())).toEqual({});
      expect(await run('id -g crew')).toBe('3600');
      await orch.declare(user({ name: 'anna' }), group({ name: 'crew', gid: 3600 }));
      expect(failures(await orch.apply())).toEqual({});
      expect(await passwd('crew')).toBe('');
      expect(await run('getent group crew')).toBe('crew:x:3600:');
      expect(await orch.differences()).toEqual([]);
    });

    it('stays when it is the primary group of a user', async () => {
      await run('useradd -g crew holder');
      await orch.declare(user({ name: 'anna' }));
      const plan = failures(await orch.results('plan'));
      expect(plan.crew).toBe(
        'removal_refused: the group crew is the primary group of holder; give them another one first',
      );
      expect(failures(await orch.apply())).toEqual(plan);
      await run('userdel holder; getent group crew >/dev/null || groupadd crew');
      expect(failures(await orch.apply())).toEqual({});
      expect(await run('getent group crew || true')).toBe('');
    });

    it('makes way for the one that takes its number, which keeps the files', async () => {
      const anna = user({ name: 'anna' });
      await orch.declare(
        anna,
        group({ name: 'first', gid: 3770 }),
        user({ name: 'one', uid: 5770, primary_group: 'first' }),
      );
      expect(failures(await orch.apply())).toEqual({});
      await orch.declare(
        anna,
        group({ name: 'second', gid: 3770 }),
        user({ name: 'two', uid: 5770, primary_group: 'second' }),
      );
      const order = async (verb: 'plan' | 'apply') =>
        (await (verb === 'plan' ? orch.results('plan') : orch.apply()))
          .filter(({ identity }) => identity !== 'anna')
          .map(({ identity, action }) => `${identity} ${action}`);
      const planned = await order('plan');
      expect(planned).toEqual(['one remove', 'first remove', 'second create', 'two create']);
      expect(await order('apply')).toEqual(planned);
      expect(await run('stat -c %U:%G /home/one')).toBe('two:second');
      expect(await run('getent passwd one; getent group first; id two')).toContain('uid=5770(two) gid=3770(second)');
    });

    it('is not made twice with one number', async () => {
      await orch.declare(
        user({ name: 'anna' }),
        user({ name: 'twin', uid: 5701 }),
        user({ name: 'other', uid: 5701 }),
        group({ name: 'some', gid: 3701 }),
        group({ name: 'same', gid: 3701 }),
      );
      const why = 'module_conflict';
      const plan = failures(await orch.results('plan'));
      expect(plan).toMatchObject({
        twin: `${why}: user-unix twin and user-unix other have the uid 5701; declare only one of them`,
        other: `${why}: user-unix other and user-unix twin have the uid 5701; declare only one of them`,
        some: `${why}: group-unix some and group-unix same have the gid 3701; declare only one of them`,
        same: `${why}: group-unix same and group-unix some have the gid 3701; declare only one of them`,
      });
      expect(Object.keys(failures(await orch.apply())).sort()).toEqual(Object.keys(plan).sort());
      expect(await passwd('twin')).toBe('');
      // The removal was held back.
      expect(await passwd('two')).not.toBe('');
    });
  });

  describe('details of users', () => {
    const KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAnnaAnnaAnnaAnnaAnnaAnnaAnnaAnnaAnnaAnna anna@laptop';
    const OTHER = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOtherOtherOtherOtherOtherOtherOtherOthe by hand';
    const HASH = '$6$saltsalt$N.Xb4bBqFh1GfFnUWZ.4nYwQxKvZxJXQvOqk0wS5nTTO1V1cW0eU2Zb1rLrZx0TzLzZ8U2l4dQ5hY1y1bq1aB/';
    const DETAILED = {
      name: 'dora',
      comment: 'Dora D.',
      append_groups: ['adm'],
      password_hash: HASH,
      authorized_keys: { keys: [KEY] },
    };
    const keys = '/home/dora/.ssh/authorized_keys';

    it('come with a new user, and are found and repaired when they are changed by hand', async () => {
      await orch.declare();
      await orch.apply();
      await orch.declare(user(DETAILED));
      expect(await orch.differences()).toEqual([
        ['dora', 'create', 'append_groups,comment,password_hash,authorized_keys'],
      ]);
      const { stdout } = await orch.run('apply', '--yes');
      expect(stdout).not.toContain('saltsalt');
      expect(JSON.parse(stdout)).toMatchObject({
        resources: [
          {
            action: 'create',
            changes: ['append_groups', 'comment', 'password_hash', 'authorized_keys'].map((field) => ({ field })),
          },
        ],
      });
      expect(await passwd('dora')).toMatch(/^dora:x:\d+:\d+:Dora D.:\/home\/dora:/);
      expect(await groupsOf('dora')).toBe('adm dora');
      expect(await run('getent shadow dora | cut -d: -f2')).toBe(HASH);
      expect(await run(`cat ${keys}; stat -c '%U:%G %a' ${keys} /home/dora/.ssh`)).toBe(
        `${KEY}\ndora:dora 600\ndora:dora 700`,
      );
      expect(await orch.differences()).toEqual([]);
      expect(await orch.differences('drift')).toEqual([]);
      await run(`usermod -c Other -aG video dora && gpasswd -d dora adm && usermod -p '!' dora`);
      await run(`printf '# mine\n%s\n' '${OTHER}' >${keys}`);
      expect(await orch.differences('drift')).toEqual([
        ['dora', 'update', 'append_groups,comment,password_hash,authorized_keys'],
      ]);
      expect(failures(await orch.apply())).toEqual({});
      expect(await groupsOf('dora')).toBe('adm dora video');
      expect(await run('getent shadow dora | cut -d: -f2')).toBe(HASH);
      expect(await run(`cat ${keys}`)).toBe(`# mine\n${OTHER}\n${KEY}`);
      expect(await orch.differences()).toEqual([]);
    });

    it('are the only keys where they are exclusive', async () => {
      expect(
        await orch.appliedAsPlanned(user({ ...DETAILED, authorized_keys: { keys: [KEY], exclusive: true } })),
      ).toEqual([['dora', 'update', 'authorized_keys']]);
      expect(await run(`cat ${keys}`)).toBe(KEY);
      expect(await orch.differences()).toEqual([]);
    });

    it('are single keys, each of which goes alone, in a file that others may change too', async () => {
      const key = (line: string) => entry('authorized-key-unix', { user: 'dora', key: line });
      const plain = { name: 'dora' };
      const second = OTHER.replace('by hand', 'second');
      await orch.declare(user(plain), key(`no-pty ${KEY}`), key(second), entry('user-unix', { name: 'eva' }), {
        resource: { 'authorized-key-unix': { user: 'eva', key: KEY } },
      });
      const planned = await orch.differences();
      expect(planned.map(([, action, fields]) => `${action} ${fields}`)).toEqual([
        'update key',
        'create key',
        'create ',
        'create key',
      ]);
      const applied = await orch.apply();
      expect(failures(applied)).toEqual({});
      const done = applied.filter(({ status }) => status === 'changed');
      expect(done.map(({ identity, action }) => [identity, action])).toEqual(
        planned.map(([identity, action]) => [identity, action]),
      );
      expect(await run(`cat ${keys} /home/eva/.ssh/authorized_keys`)).toBe(`no-pty ${KEY}\n${second}\n${KEY}`);
      expect(await orch.differences()).toEqual([]);
      await run(`echo '# mine' >>${keys}; sed -i s/no-pty/no-user-rc/ ${keys}`);
      expect((await orch.differences('drift')).map(([, action, fields]) => `${action} ${fields}`)).toEqual([
        'update key',
      ]);
      expect(failures(await orch.apply())).toEqual({});
      await orch.declare(user(plain), absent('authorized-key-unix', { user: 'eva', key: KEY }), user({ name: 'eva' }));
      expect((await orch.differences()).map(([, action]) => action)).toEqual(['remove', 'remove', 'release']);
      expect(failures(await orch.apply())).toEqual({});
      // The first key was there before its resource, so it stays.
      expect(await run(`cat ${keys} /home/eva/.ssh/authorized_keys`)).toBe(`no-pty ${KEY}\n# mine`);
      expect(await orch.differences()).toEqual([]);
    });

    it('are added by an ordinary user to the own file alone', async () => {
      const hers = new LocalOrch(host, '/home/dora/site.orch.yaml', 'dora');
      const third = OTHER.replace('by hand', 'third');
      await hers.declare(...['dora', 'eva'].map((name) => entry('authorized-key-unix', { user: name, key: third })));
      const refused = failures(await hers.apply());
      expect(Object.values(refused)).toEqual([expect.stringMatching(/^permission_denied: /)]);
      expect(Object.keys(refused)[0]).toContain('eva');
      expect(await run(`tail -n 1 ${keys}; grep -c third /home/eva/.ssh/authorized_keys || true`)).toBe(`${third}\n0`);
      await run(`sed -i /third/d ${keys}`);
    });

    it('are refused where sshd would not trust them, and no link of the user is followed', async () => {
      const refusal = async () => Object.values(failures(await orch.apply()))[0];
      await orch.declare(entry('authorized-key-unix', { user: 'dora', key: OTHER }));
      await run(`mv ${keys} /home/dora/kept; runuser -u dora -- ln -s /etc/shadow ${keys}`);
      expect(await refusal()).toBe(`wrong_type: ${keys} is a symlink, not a file, and sshd's keys are only in one`);
      await run(`rm ${keys}; printf 'a\\377b\\n' >${keys}; chown dora: ${keys}`);
      expect(await refusal()).toBe(`wrong_type: ${keys} is no text that orch can change`);
      await run(`head -c 1100000 /dev/zero | tr '\\0' '\\n' >${keys}`);
      expect(await refusal()).toContain(`wrong_type: ${keys} is no text that orch can change`);
      expect(await run(`stat -c %s ${keys}`)).toBe('1100000');
      await run('rm -r /home/dora/.ssh; runuser -u dora -- ln -s /root /home/dora/.ssh');
      expect(await refusal()).toContain('/home/dora/.ssh');
      expect(await run('ls -A /root/.ssh 2>/dev/null; ls -A /root | grep authorized; true')).toBe('');
      await run('rm /home/dora/.ssh; chmod 777 /home/dora');
      expect(await refusal()).toBe(
        'unsafe_path: /home/dora can be written by other users (chmod go-w), so sshd trusts no keys there and orch adds none',
      );
      await run('chmod 755 /home/dora');
      await orch.declare(entry('authorized-key-unix', { user: 'nemo', key: OTHER }));
      expect(await refusal()).toBe('unknown_owner: there is no user "nemo" on this machine');
    });
  });
});
