/** Purges of directories on a booted Debian: what nothing declares goes, and what anything declares stays. */
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { type Fleet, startFleet } from './fleet.js';
import type { BootedHost } from './host.js';
import { absent, type Body, type Entry, entry, failures, LocalOrch, sh } from './local-orch.js';
import { describeHosts } from './requirements.js';

const CONF = '/etc/app/conf.d';
const purge = (path = CONF, body: Body = {}, more: Omit<Entry, 'resource'> = {}) =>
  entry('directory-unix', { path, purge: true, ...body }, more);
const file = (path: string, body: Body = { content: 'mine\n' }) => entry('file-unix', { path, ...body });

describeHosts('purges on a booted machine', () => {
  let fleet: Fleet;
  let host: BootedHost;
  let orch: LocalOrch;
  const run = (script: string) => sh(host, script);
  const left = (path = CONF) => run(`cd ${path} && find . -mindepth 1 | sort`);

  beforeAll(async () => {
    fleet = await startFleet({ hosts: ['purges'], capabilities: ['CAP_SYS_ADMIN'] });
    host = fleet.host('purges');
    orch = new LocalOrch(host, '/root/site.orch.yaml');
    await run('useradd -m eve');
  });

  afterAll(async () => {
    await fleet?.stop();
  });

  beforeEach(async () => {
    await run(`rm -rf /root/.local /var/lib/orch-local /etc/app /srv/app /root/told; mkdir -p ${CONF}/old.d/deep /srv/app
      cd ${CONF} && echo a >old.conf && echo b >.hidden && echo c >old.d/deep/file && ln -s /etc/passwd link && echo >keep`);
  });

  const note = entry('script', {
    program: 'sh',
    manages: 'note',
    check: 'true',
    apply: 'echo told >>/root/told',
    rerun_on: ['conf'],
  });

  it('delete what nothing declares, as the plan says, fire triggers, and are quiet afterwards', async () => {
    const all = [purge(CONF, {}, { id: 'conf' }), file(`${CONF}/keep`), file(`${CONF}/new`), note];
    await orch.declare(...all);
    const [first] = await orch.results('plan');
    expect(first?.changes).toEqual([
      { field: 'undeclared', before: '4', after: '0' },
      { field: 'deleted', before: '.hidden, link, old.conf, old.d/', after: null },
    ]);
    expect(await orch.doneBy(...all)).toEqual([
      `${CONF} update`,
      `${CONF}/keep update`,
      `${CONF}/new create`,
      'note run',
    ]);
    expect(await left()).toBe('./keep\n./new');
    expect(await run('cat /root/told; test -s /etc/passwd')).toBe('told');
    expect(await orch.doneBy(...all)).toEqual([]);
    await orch.isSettled();
    await run(`echo x >${CONF}/again`);
    expect(await orch.differences('drift')).toEqual([[CONF, 'update', 'undeclared,deleted']]);
    expect(await orch.doneBy(...all)).toEqual([`${CONF} update`, 'note run']);
    expect(await run('cat /root/told')).toBe('told\ntold');
    await orch.isSettled();
  });

  it('spare what any kind declares, however the path is written, and the content of declared directories', async () => {
    await run(`mkdir -p ${CONF}/way/inner ${CONF}/data && echo x >${CONF}/way/inner/other && echo x >${CONF}/way/gone
      echo x >${CONF}/data/precious; ln -s ${CONF} /srv/app/alias; echo 'a = 1' >${CONF}/part.ini`);
    expect(
      await orch.applied(
        purge(),
        file('/srv/app/alias/keep'),
        file(`${CONF}/way/inner/mine`),
        entry('directory-unix', { path: `${CONF}/data` }),
        entry('symlink-unix', { path: `${CONF}/to`, target: '/srv' }),
        entry('setting-unix', { path: `${CONF}/part.ini`, format: 'ini', key: 'b', value: '2' }),
        absent('file-unix', { path: `${CONF}/old.conf` }),
      ),
    ).toEqual({});
    expect(await left()).toBe(
      './data\n./data/precious\n./keep\n./part.ini\n./to\n./way\n./way/inner\n./way/inner/mine',
    );
    await orch.isSettled();
  });

  it('count what goes with the module once, and delete what was released', async () => {
    expect(await orch.applied(purge(), file(`${CONF}/keep`), file(`${CONF}/made`), file(`${CONF}/sub/made`))).toEqual(
      {},
    );
    await run(`echo x >${CONF}/sub/other`);
    // `keep` was there before, so it is released, and nothing declares it then.
    expect(await orch.doneBy(purge())).toEqual([
      `${CONF} update`,
      `${CONF}/keep release`,
      `${CONF}/made remove`,
      `${CONF}/sub/made remove`,
    ]);
    expect(await orch.doneBy(purge())).toEqual([`${CONF} update`]);
    expect(await left()).toBe('');
    await orch.isSettled();
  });

  it('go together with a directory beside the module, in its directories too', async () => {
    await run(`mkdir -p /root/files/site/css && echo a >/root/files/site/css/a.css; mkdir -p /srv/app/www/css/x /srv/app/www/y
      echo b >/srv/app/www/css/b.css; echo c >/srv/app/www/c`);
    const site = purge('/srv/app/www', { source: 'files/site' });
    expect(await orch.applied(site)).toEqual({});
    expect(await left('/srv/app/www')).toBe('./css\n./css/a.css');
    await orch.isSettled();
  });

  it('need consent for many, which is asked for before anything is changed', async () => {
    await run(`cd ${CONF} && seq -f f%g 20 | xargs touch`);
    await orch.declare(file('/srv/app/first'), purge());
    const { stderr } = await orch.run('apply', '--yes');
    const { status, stdout } = await orch.run('apply', '--yes');
    expect(`${stderr}${stdout}`).toContain(
      `this apply would delete 25 entries that nothing declares from ${CONF}, more than the 10 that need no consent`,
    );
    expect(status).not.toBe(0);
    expect(await run(`ls ${CONF} | wc -l; ls /srv/app`)).toBe('24');
    expect(failures(await orch.results('apply', '--yes', '--allow-removals', '25'))).toEqual({});
    expect(await left()).toBe('');
  });

  it('cross no mount, and leave sockets and the agent alone', async () => {
    await run(`mkdir -p ${CONF}/mounted ${CONF}/on && mount -t tmpfs none ${CONF}/mounted && echo x >${CONF}/mounted/f
      mount -t tmpfs none ${CONF}/on && echo x >${CONF}/on/f`);
    expect((await orch.applied(purge(), file(`${CONF}/on/mine`)))[CONF]).toContain(
      `removal_refused: something is mounted at ${CONF}/mounted`,
    );
    await run(`cat ${CONF}/mounted/f && umount ${CONF}/mounted`);
    expect(await orch.applied(purge(), file(`${CONF}/on/mine`))).toEqual({});
    expect(await left()).toBe('./on\n./on/f\n./on/mine');
    await run(`umount ${CONF}/on; mkfifo ${CONF}/pipe`);
    expect(await orch.applied(purge())).toMatchObject({
      [CONF]: `removal_refused: ${CONF}/pipe is a fifo, and a purge deletes files, links and directories only; remove it by hand`,
    });
    await run(`rm ${CONF}/pipe; cd ${CONF} && touch "$(printf 'a\\377')"`);
    expect((await orch.applied(purge()))[CONF]).toContain(
      'has a name that is not UTF-8; rename it, or remove it by hand',
    );
    await run(`rm ${CONF}/a*; cd ${CONF} && seq -f f%g 1001 | xargs touch`);
    expect((await orch.applied(purge()))[CONF]).toContain(`${CONF} holds more than 1000 entries`);
  });

  it('are of an ordinary user, who purges no other directory', async () => {
    const eve = new LocalOrch(host, '/home/eve/site.orch.yaml', 'eve');
    await run('mkdir -p /home/eve/app/x && echo x >/home/eve/app/x/y; chown -R eve: /home/eve/app');
    await eve.declare(purge('/home/eve/app'));
    expect(failures(await eve.apply())).toEqual({});
    expect(await left('/home/eve/app')).toBe('');
    await eve.declare(purge('/home/eve/app'), purge());
    expect(failures(await eve.apply())[CONF]).toContain('permission_denied: ');
    expect(await run(`cat ${CONF}/old.conf`)).toBe('a');
  });

  it('delete nothing elsewhere while the owner of the directory exchanges its entries', async () => {
    await run('mkdir -p /srv/vault && touch /srv/vault/precious && mkdir -p /srv/app/www && chown eve: /srv/app/www');
    const attack = await host.spawn([
      'runuser',
      '-u',
      'eve',
      '--',
      'sh',
      '-c',
      'cd /srv/app/www; while [ ! -e /tmp/enough ]; do mkdir d; touch d/precious; rm -r d; ln -s /srv/vault d; rm d; done 2>/dev/null',
    ]);
    for (let round = 0; round < 10; round += 1) await orch.applied(purge('/srv/app/www', { owner: 'eve' }));
    await run('touch /tmp/enough');
    await attack.ended;
    expect(await run('ls /srv/vault')).toBe('precious');
  });
});
