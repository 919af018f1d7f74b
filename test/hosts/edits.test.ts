/** Lines, blocks and settings in files of a booted Debian: nothing else changes, several compose, and only they are removed. */
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { type Fleet, startFleet } from './fleet.js';
import type { BootedHost } from './host.js';
import { absent, type Body, type Entry, entry, failures, LocalOrch, sh } from './local-orch.js';
import { describeHosts } from './requirements.js';

const CONF = '/etc/app/conf';
const line = (body: Body, more: Omit<Entry, 'resource'> = {}) => entry('line-unix', { path: CONF, ...body }, more);
const block = (body: Body) => entry('block-unix', { path: CONF, ...body });
const setting = (body: Body) => entry('setting-unix', { path: CONF, ...body });

describeHosts('parts of files on a booted machine', () => {
  let fleet: Fleet;
  let host: BootedHost;
  let orch: LocalOrch;
  const run = (script: string) => sh(host, script);
  const write = (text: string, path = CONF) => host.writeFile(path, text);
  const content = (path = CONF) => run(`cat ${path}; printf .`);

  beforeAll(async () => {
    fleet = await startFleet({ hosts: ['edits'] });
    host = fleet.host('edits');
    orch = new LocalOrch(host, '/root/site.orch.yaml');
    await run('useradd -m eve && mkdir /etc/app');
  });

  afterAll(async () => {
    await fleet?.stop();
  });

  beforeEach(async () => {
    await run('rm -rf /root/.local /var/lib/orch-local /etc/app && mkdir /etc/app');
  });

  const all = () => [
    line({ line: 'first' }),
    line({ line: 'Port 2222', match: '^#?Port ' }),
    line({ line: 'behind first', after: '^first$' }),
    block({ name: 'limits', content: 'a\nb\n', comment: ';' }),
    setting({ format: 'ini', section: 'main', key: 'workers', value: 4 }),
    setting({ format: 'ini', section: 'new', key: 'on', value: true }),
    line({ line: 'last' }),
  ];

  it('compose in one apply as the plan says, keep owner, mode, access list and every other byte, and are made once', async () => {
    await write('#Port 22\r\n[main]\r\nworkers = 1\r\n\r\n[other]\r\nx=1');
    await run(`chown eve:daemon ${CONF} && chmod 640 ${CONF} && setfacl -m u:daemon:r ${CONF} 2>/dev/null; true`);
    const before = await run(`stat -c '%U %G %a' ${CONF}; getfacl -p ${CONF} 2>/dev/null; true`);
    await orch.declare(...all());
    const planned = await orch.differences();
    expect(planned).toEqual([
      [`${CONF}: first`, 'create', 'line'],
      [`${CONF}: ^#?Port `, 'update', 'line'],
      [`${CONF}: behind first`, 'create', 'line'],
      [`${CONF}: limits`, 'create', 'content'],
      [`${CONF}: [main] workers`, 'update', 'value'],
      [`${CONF}: [new] on`, 'create', 'value'],
      [`${CONF}: last`, 'create', 'line'],
    ]);
    const results = await orch.apply();
    expect(failures(results)).toEqual({});
    expect(
      results.map(({ identity, action, changes }) => [identity, action, changes.map(({ field }) => field).join()]),
    ).toEqual(planned);
    expect(await content()).toBe(
      'Port 2222\r\n[main]\r\nworkers = 4\r\n\r\n[other]\r\nx=1\r\nfirst\r\nbehind first\r\n; BEGIN orch limits\r\na\r\nb\r\n; END orch limits\r\n\r\n[new]\r\non = true\r\nlast\r\n.',
    );
    expect(await run(`stat -c '%U %G %a' ${CONF}; getfacl -p ${CONF} 2>/dev/null; true`)).toBe(before);
    expect(await run(`ls -A /etc/app`)).toBe('conf');
    const inode = await run(`stat -c %i ${CONF}`);
    expect(failures(await orch.apply())).toEqual({});
    expect(await run(`stat -c %i ${CONF}`)).toBe(inode);
    await orch.isSettled();
  });

  it('are repaired after a change by hand, which stays as far as it is not theirs', async () => {
    await write('Port 22\n[main]\nworkers=1\n');
    expect(await orch.applied(...all())).toEqual({});
    await run(`sed -i -e 's/^workers=4/workers=9/' -e '/^b$/d' -e '/^last$/d' -e '1i mine' ${CONF}`);
    expect(await orch.differences('drift')).toEqual([
      [`${CONF}: limits`, 'update', 'content'],
      [`${CONF}: [main] workers`, 'update', 'value'],
      [`${CONF}: last`, 'create', 'line'],
    ]);
    expect(failures(await orch.apply())).toEqual({});
    expect(await content()).toMatch(/^mine\nPort 2222\n\[main\]\nworkers=4\nfirst\n/);
    await orch.isSettled();
  });

  it('take only themselves away, and leave what was there before them', async () => {
    const before = 'kept\nPort 22\n[main]\nworkers=1\n';
    await write(before);
    expect(await orch.applied(line({ line: 'kept' }), ...all())).toEqual({});
    await run(`echo mine >>${CONF}`);
    await orch.declare();
    await orch.declare(entry('file-unix', { path: '/etc/app/other', content: '' }));
    const results = await orch.apply();
    expect(failures(results)).toEqual({});
    const actions = Object.fromEntries(results.map(({ identity, action }) => [identity, action]));
    expect(actions).toMatchObject({
      [`${CONF}: kept`]: 'release',
      [`${CONF}: ^#?Port `]: 'release',
      [`${CONF}: [main] workers`]: 'release',
      [`${CONF}: first`]: 'remove',
      [`${CONF}: limits`]: 'remove',
      [`${CONF}: last`]: 'remove',
    });
    expect(await content()).toBe('kept\nPort 2222\n[main]\nworkers=4\n\n[new]\nmine\n.');
    await orch.isSettled();
  });

  it('are absent where the module says so, whoever put them there', async () => {
    await write('old\nkeep\nold\n# BEGIN orch gone\nx\n# END orch gone\nUse a\nUse b\nkey=1\n');
    const gone = [
      absent('line-unix', { path: CONF, line: 'old' }),
      absent('line-unix', { path: CONF, match: '^Use ' }),
      absent('block-unix', { path: CONF, name: 'gone' }),
      absent('setting-unix', { path: CONF, format: 'env', key: 'key' }),
    ];
    await orch.declare(...gone);
    expect((await orch.differences()).map(([, action]) => action)).toEqual(['remove', 'remove', 'remove', 'remove']);
    expect(failures(await orch.apply())).toEqual({});
    expect(await content()).toBe('keep\n.');
    await orch.isSettled();
    await run(`echo old >>${CONF}`);
    expect(await orch.differences('drift')).toEqual([[`${CONF}: old`, 'remove', '']]);
    await run(`rm ${CONF}`);
    await orch.isSettled();
  });

  it('come into a file of the same plan, and make one only where the module says so', async () => {
    expect(await orch.applied(line({ line: 'x' }))).toEqual({
      [`${CONF}: x`]: `file_missing: ${CONF} does not exist; "create: true" makes it, or declare what brings it before this`,
    });
    await orch.declare(
      entry('file-unix', { path: CONF, owner: 'eve', mode: '0600' }),
      line({ line: 'x' }),
      line({ line: 'y', path: '/etc/app/new/file', create: true }),
      setting({ path: '/etc/app/new/file', format: 'env', key: 'A', value: 'a b', create: true }),
    );
    const planned = await orch.differences();
    expect(planned.map(([identity, action]) => `${identity} ${action}`)).toEqual([
      `${CONF} create`,
      `${CONF}: x create`,
      '/etc/app/new/file: y create',
      '/etc/app/new/file: A create',
    ]);
    expect(failures(await orch.apply())).toEqual({});
    expect(
      await run(
        `cat ${CONF} /etc/app/new/file; stat -c '%U %a' ${CONF} /etc/app/new/file; . /etc/app/new/file 2>/dev/null || true`,
      ),
    ).toBe("x\ny\nA='a b'\neve 600\nroot 644");
    await orch.isSettled();
  });

  it('are checked on a copy or in place, each by itself, and leave the file as it was when they fail', async () => {
    await write('a\n');
    await run(`chmod 640 ${CONF}`);
    const check = { validate: `sh -c '! grep -n bad %s'` };
    const inPlace = { validate: `sh -c '! grep -n worse ${CONF}'` };
    const found = await orch.applied(
      line({ line: 'good', ...check }),
      line({ line: 'bad', ...check }),
      block({ name: 'b', content: 'worse\n', ...inPlace }),
      setting({ format: 'env', key: 'k', value: '1', ...inPlace }),
    );
    const failure = (text: string) =>
      `command_failed: ${CONF} is as before, because validate failed: sh ended with status 1: ${text}`;
    expect(found).toEqual({ [`${CONF}: bad`]: failure('3:bad'), [`${CONF}: b`]: failure('4:worse') });
    expect(await run(`cat ${CONF}; stat -c %a ${CONF}; ls -A /etc/app`)).toBe('a\ngood\nk=1\n640\nconf');
    expect(
      await orch.applied(
        line({ line: 'good', ...check }),
        setting({ format: 'env', key: 'k', value: '1', ...inPlace }),
      ),
    ).toEqual({});
    await orch.isSettled();
  });

  it('fire triggers once, and none when nothing changes', async () => {
    await write('a\n');
    const both = [
      line({ line: 'b' }, { id: 'b' }),
      line({ line: 'c' }, { id: 'c' }),
      entry('script', {
        program: 'sh',
        manages: 'note',
        check: 'true',
        apply: 'echo ran >>/etc/app/ran',
        rerun_on: ['b', 'c'],
      }),
    ];
    expect(await orch.applied(...both)).toEqual({});
    expect(await orch.applied(...both)).toEqual({});
    expect(await run('cat /etc/app/ran')).toBe('ran');
  });

  it('refuse links, binary, enormous and doubtful files, and say why', async () => {
    await write('secret\n', '/etc/app/target');
    await run(`ln -s target /etc/app/link; mkfifo /etc/app/pipe; printf 'a\\377b\\n' >/etc/app/binary; head -c 1100000 /dev/zero | tr '\\0' 'x' >/etc/app/big
      printf 'k=1\\nk=2\\n' >/etc/app/twice; printf '# BEGIN orch b\\n' >/etc/app/open; mkdir /etc/app/dir; head -c 1048570 /dev/zero | tr '\\0' '\\n' >/etc/app/full`);
    const found = await orch.applied(
      ...['link', 'pipe', 'binary', 'big', 'dir', 'full'].map((name) =>
        line({ path: `/etc/app/${name}`, line: 'a long line' }),
      ),
      setting({ path: '/etc/app/twice', format: 'env', key: 'k', value: '3' }),
      block({ path: '/etc/app/open', name: 'b', content: 'x' }),
      ...['link', 'pipe', 'binary', 'big'].flatMap((name) => [
        block({ path: `/etc/app/${name}`, name: 'b', content: 'x' }),
        setting({ path: `/etc/app/${name}`, format: 'env', key: 'k', value: '3' }),
      ]),
      line({ path: '/etc/app/twice', line: 'm', match: '^k' }),
      line({ path: '/etc/app/twice', line: 'n', after: '^nothing' }),
      line({ path: '/sys/kernel/mm/transparent_hugepage/enabled', line: 'x' }),
    );
    expect(Object.values(found).map((text) => text.split(';')[0])).toEqual([
      'wrong_type: /etc/app/link is a symlink to target, which is not followed',
      'wrong_type: /etc/app/pipe is a fifo, not a file',
      'content_unsuitable: /etc/app/binary is not text in UTF-8, so no part of it is changed',
      'content_unsuitable: /etc/app/big has 1100000 bytes, and a file is edited up to 1048576 bytes',
      'wrong_type: /etc/app/dir is a directory, not a file',
      'content_unsuitable: /etc/app/full would have more than 1048576 bytes, up to which a file is edited',
      'content_unsuitable: k stands on lines 1 and 2 of /etc/app/twice with several values',
      'content_unsuitable: the markers of the block "b" in /etc/app/open (line 1) are not one pair',
      ...[
        'wrong_type: /etc/app/link is a symlink to target, which is not followed',
        'wrong_type: /etc/app/pipe is a fifo, not a file',
        'content_unsuitable: /etc/app/binary is not text in UTF-8, so no part of it is changed',
        'content_unsuitable: /etc/app/big has 1100000 bytes, and a file is edited up to 1048576 bytes',
      ].flatMap((message) => [message, message]),
      'content_unsuitable: "match" (^k) finds lines 1 and 2 of /etc/app/twice',
      'content_unsuitable: no line of /etc/app/twice matches "after" (^nothing)',
      expect.stringMatching(/^(wrong_type: .* is a file of the kernel|file_missing: )/),
    ]);
    expect(await run('cat /etc/app/target /etc/app/twice; readlink /etc/app/link')).toBe('secret\nk=1\nk=2\ntarget');
  });

  it('belong to an ordinary user who applies them, who may change no file of others', async () => {
    const eve = new LocalOrch(host, '/home/eve/site.orch.yaml', 'eve');
    await host.writeFile('/home/eve/.profile', 'a=1\n');
    await run(`chown eve:eve /home/eve/.profile; chmod 600 /home/eve/.profile; echo x >${CONF}`);
    await eve.declare(
      setting({ path: '/home/eve/.profile', format: 'env', key: 'EDITOR', value: 'vi -e' }),
      block({ path: '/home/eve/.profile', name: 'paths', content: 'b=2\n' }),
      line({ line: 'y' }),
    );
    expect(failures(await eve.apply())).toEqual({
      [`${CONF}: y`]: expect.stringMatching(/^permission_denied: cannot write \/etc\/app\/conf: /),
    });
    expect(await run(`cat /home/eve/.profile ${CONF}; stat -c '%U %a' /home/eve/.profile`)).toBe(
      "a=1\nEDITOR='vi -e'\n# BEGIN orch paths\nb=2\n# END orch paths\nx\neve 600",
    );
  });
});
