/** Symbolic links of a booted Debian: made, repaired, replaced and removed, as root and as an ordinary user. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Fleet, startFleet } from './fleet.js';
import type { BootedHost } from './host.js';
import { absent, type Body, type Entry, entry, failures, LocalOrch, sh } from './local-orch.js';
import { describeHosts } from './requirements.js';

const link = (path: string, target: string, body: Body = {}, more: Omit<Entry, 'resource'> = {}) =>
  entry('symlink-unix', { path, target, ...body }, more);
const file = (path: string, body: Body = {}) => entry('file-unix', { path, ...body });

describeHosts('links on a booted machine', () => {
  let fleet: Fleet;
  let host: BootedHost;
  let orch: LocalOrch;
  const run = (script: string) => sh(host, script);

  beforeAll(async () => {
    fleet = await startFleet({ hosts: ['links'] });
    host = fleet.host('links');
    orch = new LocalOrch(host, '/root/site.orch.yaml');
    await run('useradd -m eve && mkdir -p /srv/app/releases/1 /srv/app/releases/2');
  });

  afterAll(async () => {
    await fleet?.stop();
  });

  const forget = () => run('rm -rf /root/.local /var/lib/orch-local');

  it('are made as the plan says, with the files behind them, and once', async () => {
    await orch.declare(
      link('/srv/app/current', 'releases/1', {}, { id: 'current' }),
      file('/srv/app/current/version', { content: '1\n' }),
      link('/srv/new/way/dangling', '/nowhere', { owner: 'eve' }),
      entry('script', {
        program: 'sh',
        manages: 'note',
        check: 'true',
        apply: 'echo moved >>/root/moved',
        rerun_on: ['current'],
      }),
    );
    const planned = await orch.differences();
    expect(planned).toEqual([
      ['/srv/app/current', 'create', 'target'],
      ['/srv/app/current/version', 'create', 'mode'],
      ['/srv/new/way/dangling', 'create', 'parents,target,owner'],
      ['note', 'run', ''],
    ]);
    const done = await orch.apply();
    expect(failures(done)).toEqual({});
    expect(done.map(({ identity, action }) => `${identity} ${action}`).sort()).toEqual(
      planned.map(([identity, action]) => `${identity} ${action}`).sort(),
    );
    expect(await run('readlink /srv/app/current /srv/new/way/dangling; stat -c %U:%G /srv/new/way/dangling')).toBe(
      'releases/1\n/nowhere\neve:root',
    );
    expect(await run('cat /srv/app/releases/1/version /root/moved')).toBe('1\nmoved');
    await orch.isSettled();
  });

  it('are repaired after a change by hand, and moved without a gap', async () => {
    await run('ln -sfn /tmp /srv/app/current && rm /srv/new/way/dangling');
    expect(await orch.differences('drift')).toEqual(
      expect.arrayContaining([
        ['/srv/app/current', 'update', 'target'],
        ['/srv/new/way/dangling', 'create', 'target,owner'],
      ]),
    );
    expect(
      await orch.applied(link('/srv/app/current', 'releases/2'), link('/srv/new/way/dangling', '/nowhere')),
    ).toEqual({});
    expect(await run('readlink /srv/app/current; ls -A /srv/app')).toBe('releases/2\ncurrent\nreleases');
    await orch.isSettled();
  });

  it('take the place of a file only where the module says so, and never that of a directory', async () => {
    await forget();
    await run('echo precious >/srv/app/file && mkdir -p /srv/app/directory');
    expect(await orch.applied(link('/srv/app/file', 'x'), link('/srv/app/directory', 'x', { replace: true }))).toEqual({
      '/srv/app/file': 'wrong_type: /srv/app/file is a file, not a link; "replace: true" puts the link in its place',
      '/srv/app/directory':
        'wrong_type: /srv/app/directory is a directory, not a link, and a link never takes its place; remove it by hand, or declare another path',
    });
    expect(await run('cat /srv/app/file; test -d /srv/app/directory')).toBe('precious');
    expect(await orch.applied(link('/srv/app/file', 'x', { replace: true }))).toEqual({});
    expect(await run('readlink /srv/app/file')).toBe('x');
    await orch.isSettled();
  });

  it('go when they are no longer declared, and stay where they are no longer links', async () => {
    await forget();
    expect(
      await orch.applied(link('/srv/app/one', 'a'), link('/srv/app/two', 'b'), link('/srv/app/three', 'c')),
    ).toEqual({});
    await run('rm /srv/app/two && echo mine >/srv/app/two && ln -sfn elsewhere /srv/app/three');
    const done = await orch.declare(file('/srv/app/kept', { content: '' })).then(() => orch.apply());
    expect(failures(done)).toEqual({});
    expect(
      done.flatMap(({ kind, identity, action }) => (kind === 'symlink-unix' ? [`${identity} ${action}`] : [])).sort(),
    ).toEqual(['/srv/app/one remove', '/srv/app/three remove', '/srv/app/two release']);
    expect(await run('ls -A /srv/app; cat /srv/app/two')).toBe('current\ndirectory\nfile\nkept\nreleases\ntwo\nmine');
    await orch.isSettled();
  });

  it('give way to a file and a directory of the same path, and come in their place', async () => {
    expect(await orch.applied(link('/srv/app/swap', 'a'))).toEqual({});
    expect(await orch.applied(file('/srv/app/swap', { content: 'a file\n' }))).toEqual({});
    expect(await orch.applied(link('/srv/app/swap', 'a'))).toEqual({});
    expect(await orch.applied(entry('directory-unix', { path: '/srv/app/swap' }))).toEqual({});
    expect(await orch.applied(link('/srv/app/swap', 'a'))).toEqual({});
    expect(await run('readlink /srv/app/swap')).toBe('a');
    await orch.isSettled();
  });

  it('are absent where the module says so, and a file is not taken for one', async () => {
    await forget();
    await run('ln -s /etc /srv/app/old; echo x >/srv/app/text');
    expect(
      await orch.applied(
        absent('symlink-unix', { path: '/srv/app/old' }),
        absent('symlink-unix', { path: '/srv/app/text' }),
      ),
    ).toEqual({
      '/srv/app/text':
        'wrong_type: /srv/app/text is a file, not a link; write absent: {file-unix: {path: /srv/app/text}}',
    });
    expect(await run('ls /srv/app/old /srv/app/text 2>/dev/null; test -e /etc/passwd')).toBe('/srv/app/text');
  });

  it('belong to an ordinary user who applies them, who may not make them elsewhere', async () => {
    const eve = new LocalOrch(host, '/home/eve/site.orch.yaml', 'eve');
    await eve.declare(link('/home/eve/way/app', '../target'));
    expect(failures(await eve.apply())).toEqual({});
    expect(await run('readlink /home/eve/way/app; stat -c %U:%G /home/eve/way/app')).toBe('../target\neve:eve');
    expect(await eve.differences()).toEqual([]);
    await eve.declare(link('/etc/app', 'x'), link('/home/eve/way/app', '../target', { owner: 'root' }));
    expect(failures(await eve.apply())).toEqual({
      '/etc/app': expect.stringMatching(/^permission_denied: cannot make the link \/etc\/app: /),
      '/home/eve/way/app': expect.stringMatching(/^permission_denied: cannot make the link \/home\/eve\/way\/app: /),
    });
    expect(await run('stat -c %U /home/eve/way/app; ls -A /home/eve/way')).toBe('eve\napp');
  });
});
