/** Checkouts of git on a booted Debian: made, moved, repaired and removed, never over local changes, and without foreign programs. */
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { type Fleet, startFleet } from './fleet.js';
import type { BootedHost } from './host.js';
import { type Body, type Entry, entry, failures, LocalOrch, sh } from './local-orch.js';
import { describeHosts } from './requirements.js';

const ORIGIN = '/srv/origin';
const APP = '/srv/app/live';
const URL = `file://${ORIGIN}`;
const checkout = (revision: string, body: Body = {}, more: Omit<Entry, 'resource'> = {}) =>
  entry('git-unix', { path: APP, url: URL, revision, ...body }, more);
const other = entry('file-unix', { path: '/srv/other', content: '' });

describeHosts('checkouts on a booted machine', () => {
  let fleet: Fleet;
  let host: BootedHost;
  let orch: LocalOrch;
  const run = (script: string) => sh(host, script);
  const head = (path = APP) => run(`git -C ${path} rev-parse HEAD`);
  const commit = (text: string) =>
    run(`cd ${ORIGIN} && echo '${text}' >text && git add . && git commit -qm '${text}' && git rev-parse HEAD`);

  beforeAll(async () => {
    fleet = await startFleet({ hosts: ['git'] });
    host = fleet.host('git');
    orch = new LocalOrch(host, '/root/site.orch.yaml');
    await run(`useradd -m eve; git config --global user.email a@example.net; git config --global user.name a
      git config --global init.defaultBranch main; git config --global --add safe.directory '*'`);
  });

  afterAll(async () => {
    await fleet?.stop();
  });

  let first = '';
  let second = '';
  beforeEach(async () => {
    await run(`rm -rf /root/.local /var/lib/orch-local ${ORIGIN} /srv/app /srv/other && git init -q ${ORIGIN}`);
    first = await commit('one');
    await run(`cd ${ORIGIN} && git tag v1 && git tag -a -m signed v1a`);
    second = await commit('two');
  });

  it('are made at a branch, follow it, are repaired after a change by hand, and fire triggers', async () => {
    const note = entry('script', {
      program: 'sh',
      manages: 'note',
      check: 'true',
      apply: 'echo told >>/srv/app/told',
      rerun_on: ['app'],
    });
    const all = [checkout('main', {}, { id: 'app' }), note];
    expect(await orch.actionsOf(...all)).toEqual([`${APP} create`, 'note run']);
    expect(await run(`cat ${APP}/text /srv/app/told; ls -A ${APP}/.git/hooks 2>/dev/null | wc -l`)).toBe(
      'two\ntold\n0',
    );
    expect(await orch.actionsOf(...all)).toEqual([`${APP} none`, 'note none']);
    await orch.isSettled();
    const third = await commit('three');
    expect(await orch.differences('drift')).toEqual([]);
    expect(await orch.actionsOf(...all)).toEqual([`${APP} update`, 'note run']);
    expect(await head()).toBe(third);
    await run(`git -C ${APP} checkout -q ${first}`);
    expect(await orch.differences('drift')).toEqual([[APP, 'update', 'revision']]);
    expect(failures(await orch.apply())).toEqual({});
    expect(await head()).toBe(third);
    await orch.isSettled();
  });

  it('are moved to tags and commits, and to another repository', async () => {
    expect(await orch.applied(checkout('v1'))).toEqual({});
    expect(await head()).toBe(first);
    expect(await orch.applied(checkout(second))).toEqual({});
    expect(await head()).toBe(second);
    expect(await orch.applied(checkout('v1a'))).toEqual({});
    expect(await head()).toBe(first);
    await run(`cp -a ${ORIGIN} ${ORIGIN}2`);
    expect(await orch.actionsOf(checkout('v1a', { url: `${URL}2` }))).toEqual([`${APP} update`]);
    expect(await run(`git -C ${APP} config remote.origin.url; rm -r ${ORIGIN}2`)).toBe(`${URL}2`);
  });

  it('keep changes, commits and files that are nowhere else', async () => {
    expect(await orch.applied(checkout('v1'))).toEqual({});
    await run(`echo mine >${APP}/text`);
    await orch.isSettled();
    expect(await orch.applied(checkout('main'))).toEqual({
      [APP]: `local_changes: ${APP} has local changes (text), so it stays as it is; bring them to safety, and undo them`,
    });
    await run(`cd ${APP} && git commit -qam mine`);
    const mine = await head();
    expect((await orch.applied(checkout('main')))[APP]).toContain(
      `local_changes: ${APP} has local commits (${mine.slice(0, 12)} is in no branch or tag of the repository)`,
    );
    await run(`cd ${APP} && git checkout -q ${first} && echo precious >new`);
    await run(`cd ${ORIGIN} && echo theirs >new && git add . && git commit -qm new`);
    expect((await orch.applied(checkout('main')))[APP]).toMatch(
      /^command_failed: git ended with status 1: .*(overwritten|Aborting)/s,
    );
    expect(await run(`cat ${APP}/text ${APP}/new`)).toBe('one\nprecious');
  });

  it('go with the module only as they were made', async () => {
    expect(await orch.applied(checkout('v1'), other)).toEqual({});
    expect(await orch.actionsOf(other)).toContain(`${APP} remove`);
    expect(await run(`ls -d ${APP} 2>&1 || true`)).toContain('No such file');
    for (const spoil of [
      'echo x >text',
      'echo x >new',
      'echo new >.git/info/exclude; touch new',
      'git branch own',
      `git checkout -q ${second}`,
    ]) {
      expect(await orch.applied(checkout('v1'), other)).toEqual({});
      await run(`git -C ${APP} fetch -q origin; mkdir -p ${APP}/.git/info; cd ${APP} && ${spoil}`);
      expect(await orch.actionsOf(other), spoil).toContain(`${APP} release`);
      await run(`rm -r ${APP}`);
    }
  });

  it('come in no place of other files, run no hooks or monitors, and need no directory above', async () => {
    await run(`mkdir -p ${APP} && git init -q /srv/app && touch ${APP}/file`);
    expect(await orch.applied(checkout('v1'))).toEqual({
      [APP]: `wrong_type: ${APP} is not empty and no checkout; move it away, or declare another path`,
    });
    await run(`rm ${APP}/file`);
    expect(await orch.applied(checkout('v1'))).toEqual({});
    expect(await run(`git -C ${APP} rev-parse --show-toplevel`)).toBe(APP);
    await run(`cd ${APP} && git config core.fsmonitor 'touch /srv/app/pwned' && git config core.hooksPath /srv/hooks
      mkdir -p /srv/hooks && printf '#!/bin/sh\\ntouch /srv/app/pwned\\n' >/srv/hooks/post-checkout && chmod +x /srv/hooks/post-checkout
      git config credential.helper '!touch /srv/app/pwned'`);
    expect(await orch.applied(checkout('main'))).toEqual({});
    expect(await run(`ls /srv/app; cat ${APP}/text`)).toBe('live\ntwo');
  });

  it('take no submodules, no address of another scheme, and no revision that is not there', async () => {
    await run(
      `cd ${ORIGIN} && printf '[submodule "x"]\\n\\tpath = x\\n\\turl = ext::sh -c touch%%20/srv/app/pwned\\n' >.gitmodules && git update-index --add --cacheinfo 160000,${first},x && git add .gitmodules && git commit -qm sub`,
    );
    expect(await orch.applied(checkout('main'))).toEqual({});
    await run(`git -C ${APP} config url."ext::sh -c touch%20/srv/app/pwned".insteadOf ${URL}`);
    await commit('four');
    expect((await orch.applied(checkout(`${'0'.repeat(39)}1`)))[APP]).toMatch(/transport 'ext' not allowed/);
    expect(await run('ls /srv/app')).toBe('live');
    expect((await orch.applied(checkout('nothing', { path: '/srv/app/two' })))['/srv/app/two']).toBe(
      `content_unavailable: ${URL} has no branch or tag nothing; a commit is written with all 40 digits`,
    );
    expect(
      (await orch.applied(checkout('main', { path: '/srv/app/two', url: 'file:///srv/none' })))['/srv/app/two'],
    ).toMatch(/^command_failed: git ended with status 128: .*\/srv\/none/s);
    expect(await run('ls /srv/app')).toBe('live');
  });

  it('belong to their user, and are not touched where others could exchange them', async () => {
    await run(
      `rm -rf /home/eve/app /home/eve/origin; cp -a ${ORIGIN} /home/eve/origin && chown -R eve:eve /home/eve/origin`,
    );
    const path = '/home/eve/app';
    const hers = { path, url: 'file:///home/eve/origin' };
    expect((await orch.applied(checkout('v1', hers)))[path]).toBe(
      `unsafe_path: /home/eve belongs to eve, who could exchange the checkout; name its user in "user", or declare another path`,
    );
    expect(await orch.applied(checkout('v1', { ...hers, user: 'eve' }))).toEqual({});
    expect(await run(`stat -c %U ${path} ${path}/text ${path}/.git/HEAD`)).toBe('eve\neve\neve');
    await orch.isSettled();
    await run(`rm -rf ${path} && mkdir /tmp/open && chmod 1777 /tmp/open`);
    expect((await orch.applied(checkout('v1', { path: '/tmp/open/app' })))['/tmp/open/app']).toMatch(
      /^unsafe_path: .* can be changed by everyone/,
    );
    const eve = new LocalOrch(host, '/home/eve/site.orch.yaml', 'eve');
    await eve.declare(checkout('main', hers), checkout('main', { url: hers.url }));
    expect(failures(await eve.apply())).toEqual({ [APP]: expect.stringMatching(/^permission_denied: /) });
    expect(await run(`stat -c %U ${path}/text; cat ${path}/text`)).toBe('eve\ntwo');
    expect(await eve.differences()).toEqual([[APP, 'create', 'parents,url,revision']]);
  });
});
