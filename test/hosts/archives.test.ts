/** Archives on a booted Debian: unpacked, repaired, replaced by another and removed, and hostile ones refused. */
import { createHash } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { type TarEntry, tarGzOf, tarOf, zipOf } from '../support/archives.js';
import { type Fleet, startFleet } from './fleet.js';
import type { BootedHost } from './host.js';
import { type Body, type Entry, entry, failures, LocalOrch, sh } from './local-orch.js';
import { describeHosts } from './requirements.js';

const APP = '/srv/app/tool';
const file = (name: string, content: string, more: Partial<TarEntry> = {}): TarEntry => ({ name, content, ...more });
const FIRST = tarGzOf(
  file('tool-1/bin/tool', '#!/bin/sh\necho one\n', { mode: 0o6755 }),
  file('tool-1/conf', 'one\n', { mode: 0o666 }),
  file('tool-1/old/file', 'old\n'),
  { name: 'tool-1/tool', type: 'SymbolicLink', target: 'bin/tool' },
);
const SECOND = tarGzOf(file('tool-2/bin/tool', '#!/bin/sh\necho two\n', { mode: 0o755 }), file('tool-2/conf', 'two\n'));
const other = entry('file-unix', { path: '/srv/other', content: '' });

describeHosts('archives on a booted machine', () => {
  let fleet: Fleet;
  let host: BootedHost;
  let orch: LocalOrch;
  let server: Server;
  let port = 0;
  /** What the server has, by name. */
  const served = new Map<string, Buffer>();
  const run = (script: string) => sh(host, script);

  /** An archive at an address. */
  const archive = (name: string, bytes: Buffer, body: Body = {}, more: Omit<Entry, 'resource'> = {}) => {
    served.set(`/${name}`, bytes);
    const sha256 = createHash('sha256').update(bytes).digest('hex');
    const url = `http://${fleet.gateway}:${port}/${name}`;
    return entry('archive-unix', { path: APP, url, sha256, strip: 1, ...body }, more);
  };
  const first = (body: Body = {}) => archive('tool-1.tar.gz', FIRST, body, { id: 'tool' });
  const second = (body: Body = {}) => archive('tool-2.tar.gz', SECOND, body, { id: 'tool' });
  const applied = async (...entries: readonly Entry[]) => {
    await orch.declare(...entries);
    return failures(await orch.apply());
  };
  const isSettled = async () => {
    expect(await orch.differences()).toEqual([]);
    expect(await orch.differences('drift')).toEqual([]);
  };
  /** Applies, and expects what the plan has said. */
  const actionsOf = async (...entries: readonly Entry[]) => {
    await orch.declare(...entries);
    const planned = (await orch.results('plan')).map(({ identity, action }) => `${identity} ${action}`).sort();
    const results = await orch.apply();
    expect(failures(results)).toEqual({});
    expect(results.map(({ identity, action }) => `${identity} ${action}`).sort()).toEqual(planned);
    return planned;
  };
  const tree = (path = '/srv/app') =>
    run(`cd ${path} && find . -mindepth 1 -printf '%P %M %u %l\\n' | sort | sed 's/ $//'`);

  beforeAll(async () => {
    server = createServer((request, response) => {
      if (request.url === '/moved.zip') return response.writeHead(302, { Location: 'https://127.0.0.1/x.zip' }).end();
      const bytes = served.get(request.url ?? '');
      return bytes === undefined ? response.writeHead(404).end() : response.end(bytes);
    });
    await new Promise<void>((resolve) => void server.listen(0, '0.0.0.0', resolve));
    const address = server.address();
    port = typeof address === 'object' ? (address?.port ?? 0) : 0;
    fleet = await startFleet({ hosts: ['archives'] });
    host = fleet.host('archives');
    orch = new LocalOrch(host, '/root/site.orch.yaml');
    await run('useradd -m eve; useradd -m tool');
  });

  afterAll(async () => {
    await fleet?.stop();
    server?.close();
  });

  beforeEach(async () => {
    await run('rm -rf /root/.local /var/lib/orch-local /srv/app /srv/other /root/files');
  });

  it('are unpacked, repaired after a change by hand, fire triggers, and go', async () => {
    const note = entry('script', {
      program: 'sh',
      manages: 'note',
      check: 'true',
      apply: 'echo told >>/srv/told',
      rerun_on: ['tool'],
    });
    const all = [first(), note, other];
    expect(await actionsOf(...all)).toEqual([`${APP} create`, '/srv/other create', 'note run']);
    expect(await tree(APP)).toBe(
      [
        'bin drwxr-xr-x root',
        'bin/tool -rwxr-xr-x root',
        'conf -rw-r--r-- root',
        'old drwxr-xr-x root',
        'old/file -rw-r--r-- root',
        'tool lrwxrwxrwx root bin/tool',
      ].join('\n'),
    );
    expect(await run(`${APP}/tool; cat /srv/told; rm /srv/told`)).toBe('one\ntold');
    expect(await actionsOf(...all)).toEqual([`${APP} none`, '/srv/other none', 'note none']);
    await isSettled();
    for (const [spoil, how] of [
      [`echo evil >${APP}/bin/tool`, 'bin/tool has changed'],
      [`rm ${APP}/conf`, 'conf is missing'],
      [`chmod u+s ${APP}/bin/tool`, 'bin/tool has another mode'],
      [`ln -sf /etc/passwd ${APP}/tool`, 'tool has changed'],
      [`rm ${APP}/conf && ln -s /etc/passwd ${APP}/conf`, 'conf has changed'],
      [`chmod 777 ${APP}/old`, 'old has another mode'],
    ] as const) {
      await run(spoil);
      const [found] = (await orch.results('drift')).filter(({ status }) => status !== 'unchanged');
      expect(found?.changes, spoil).toEqual([{ field: 'files', before: how, after: 'as in the archive' }]);
      expect(await actionsOf(...all)).toEqual([`${APP} update`, '/srv/other none', 'note run']);
      await isSettled();
    }
    expect(await run(`${APP}/tool; cat ${APP}/conf; stat -c %a ${APP}/bin/tool`)).toBe('one\none\n755');
    await run(`echo mine >${APP}/mine; echo by hand >${APP}/conf`);
    expect(await actionsOf(other)).toContain(`${APP} remove`);
    expect(await tree()).toBe('tool drwxr-xr-x root\ntool/conf -rw-r--r-- root\ntool/mine -rw-r--r-- root');
    await run(`rm -r ${APP}`);
    expect(await applied(first(), other)).toEqual({});
    expect(await actionsOf(other)).toContain(`${APP} remove`);
    expect(await run('ls -A /srv/app 2>&1 || true')).toMatch(/No such file|^$/);
  });

  it('are replaced by a new version, which removes what it lacks, beside foreign files', async () => {
    expect(await applied(first(), other)).toEqual({});
    await run(`echo mine >${APP}/old/mine; cp ${APP}/old/file ${APP}/mine`);
    await orch.declare(second(), other);
    const [planned] = await orch.differences();
    expect(planned).toEqual([APP, 'update', 'archive']);
    expect(await actionsOf(second(), other)).toContain(`${APP} update`);
    expect(await tree(APP)).toBe(
      [
        'bin drwxr-xr-x root',
        'bin/tool -rwxr-xr-x root',
        'conf -rw-r--r-- root',
        'mine -rw-r--r-- root',
        'old drwxr-xr-x root',
        'old/mine -rw-r--r-- root',
      ].join('\n'),
    );
    expect(await run(`${APP}/bin/tool`)).toBe('two');
    await isSettled();
    expect(await actionsOf(second({ owner: 'tool', group: 'tool' }), other)).toContain(`${APP} update`);
    expect(await run(`stat -c %U:%G ${APP} ${APP}/bin ${APP}/bin/tool ${APP}/mine`)).toBe(
      'tool:tool\ntool:tool\ntool:tool\nroot:root',
    );
    await isSettled();
  });

  it('leave foreign files in their way, and those that another resource declares', async () => {
    await run(`mkdir -p ${APP} && echo precious >${APP}/conf`);
    expect(await applied(first())).toEqual({
      [APP]: `wrong_type: ${APP}/conf is there already, and was not unpacked here; move it away, or set "replace: true". Nothing was changed`,
    });
    expect(await tree(APP)).toBe('conf -rw-r--r-- root');
    const own = entry('file-unix', { path: `${APP}/conf`, content: 'declared\n' }, { depends_on: ['tool'] });
    expect(await applied(first({ replace: true }), own)).toEqual({});
    expect(await run(`cat ${APP}/conf`)).toBe('declared');
    await isSettled();
    expect(await actionsOf(second(), own)).toEqual([`${APP} update`, `${APP}/conf none`]);
    expect(await run(`cat ${APP}/conf`)).toBe('declared');
    await isSettled();
    const alone = entry('file-unix', { path: `${APP}/conf`, content: 'declared\n' });
    expect(await actionsOf(alone)).toEqual([`${APP} remove`, `${APP}/conf none`]);
    expect(await tree(APP)).toBe('conf -rw-r--r-- root');
  });

  it('come from files beside the module, as tar, zip and with programs of the machine', async () => {
    const plain = tarOf(file('a/tool', 'tar'));
    await host.writeFile('/root/plain.tar', plain);
    await host.writeFile('/root/plain.zip', zipOf({ name: 'a/tool', content: 'zip', mode: 0o100755 }));
    await run('cd /root && xz -k plain.tar && bzip2 -k plain.tar || true; rm -f /usr/bin/zstd');
    for (const name of ['plain.tar', 'plain.zip', 'plain.tar.xz', 'plain.tar.bz2']) {
      if ((await run(`ls /root/${name} 2>/dev/null || true`)) === '') continue;
      expect(await applied(entry('archive-unix', { path: APP, source: name, strip: 1 })), name).toEqual({});
      expect(await run(`cat ${APP}/tool`)).toBe(name.endsWith('zip') ? 'zip' : 'tar');
      await isSettled();
    }
    const before = await tree(APP);
    await run('cp /root/plain.tar /root/plain.tar.zst');
    expect(await applied(entry('archive-unix', { path: APP, source: 'plain.tar.zst' }))).toEqual({
      [APP]:
        'command_missing: zstd is needed to unpack the archive, and is not installed; declare its package before it',
    });
    expect(await tree(APP)).toBe(before);
  });

  it('are refused as a whole when they are hostile, or do not come', async () => {
    await run('mkdir -p /srv/app && echo safe >/srv/app/safe');
    const good = file('a/good', 'good');
    const hostile: readonly (readonly [string, Buffer, RegExp])[] = [
      [
        'up.tar',
        tarOf(good, file('a/../../../etc/evil', 'x')),
        /the name "a\/\.\.\/\.\.\/\.\.\/etc\/evil" leads upwards/,
      ],
      ['abs.tar', tarOf(good, file('/etc/evil', 'x')), /the name "\/etc\/evil" is absolute/],
      [
        'link.tar',
        tarOf(good, { name: 'a/l', type: 'SymbolicLink', target: '../..' }, file('a/l/evil', 'x')),
        /the link "a\/l" to "\.\.\/\.\." leads out of the directory/,
      ],
      ['dev.tar', tarOf(good, { name: 'a/d', type: 'BlockDevice' }), /"a\/d" is a block device/],
      ['hard.tar', tarOf(good, { name: 'a/h', type: 'Link', target: '/etc/shadow' }), /"\/etc\/shadow" is absolute/],
      ['twice.tar', tarOf(good, good), /it has two entries for "good"/],
      [
        'bomb.tar.gz',
        tarGzOf(good, { name: 'a/b', content: Buffer.alloc(66 * 1024 ** 2) }),
        /far more than its own size/,
      ],
      ['crypt.zip', zipOf({ name: 'a/b', content: 'x', flags: 1 }), /"a\/b" is encrypted/],
      ['cut.tar.gz', FIRST.subarray(0, FIRST.length - 30), /it is no tar.gz that can be read: unexpected end of file/],
    ];
    for (const [name, bytes, message] of hostile) {
      const failed = await applied(archive(name, bytes));
      expect(failed[APP], name).toMatch(/^archive_refused: http.* is refused: .*; nothing was changed$/);
      expect(failed[APP], name).toMatch(message);
      expect(await run('ls -A /srv/app; ls /etc/evil 2>/dev/null || true')).toBe('safe');
    }
    const wrong = archive('wrong.zip', zipOf({ name: 'a/b' }), { sha256: '0'.repeat(64) });
    const moved = entry('archive-unix', {
      path: APP,
      url: `http://${fleet.gateway}:${port}/moved.zip`,
      sha256: '0'.repeat(64),
    });
    for (const [one, why] of [
      [wrong, 'what has come has another SHA-256'],
      [moved, 'redirects from http:// to https://'],
    ] as const) {
      await orch.declare(one);
      const { stdout, stderr, status } = await orch.run('apply', '--yes');
      expect(status).not.toBe(0);
      expect(`${stdout}${stderr}`).toContain(why);
    }
    expect(await run('ls -A /srv/app')).toBe('safe');
  });

  it('are not led astray by other users, and belong to the owner of their directory', async () => {
    await run(
      'mkdir -p /srv/app && mkdir /home/eve/tool && chown eve: /home/eve/tool && rm -rf /etc/victim && mkdir /etc/victim',
    );
    const path = '/home/eve/tool';
    expect((await applied(first({ path })))[path]).toMatch(
      /^unsafe_path: \/home\/eve\/tool belongs to eve, so what is unpacked there has to belong to eve too/,
    );
    await run(`ln -s /etc/victim ${path}/bin && chown -h eve: ${path}/bin`);
    expect((await applied(first({ path, owner: 'eve' })))[path]).toBe(
      `wrong_type: ${path}/bin is a link; move it away. Nothing was changed`,
    );
    await run(`rm ${path}/bin`);
    expect(await applied(first({ path, owner: 'eve', group: 'eve' }))).toEqual({});
    expect(await run(`stat -c '%U %a' ${path}/bin ${path}/bin/tool`)).toBe('eve 755\neve 755');
    await isSettled();
    await run(`mv ${path}/bin ${path}/away && ln -s /etc/victim ${path}/bin && echo x >/etc/victim/tool`);
    expect(await orch.differences('drift')).toEqual([[path, 'update', 'files']]);
    expect(await applied(other)).toEqual({});
    expect(await run('cat /etc/victim/tool; rm -r /etc/victim')).toBe('x');
  });

  it('are unpacked by an unprivileged agent into its own directories only', async () => {
    const eve = new LocalOrch(host, '/home/eve/site.orch.yaml', 'eve');
    const path = '/home/eve/own/tool';
    await run('rm -rf /home/eve/own && mkdir -p /srv/app');
    await eve.declare(archive('tool-1.tar.gz', FIRST, { path }), first());
    expect(failures(await eve.apply())).toEqual({ [APP]: expect.stringMatching(/^permission_denied: /) });
    expect(await run(`stat -c '%U %a' ${path}/bin/tool; ${path}/tool; ls -A /srv/app`)).toBe('eve 755\none');
    expect((await eve.differences()).map(([identity]) => identity)).toEqual([APP]);
    await eve.declare(entry('file-unix', { path: '/home/eve/own/other', content: '' }));
    expect(failures(await eve.apply())).toEqual({});
    expect(await run('ls -A /home/eve/own')).toBe('other');
  });

  it('go on after a run that was killed in the middle', async () => {
    expect(await applied(first(), other)).toEqual({});
    const record = await run('ls /var/lib/orch-local/unpacked/*.json');
    await run(`sed -i 's/"isComplete":true/"isComplete":false/' ${record} && rm ${APP}/conf`);
    await orch.declare(second(), other);
    expect(await orch.differences()).toEqual([[APP, 'update', 'archive,files']]);
    expect(await actionsOf(second(), other)).toContain(`${APP} update`);
    await isSettled();
    await run('rm -r /var/lib/orch-local/unpacked');
    expect(await orch.differences()).toEqual([[APP, 'create', 'archive']]);
    expect(await applied(second(), other)).toEqual({});
    await isSettled();
    await run(`echo broken >${record.replace(/\s/g, '')}`);
    expect((await applied(second(), other))[APP]).toMatch(/^observe_failed: .* cannot be read: /);
  });
});
