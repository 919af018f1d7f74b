/** The booted hosts themselves: what a test may rely on when it uses them, and that nothing of them stays. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { until } from '../support/until.js';
import { type Fleet, startFleet } from './fleet.js';
import { describeHosts } from './requirements.js';
import { tracesOfHost, tracesOfRun } from './traces.js';

const listen = `
const socket = require('node:dgram').createSocket('udp4');
socket.on('message', (text) => { console.log('got ' + text); socket.close(); });
socket.bind(4747, () => console.log('listening'));`;

const send = `
const socket = require('node:dgram').createSocket('udp4');
socket.bind(() => { socket.setBroadcast(true); socket.send('hello', 4747, process.argv[1], () => socket.close()); });`;

const unit = `[Service]
ExecStart=/bin/sh -c 'echo $$$$ >/run/probe.pid; exec sleep 1000'
[Install]
WantedBy=multi-user.target
`;

describeHosts('booted hosts', () => {
  let fleet: Fleet;
  let project: string;
  const ping = async (from: string, to: string) => (await fleet.host(from).run(['ping', '-c1', '-W1', to])).status;

  beforeAll(async () => {
    project = mkdtempSync(`${tmpdir()}/orch-hosts-`);
    for (const part of ['dist/orch', 'node_modules']) mkdirSync(`${project}/${part}`, { recursive: true });
    writeFileSync(`${project}/package.json`, '{"type":"module"}');
    writeFileSync(`${project}/dist/orch/orch.js`, 'console.log(JSON.stringify(process.argv.slice(2)))');
    fleet = await startFleet({
      hosts: ['orch', 'web-01'],
      project,
      binds: [{ from: project, to: '/srv/shared', writable: true }],
    });
  });

  afterAll(async () => {
    await fleet?.stop();
    rmSync(project, { recursive: true, force: true });
  });

  it('run Node and the built project under their own names', async () => {
    const web = fleet.host('web-01');
    expect(await web.run(['node', '-v'])).toMatchObject({ status: 0, stdout: `${process.version}\n` });
    expect(await web.run(['orch', 'agent', '--data-dir', 'a b'])).toMatchObject({
      stdout: '["agent","--data-dir","a b"]\n',
    });
    expect(await web.run(['hostname'])).toMatchObject({ stdout: 'web-01\n' });
    expect(
      await web.run(['sh', '-c', 'touch /opt/orch/package.json; touch /srv/shared/x && ls /srv/shared']),
    ).toMatchObject({
      stdout: expect.stringContaining('x\n'),
      stderr: expect.stringContaining('Read-only'),
    });
  });

  it('are machines of their own', async () => {
    const ids = await Promise.all(['orch', 'web-01'].map((name) => fleet.host(name).readFile('/etc/machine-id')));
    expect(new Set(ids).size).toBe(2);
    await fleet.host('orch').writeFile('/etc/deep/er/file', 'only here', '0600');
    expect(await fleet.host('orch').readFile('/etc/deep/er/file')).toBe('only here');
    await expect(fleet.host('web-01').readFile('/etc/deep/er/file')).rejects.toThrow(
      'web-01: cat: /etc/deep/er/file: No such file',
    );
    expect(() => fleet.host('db-01')).toThrow('the fleet has no host "db-01", only orch, web-01');
  });

  it('pass input, environment and status through, and end what takes too long', async () => {
    const host = fleet.host('orch');
    const outcome = await host.run(['sh', '-c', 'cat; echo "$WHO" >&2; exit 7'], { input: 'in', env: { WHO: 'me' } });
    expect(outcome).toMatchObject({ status: 7, stdout: 'in', stderr: 'me\n' });
    await expect(host.run(['sh', '-c', 'echo begun; sleep 1000'], { timeoutMs: 300 })).rejects.toThrow(
      /killed after 300 ms:\nbegun/,
    );
    await until(async () => (await host.run(['pgrep', 'sleep'])).status === 1, 'the program is gone');
  });

  it('reach each other by name and by broadcast, but nothing beyond', async () => {
    expect(await ping('orch', 'web-01')).toBe(0);
    expect(await ping('web-01', fleet.gateway)).toBe(0);
    expect(await ping('web-01', '192.0.2.1')).not.toBe(0);
    const listener = await fleet.host('web-01').spawn(['node', '-e', listen]);
    await listener.said(/listening/);
    await fleet.host('orch').run(['node', '-e', send, `10.77.${fleet.number}.255`]);
    expect(await listener.ended).toMatchObject({ status: 0, stdout: 'listening\ngot hello\n' });
  });

  it('lose and regain the network with their cable', async () => {
    await fleet.host('web-01').cutCable();
    expect(await ping('orch', 'web-01')).not.toBe(0);
    await fleet.host('web-01').plugCable();
    expect(await ping('orch', 'web-01')).toBe(0);
  });

  it('run programs that can be signalled', async () => {
    const script = 'trap "echo bye; exit 3" TERM; echo ready; while :; do read -r line && echo "line $line"; done';
    const program = await fleet.host('orch').spawn(['bash', '-c', script]);
    await program.said(/ready/);
    program.write('one\n');
    await program.said(/line one/);
    program.kill();
    expect(await program.ended).toMatchObject({ status: 3, stdout: 'ready\nline one\nbye\n' });
    const frozen = await fleet.host('orch').spawn(['sleep', '1000']);
    frozen.kill('SIGSTOP');
    expect((await fleet.host('orch').run(['ps', '-C', 'sleep', '-o', 'stat='])).stdout).toMatch(/^T/);
    frozen.kill('SIGCONT');
    frozen.kill();
    expect(await frozen.ended).toMatchObject({ signal: 'SIGTERM' });
    await expect(program.said(/never/)).rejects.toThrow('/never/ did not appear in:\nready');
  });

  it('keep the services of one host out of the control groups of the other', async () => {
    const hosts = ['orch', 'web-01'].map((name) => fleet.host(name));
    for (const host of hosts) {
      await host.writeFile('/etc/systemd/system/probe.service', unit);
      expect(await host.run(['systemctl', 'enable', '--now', 'probe'])).toMatchObject({ status: 0 });
    }
    expect(await hosts[0]?.run(['systemctl', 'stop', 'probe'])).toMatchObject({ status: 0 });
    expect(await hosts[1]?.run(['systemctl', 'is-active', 'probe'])).toMatchObject({ stdout: 'active\n' });
  });

  it('come back from a reboot with their disk and enabled services, not with their processes', async () => {
    const web = fleet.host('web-01');
    const program = await web.spawn(['sleep', '1000']);
    await web.writeFile('/run/volatile', '');
    await web.reboot();
    expect(await program.ended).toMatchObject({ signal: 'SIGTERM' });
    expect(await web.run(['systemctl', 'is-active', 'probe'])).toMatchObject({ stdout: 'active\n' });
    expect((await web.run(['test', '-e', '/run/volatile'])).status).toBe(1);
    expect(await ping('orch', 'web-01')).toBe(0);
  });

  it('die without a word to their peers, and can be booted again', async () => {
    const [orch, web] = [fleet.host('orch'), fleet.host('web-01')];
    const server = await web.spawn([
      'node',
      '-e',
      `require('node:net').createServer(() => {}).listen(4000, () => console.log('up'))`,
    ]);
    await server.said(/up/);
    const client = await orch.spawn([
      'node',
      '-e',
      `require('node:net').connect(4000, 'web-01', () => console.log('connected'))`,
    ]);
    await client.said(/connected/);
    await web.kill();
    await expect(web.run(['true'])).rejects.toThrow('web-01 is off');
    expect(await ping('orch', 'web-01')).not.toBe(0);
    expect((await orch.run(['pgrep', '-c', '-f', '^node -e'])).stdout).toBe('1\n');
    await web.start();
    await expect(web.start()).rejects.toThrow('web-01 is on already');
    expect(await ping('orch', 'web-01')).toBe(0);
  });

  it('leave nothing behind when they are stopped', async () => {
    const stopped = await startFleet({ hosts: ['brief'], project });
    const kinds = (await tracesOfRun(stopped.number)).map((line) => line.replace(/:.*/, ''));
    expect([...new Set(kinds)].sort()).toEqual(['file', 'group', 'link', 'mount', 'process', 'route']);
    await stopped.stop();
    expect(await tracesOfRun(stopped.number)).toEqual([]);
  });

  it('leave nothing behind when one of them cannot boot', async () => {
    const name = `failing-${process.pid}`;
    const binds = [{ from: '/usr/bin', to: '/dev/null/impossible' }];
    await expect(startFleet({ hosts: [name], project, binds })).rejects.toThrow(
      /did not boot; the end of its console:\n.*impossible/s,
    );
    expect(await tracesOfHost(name)).toEqual([]);
    await expect(startFleet({ hosts: ['Web_01'], project })).rejects.toThrow('"Web_01" is no host name');
    await expect(startFleet({ hosts: ['a'], project: '/nowhere' })).rejects.toThrow(
      '/nowhere/dist does not exist; build',
    );
  });

  it('are cleared away by the next fleet when even their guard was killed', async () => {
    const orphaned = await startFleet({ hosts: ['orphan'], project });
    process.kill(orphaned.guardPid, 'SIGKILL');
    expect(await tracesOfHost('orphan')).not.toEqual([]);
    const next = await startFleet({ hosts: [], project });
    expect(await tracesOfRun(orphaned.number)).toEqual([]);
    await next.stop();
  });
});
