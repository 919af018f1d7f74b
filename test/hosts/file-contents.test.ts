/** Contents of files on a booted Debian: written once, from beside the module, and from an address. */
import { createHash } from 'node:crypto';
import { createServer } from 'node:http';
import { afterAll, beforeAll, beforeEach, expect, it, onTestFinished } from 'vitest';
import { type Fleet, startFleet } from './fleet.js';
import type { BootedHost } from './host.js';
import { type Body, type Entry, entry, failures, LocalOrch, sh } from './local-orch.js';
import { describeHosts } from './requirements.js';

const CONF = '/etc/app/conf';
const once = (body: Body = {}, more: Omit<Entry, 'resource'> = {}) =>
  entry('file-unix', { path: CONF, content: 'first\n', only_if_missing: true, ...body }, more);
const other = entry('file-unix', { path: '/etc/app/other', content: '' });

describeHosts('contents of files on a booted machine', () => {
  let fleet: Fleet;
  let host: BootedHost;
  let orch: LocalOrch;
  const run = (script: string) => sh(host, script);

  beforeAll(async () => {
    fleet = await startFleet({ hosts: ['contents'] });
    host = fleet.host('contents');
    orch = new LocalOrch(host, '/root/site.orch.yaml');
    await run('useradd -m eve');
  });

  afterAll(async () => {
    await fleet?.stop();
  });

  beforeEach(async () => {
    await run('rm -rf /root/.local /var/lib/orch-local /etc/app && mkdir /etc/app');
  });

  it('is written where the file is missing, and left alone however it changes', async () => {
    const note = entry('script', {
      program: 'sh',
      manages: 'note',
      check: 'true',
      apply: 'echo ran >>/root/ran',
      rerun_on: ['once'],
    });
    expect(await orch.actionsOf(once({ mode: '0640' }, { id: 'once' }), note)).toEqual([`${CONF} create`, 'note run']);
    expect(await run(`cat ${CONF} /root/ran; stat -c %a ${CONF}`)).toBe('first\nran\n640');
    await orch.isSettled();
    await run(`echo mine >${CONF}`);
    await orch.isSettled();
    expect(await orch.actionsOf(once({ mode: '0640', content: 'second\n' }, { id: 'once' }), note)).toEqual([
      `${CONF} none`,
      'note none',
    ]);
    expect(await run(`cat ${CONF} /root/ran`)).toBe('mine\nran');
    await run(`chmod 666 ${CONF}; chown eve ${CONF}`);
    expect(await orch.differences('drift')).toEqual([[CONF, 'update', 'mode']]);
    expect(failures(await orch.apply())).toEqual({});
    expect(await run(`cat ${CONF}; stat -c '%U %a' ${CONF}`)).toBe('mine\neve 640');
    await run(`rm ${CONF}`);
    expect(await orch.differences('drift')).toEqual([[CONF, 'create', 'mode']]);
    expect(failures(await orch.apply())).toEqual({});
    expect(await run(`cat ${CONF} /root/ran`)).toBe('second\nran\nran\nran');
  });

  it('goes with the module only as it was written', async () => {
    expect(await orch.actionsOf(once(), other)).toContain(`${CONF} create`);
    expect(await orch.actionsOf(other)).toContain(`${CONF} remove`);
    expect(await orch.actionsOf(once(), other)).toContain(`${CONF} create`);
    await run(`echo mine >>${CONF}`);
    expect(await orch.actionsOf(other)).toContain(`${CONF} release`);
    expect(await run(`cat ${CONF}`)).toBe('first\nmine');
    expect(await orch.actionsOf(once(), other)).toContain(`${CONF} none`);
    expect(await orch.actionsOf(other)).toContain(`${CONF} release`);
    expect(await run(`cat ${CONF}`)).toBe('first\nmine');
  });

  it('takes lines of others, with which it also goes', async () => {
    const line = entry('line-unix', { path: CONF, line: 'second' });
    expect(await orch.actionsOf(once(), line, other)).toContain(`${CONF}: second create`);
    expect(await run(`cat ${CONF}`)).toBe('first\nsecond');
    await orch.isSettled();
    expect(await orch.actionsOf(other)).toEqual(
      [`${CONF} remove`, `${CONF}: second remove`, '/etc/app/other none'].sort(),
    );
    expect(await run('ls /etc/app')).toBe('other');
  });

  it('comes in no place of a link, a directory or a pipe', async () => {
    await run('cd /etc/app && ln -s conf link && mkdir dir && mkfifo pipe');
    expect(
      await orch.applied(
        once({ path: '/etc/app/link' }),
        once({ path: '/etc/app/dir' }),
        once({ path: '/etc/app/pipe' }),
      ),
    ).toEqual({
      '/etc/app/link':
        'wrong_type: /etc/app/link is a symlink to conf, not a file; declare the path of its target instead, or leave out only_if_missing to replace the link with a file',
      '/etc/app/dir': 'wrong_type: /etc/app/dir is a directory, not a file',
      '/etc/app/pipe': 'wrong_type: /etc/app/pipe is a fifo, not a file',
    });
    expect(await run('ls /etc/app')).toBe('dir\nlink\npipe');
  });

  it('comes from beside the module and from an address, with any bytes, is repaired, and goes', async () => {
    const bytes = Buffer.from([0, 255, 10, 0]);
    const sha256 = createHash('sha256').update(bytes).digest('hex');
    const server = createServer((_, response) => void response.end(bytes));
    await new Promise<void>((resolve) => void server.listen(0, fleet.gateway, resolve));
    onTestFinished(() => void server.close());
    const address = server.address();
    const url = `http://${fleet.gateway}:${typeof address === 'object' ? address?.port : 0}/bytes`;
    const shown = (directory: string) =>
      run(`cd ${directory} && sha256sum beside fetched | cut -d' ' -f1 | uniq; stat -c '%U %a' beside fetched | uniq`);
    for (const [who, home, directory] of [
      [orch, '/root', '/etc/app'],
      [new LocalOrch(host, '/home/eve/site.orch.yaml', 'eve'), '/home/eve', '/home/eve/own'],
    ] as const) {
      await host.writeFile(`${home}/blob`, bytes, '0644');
      const both = [
        entry('file-unix', { path: `${directory}/beside`, source: 'blob', mode: '0600' }),
        entry('file-unix', { path: `${directory}/fetched`, url, sha256, mode: '0600' }),
      ];
      expect((await who.appliedAsPlanned(...both)).map(([path, action]) => `${path} ${action}`)).toEqual([
        `${directory}/beside create`,
        `${directory}/fetched create`,
      ]);
      const made = await shown(directory);
      expect(made).toBe(`${sha256}\n${home === '/root' ? 'root' : 'eve'} 600`);
      await who.isSettled();
      await run(`cd ${directory}; echo x >beside; rm fetched`);
      expect((await who.differences('drift')).map(([path, action]) => [path, action])).toEqual([
        [`${directory}/beside`, 'update'],
        [`${directory}/fetched`, 'create'],
      ]);
      expect(failures(await who.apply())).toEqual({});
      expect(await shown(directory)).toBe(made);
      const kept = entry('file-unix', { path: `${directory}/kept`, content: '' });
      expect(await who.doneBy(kept)).toEqual(
        [`${directory}/beside remove`, `${directory}/fetched remove`, `${directory}/kept create`].sort(),
      );
      expect(await run(`ls ${directory}`)).toBe('kept');
    }
  });

  it('is written once by an ordinary user', async () => {
    const eve = new LocalOrch(host, '/home/eve/site.orch.yaml', 'eve');
    await eve.declare(once({ path: '/home/eve/app/conf', mode: '0600' }), once());
    expect(failures(await eve.apply())).toEqual({
      [CONF]: expect.stringMatching(/^permission_denied: cannot write \/etc\/app\/conf: /),
    });
    await run('echo mine >/home/eve/app/conf');
    await run(`touch ${CONF}`);
    expect(await eve.differences()).toEqual([]);
    expect(await run(`stat -c '%U %a' /home/eve/app/conf; cat /home/eve/app/conf`)).toBe('eve 600\nmine');
  });
});
