/** Directories beside a module on a booted Debian: made, repaired, followed and removed, with a hostile owner of the target too. */
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { type Fleet, startFleet } from './fleet.js';
import type { BootedHost } from './host.js';
import { type Body, type Entry, entry, failures, LocalOrch, sh } from './local-orch.js';
import { describeHosts } from './requirements.js';

const tree = (path: string, body: Body = {}, more: Omit<Entry, 'resource'> = {}) =>
  entry('directory-unix', { path, source: 'files/site', ...body }, more);
const file = (path: string, body: Body = {}) => entry('file-unix', { path, ...body });

describeHosts('directories beside a module on a booted machine', () => {
  let fleet: Fleet;
  let host: BootedHost;
  let orch: LocalOrch;
  const run = (script: string) => sh(host, script);
  /** Why the module cannot be planned. */
  const problem = async () => (JSON.parse((await orch.run('plan')).stderr) as { readonly detail: string }).detail;

  beforeAll(async () => {
    fleet = await startFleet({ hosts: ['trees'] });
    host = fleet.host('trees');
    orch = new LocalOrch(host, '/root/site.orch.yaml');
    await run('useradd -m eve; useradd -m www');
  });

  afterAll(async () => {
    await fleet?.stop();
  });

  beforeEach(async () => {
    await run(`rm -rf /root/.local /var/lib/orch-local /root/files /srv/www /root/told
      mkdir -p /root/files/site/css /root/files/site/empty && cd /root/files/site
      echo hello >index.html; echo body >css/a.css; echo hidden >.hidden; printf '\\000\\377' >'with blank'
      printf '#!/bin/sh\\n' >run && chmod 755 run`);
  });

  const all = ['', '/.hidden', '/css', '/css/a.css', '/empty', '/index.html', '/run', '/with blank'];
  const listing = 'cd /srv/www && find . -mindepth 1 -printf "%p %M %u:%g\\n" | sort';

  it('are made as the plan says, with owners and modes, and once', async () => {
    const site = tree('/srv/www', { owner: 'www', mode: '0750', file_mode: '0640' });
    expect(await orch.doneBy(site)).toEqual(all.map((name) => `/srv/www${name} create`).sort());
    expect(await run(listing)).toBe(
      [
        './.hidden -rw-r----- www:root',
        './css drwxr-x--- www:root',
        './css/a.css -rw-r----- www:root',
        './empty drwxr-x--- www:root',
        './index.html -rw-r----- www:root',
        './run -rwxr-x--- www:root',
        './with blank -rw-r----- www:root',
      ].join('\n'),
    );
    expect(await run('cmp "/srv/www/with blank" "/root/files/site/with blank" && stat -c "%U %a" /srv/www')).toBe(
      'www 750',
    );
    expect(await orch.doneBy(site)).toEqual([]);
    await orch.isSettled();
  });

  it('are repaired after changes by hand, and leave other files alone', async () => {
    expect(await orch.applied(tree('/srv/www'))).toEqual({});
    await run('cd /srv/www && echo mine >index.html && chmod 644 run && rm -r css empty && echo other >other');
    const drifted = [
      ['/srv/www/css', 'create', 'mode'],
      ['/srv/www/css/a.css', 'create', 'parents,content,mode'],
      ['/srv/www/empty', 'create', 'mode'],
      ['/srv/www/index.html', 'update', 'content'],
      ['/srv/www/run', 'update', 'mode'],
    ];
    expect((await orch.differences('drift')).map(([identity]) => identity).sort()).toEqual(
      drifted.map(([identity]) => identity),
    );
    expect(await orch.applied(tree('/srv/www'))).toEqual({});
    expect(await run('cd /srv/www && cat index.html css/a.css other && stat -c %a run')).toBe(
      'hello\nbody\nother\n755',
    );
    await orch.isSettled();
  });

  it('follow the directory of the module, with its triggers, and go with it', async () => {
    const note = entry('script', {
      program: 'sh',
      manages: 'note',
      check: 'true',
      apply: 'echo told >>/root/told',
      rerun_on: ['site'],
    });
    const site = [tree('/srv/www', {}, { id: 'site' }), note];
    expect(await orch.applied(...site)).toEqual({});
    await run('cd /root/files/site && rm -r css && chmod 644 run && rm index.html && mkdir index.html && echo x >new');
    expect(await orch.doneBy(...site)).toEqual(
      [
        '/srv/www/css remove',
        '/srv/www/css/a.css remove',
        '/srv/www/index.html create',
        '/srv/www/index.html remove',
        '/srv/www/new create',
        '/srv/www/run update',
        'note run',
      ].sort(),
    );
    expect(await run('ls -A /srv/www; cat /root/told')).toBe(
      '.hidden\nempty\nindex.html\nnew\nrun\nwith blank\ntold\ntold',
    );
    expect(await orch.doneBy(...site)).toEqual([]);
    await run('echo mine >/srv/www/mine');
    expect(await orch.applied(file('/root/kept', { content: '' }))).toEqual({});
    expect(await run('ls -A /srv/www')).toBe('mine');
  });

  it('are refused with a place and a mend when they cannot be sent', async () => {
    await run('ln -s /etc/passwd /root/files/site/css/link');
    await orch.declare(tree('/srv/www'));
    expect(await problem()).toContain('the directory "files/site" holds the link "css/link", and links are not sent');
    await run('rm /root/files/site/css/link; touch "/root/files/site/$(printf "a\\377")"');
    expect(await problem()).toContain('whose name is not UTF-8; rename it');
    await run('rm /root/files/site/a*; mkfifo /root/files/site/pipe');
    expect(await problem()).toContain('holds "pipe", which is neither a file nor a directory');
    await run('rm /root/files/site/pipe; cd /root/files/site && seq -f f%g 1001 | xargs touch');
    expect(await problem()).toContain('holds more than 1000 files and directories; pack them');
    await run('cd /root/files/site && rm f* && truncate -s 65M big');
    expect(await problem()).toContain('the file "files/site/big" is larger than 64.0 MiB');
  });

  it('conflict with another declaration of a file in them', async () => {
    await orch.declare(tree('/srv/www'), file('/srv/www/index.html', { content: 'mine' }));
    expect(await problem()).toContain('"/srv/www/index.html" is already declared');
  });

  it('belong to an ordinary user who applies them', async () => {
    const eve = new LocalOrch(host, '/home/eve/site.orch.yaml', 'eve');
    await run('rm -rf /home/eve/files; cp -r /root/files /home/eve/files; chown -R eve: /home/eve/files');
    await eve.declare(tree('/home/eve/www', { file_mode: '0600' }));
    expect(failures(await eve.apply())).toEqual({});
    expect(await run('stat -c "%U %a" /home/eve/www/run /home/eve/www/css/a.css')).toBe('eve 700\neve 600');
    expect(await eve.differences()).toEqual([]);
    await eve.declare(tree('/etc/www'));
    expect(Object.values(failures(await eve.apply()))[0]).toContain('permission_denied: ');
  });

  it('lead nowhere else when their owner puts links in their place', async () => {
    expect(await orch.applied(tree('/srv/www', { owner: 'eve' }))).toEqual({});
    await run(`mkdir -p /srv/vault && echo secret >/srv/vault/a.css && chmod 600 /srv/vault/a.css
      cd /srv/www && rm -r css index.html && runuser -u eve -- ln -s /srv/vault css
      runuser -u eve -- ln -s /srv/vault/a.css index.html`);
    const found = failures(await orch.apply());
    expect(found['/srv/www/css']).toContain('wrong_type: /srv/www/css is a symlink to /srv/vault');
    expect(Object.keys(found).sort()).toEqual(['/srv/www/css', '/srv/www/css/a.css']);
    expect(await run('cat /srv/vault/a.css; stat -c %U:%a /srv/vault /srv/vault/a.css; cat /srv/www/index.html')).toBe(
      'secret\nroot:755\nroot:600\nhello',
    );
  });
});
