/** Checks of files on a booted Debian before they count: on a copy, or in their places, with the old ones back when they fail. */
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { until } from '../support/orch.js';
import { type Fleet, startFleet } from './fleet.js';
import type { BootedHost } from './host.js';
import { type Body, type Entry, entry, failures, LocalOrch, sh } from './local-orch.js';
import { describeHosts } from './requirements.js';

/** Accepts a file that says "good", and notes how it found it. */
const COPY =
  '#!/bin/sh\nstat -c "%U:%G %a" "$1" >>/tmp/seen\necho "$1" >>/tmp/names\ngrep -q good "$1" && exit\necho "line 1 of $1 is bad" >&2\nexit 3\n';
/** Accepts a directory of files in which each "use NAME" has its "def NAME". */
const WHOLE = `#!/bin/sh
echo ran >>/tmp/ran
all=$(find -L "$1" -type f -exec cat {} +)
for name in $(echo "$all" | sed -n 's/^use //p'); do echo "$all" | grep -qx "def $name" || { echo "no $name" >&2; exit 1; }; done
while test -e /tmp/wait; do sleep 0.1; done
`;
const DIR = '/etc/app';
const file = (name: string, content: string, body: Body = {}, more: Omit<Entry, 'resource'> = {}) =>
  entry('file-unix', { path: name.startsWith('/') ? name : `${DIR}/${name}`, content, ...body }, more);
const copied = { validate: 'check-copy %s' };
const whole = { validate: `check-whole ${DIR}` };
const note = (...ids: readonly string[]) =>
  entry('script', { program: 'sh', manages: 'note', check: 'true', apply: 'echo told >>/tmp/told', rerun_on: ids });

describeHosts('checks of files on a booted machine', () => {
  let fleet: Fleet;
  let host: BootedHost;
  let orch: LocalOrch;
  const run = (script: string) => sh(host, script);
  const look = () =>
    run(
      `cd ${DIR} && find . | sort | while read f; do stat -c '%n %U %G %a' $f; test ! -f $f || cat $f; test -L $f || stat -c %Y $f; done`,
    );
  const isClean = async () =>
    expect(await run(`ls -A ${DIR} | grep -c orch- || true; ls -d /run/orch-* 2>/dev/null | wc -l`)).toBe('0\n0');

  beforeAll(async () => {
    fleet = await startFleet({ hosts: ['checks'] });
    host = fleet.host('checks');
    orch = new LocalOrch(host, '/root/site.orch.yaml');
    await host.writeFile('/usr/local/bin/check-copy', COPY, '0755');
    await host.writeFile('/usr/local/bin/check-whole', WHOLE, '0755');
    await run('useradd -m eve');
  });

  afterAll(async () => {
    await fleet?.stop();
  });

  beforeEach(async () => {
    await run(
      `rm -rf /root/.local /var/lib/orch-local ${DIR} /tmp/seen /tmp/names /tmp/ran /tmp/told /tmp/wait && mkdir ${DIR}`,
    );
  });

  it('on a copy keep a bad content out, with their output, and let a good one in', async () => {
    await run(`echo old >${DIR}/a && chown eve:daemon ${DIR}/a && chmod 640 ${DIR}/a`);
    const before = await look();
    const bad = [
      file('a', 'wrong\n', copied, { id: 'a' }),
      file('b', 'depends\n', {}, { depends_on: ['a'] }),
      file('deep/er/c', 'wrong\n', { validate: 'check-copy %s' }),
      note('a'),
    ];
    await orch.declare(...bad);
    expect((await orch.differences()).map(([identity, action]) => `${identity} ${action}`)).toEqual([
      `${DIR}/a update`,
      `${DIR}/b create`,
      `${DIR}/deep/er/c create`,
      'note run',
    ]);
    const found = failures(await orch.apply());
    expect(found[`${DIR}/a`]).toMatch(
      /^command_failed: \/etc\/app\/a is as before, because validate failed: check-copy ended with status 3: line 1 of \/run\/orch-\S+\/a is bad$/,
    );
    expect(found[`${DIR}/b`]).toMatch(/^dependency_failed: /);
    expect(found[`${DIR}/deep/er/c`]).toMatch(/^command_failed: .*line 1 of .*\/c is bad$/);
    expect(await look()).toBe(before);
    expect(await run('ls /tmp/told 2>&1 || true')).toContain('No such file');
    await isClean();
    expect(
      await orch.applied(
        file('a', 'good\n', copied, { id: 'a' }),
        file('b', 'x\n', {}, { depends_on: ['a'] }),
        note('a'),
      ),
    ).toEqual({});
    expect(await run(`cat ${DIR}/a ${DIR}/b /tmp/told; stat -c '%U:%G %a' ${DIR}/a; tail -1 /tmp/seen`)).toBe(
      'good\nx\ntold\neve:daemon 640\neve:daemon 640',
    );
    const looks = await run('wc -l </tmp/seen');
    await orch.isSettled();
    expect(await run('wc -l </tmp/seen')).toBe(looks);
    await run(`echo mine >${DIR}/a`);
    expect(await orch.differences('drift')).toEqual([[`${DIR}/a`, 'update', 'content']]);
    expect(failures(await orch.apply())).toEqual({});
    await isClean();
  });

  it('on a copy get no name that a shell would run', async () => {
    const path = `${DIR}/$(touch pwned);'x.conf`;
    expect(
      await orch.applied(file(path, 'good\n', { validate: "sh -c 'cd /tmp; check-copy %s'", mode: '0600' })),
    ).toEqual({});
    expect(await run('ls /tmp/pwned 2>&1 || true; sed "s/.*orch-[^/]*//" /tmp/names; cat /tmp/seen')).toBe(
      "ls: cannot access '/tmp/pwned': No such file or directory\n/__touch_pwned___x.conf\nroot:root 600",
    );
  });

  it('fail where the program is missing', async () => {
    expect(
      await orch.applied(
        file('a', 'x', { validate: 'no-such-program %s' }),
        file('b', 'x', { validate: 'no-such-program' }),
      ),
    ).toEqual({
      [`${DIR}/a`]: `command_missing: ${DIR}/a is as before, because validate failed: no-such-program is not installed on this machine`,
      [`${DIR}/b`]: `command_missing: ${DIR}/b is as before, because validate failed: no-such-program is not installed on this machine`,
    });
    expect(await run(`ls ${DIR}`)).toBe('');
  });

  it('in their places run once for all files, also for those that need each other', async () => {
    const set = [
      file('main', 'use one\nuse two\n', whole, { id: 'main' }),
      file('sub/one', 'def nothing\n', {}),
      file('one', 'def one\nuse two\n', whole, { id: 'one', depends_on: ['main'] }),
      file('two', 'def two\n', whole, { depends_on: ['one'] }),
      note('main', 'one'),
    ];
    await orch.declare(...set);
    const planned = (await orch.differences()).map(([identity, action]) => `${identity} ${action}`).sort();
    const done = await orch.apply();
    expect(failures(done)).toEqual({});
    expect(done.map(({ identity, action }) => `${identity} ${action}`).sort()).toEqual(planned);
    expect(await run('cat /tmp/ran /tmp/told')).toBe('ran\ntold');
    await orch.isSettled();
    await run(`rm ${DIR}/two; sed -i s/two/three/ ${DIR}/one`);
    expect(await orch.differences('drift')).toHaveLength(2);
    expect(failures(await orch.apply())).toEqual({});
    expect(await run('cat /tmp/ran /tmp/told')).toBe('ran\nran\ntold\ntold');
    await orch.isSettled();
    await isClean();
  });

  it('in their places run for each step of the order where others come between the files', async () => {
    expect(
      await orch.applied(
        file('one', 'def one\n', whole, { id: 'one' }),
        file('between', 'x\n', {}, { id: 'between', depends_on: ['one'] }),
        file('two', 'use one\n', whole, { depends_on: ['between'] }),
      ),
    ).toEqual({});
    expect(await run('cat /tmp/ran')).toBe('ran\nran');
    await orch.isSettled();
  });

  it('in their places bring everything back when they fail: contents, owners, modes, links, times and absence', async () => {
    await run(
      `cd ${DIR} && echo 'def one' >one && chown eve:daemon one && chmod 640 one && touch -d 2020-01-01 one && ln -s one link && touch -d 2020-01-01 .`,
    );
    const before = await look();
    const bad = [
      file('one', 'def other\n', { ...whole, owner: 'root', mode: '0600' }, { id: 'one' }),
      file('link', 'use one\n', whole),
      file('new/dir/two', 'x\n', whole),
      file('apart', 'x\n', {}),
      file('last', 'x\n', {}, { depends_on: ['one'] }),
      note('one'),
    ];
    const failure = (name: string) =>
      `command_failed: ${DIR}/${name} is as before, because validate failed: check-whole ended with status 1: no one`;
    expect(await orch.applied(...bad)).toEqual({
      [`${DIR}/one`]: failure('one'),
      [`${DIR}/link`]: failure('link'),
      [`${DIR}/new/dir/two`]: failure('new/dir/two'),
      [`${DIR}/last`]: expect.stringMatching(/^dependency_failed: /),
      note: expect.stringMatching(/^dependency_failed: /),
    });
    await run(`rm ${DIR}/apart && touch -d 2020-01-01 ${DIR}`);
    expect(await look()).toBe(before);
    expect(await run('cat /tmp/ran; ls /tmp/told 2>&1 || true')).toMatch(/^ran\n.*No such file/);
    await isClean();
  });

  it('in their places bring the others back when one file cannot be written', async () => {
    await run(`mkdir ${DIR}/full && mount -t tmpfs -o size=64k none ${DIR}/full`);
    try {
      expect(await orch.applied(file('one', 'def one\n', whole), file('full/two', 'x'.repeat(100_000), whole))).toEqual(
        {
          [`${DIR}/one`]: `dependency_failed: ${DIR}/one is as before, because ${DIR}/full/two, which is checked together with it, failed`,
          [`${DIR}/full/two`]: expect.stringMatching(/^disk_full: /),
        },
      );
      expect(await run(`ls ${DIR} ${DIR}/full; ls /tmp/ran 2>&1 || true`)).toContain(
        `${DIR}:\nfull\n\n${DIR}/full:\nls:`,
      );
    } finally {
      await run(`umount ${DIR}/full`);
    }
  });

  it('in their places run again when the apply was killed in the middle of them', async () => {
    await orch.declare(file('one', 'def one\n', whole));
    await run('touch /tmp/wait');
    const killed = await host.spawn(['orch', 'apply', '--local', '-f', '/root/site.orch.yaml', '--yes']);
    await until(async () => (await run('cat /tmp/ran 2>/dev/null || true')) === 'ran', 'the check runs');
    killed.kill('SIGKILL');
    await killed.ended;
    await run('rm /tmp/wait');
    expect(await run(`cat ${DIR}/one`)).toBe('def one');
    const [result] = await orch.results('plan');
    expect([result?.action, result?.reason]).toEqual(['update', 'its check has not succeeded']);
    expect(failures(await orch.apply())).toEqual({});
    expect(await run('cat /tmp/ran')).toBe('ran\nran');
    await orch.isSettled();
  });

  it('run for an ordinary user in files of that user', async () => {
    const eve = new LocalOrch(host, '/home/eve/site.orch.yaml', 'eve');
    await run('install -d -o eve /home/eve/app; rm -f /tmp/seen /tmp/names /tmp/ran');
    const own = { validate: 'check-whole /home/eve/app' };
    await eve.declare(
      file('/home/eve/app/one', 'use two\n', own),
      file('/home/eve/app/copy', 'bad\n', copied),
      file('/home/eve/good', 'good\n', copied),
    );
    const found = failures(await eve.apply());
    expect(Object.keys(found).sort()).toEqual(['/home/eve/app/copy', '/home/eve/app/one']);
    expect(found['/home/eve/app/one']).toContain('check-whole ended with status 1: no two');
    expect(await run('ls /home/eve/app; stat -c %U /home/eve/good; cat /tmp/seen')).toBe(
      'eve\neve:eve 644\neve:eve 644',
    );
    await run('rm -f /tmp/seen /tmp/names /tmp/ran');
    await eve.declare(file('/home/eve/app/one', 'use two\n', own), file('/home/eve/app/two', 'def two\n', own));
    expect(failures(await eve.apply())).toEqual({});
    expect(await eve.differences()).toEqual([]);
    await run('rm -f /tmp/ran');
  });
});
