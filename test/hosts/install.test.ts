/** From bare machines without Node to a fleet: packages, services that survive a reboot, and their removal. */
import { readdirSync, rmSync } from 'node:fs';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Agent } from '../../src/contract/agents.js';
import { until } from '../support/orch.js';
import { type Fleet, startFleet } from './fleet.js';
import type { BootedHost } from './host.js';
import { makePackages } from './orch-package.js';
import { describeHosts } from './requirements.js';

const MOTD = `name: motd
supports:
  - platform: linux
resources:
  - resource:
      file-unix: {path: /etc/motd, content: "kept by orch\\n"}
`;

/** Installs the package of orch itself, as a module of an operator might. */
const UPGRADE = `name: upgrade
supports:
  - platform: linux
resources:
  - id: package
    resource:
      script:
        program: sh
        check: test -e /root/upgraded
        apply: dpkg --install /srv/packages/*.deb && touch /root/upgraded
`;

/** Machines that get the pasted line: a bare system with a program to download. */
const DOWNLOADERS = ['curl', 'wget', 'openssl'];

const needs = { patchelf: 'patchelf', strip: 'binutils', 'g++': 'g++', make: 'make', python3: 'python3' };

describeHosts(
  'bare machines with the Debian package',
  () => {
    let packages: string;
    let fleet: Fleet;
    let control: BootedHost;
    let web: BootedHost;
    let db: BootedHost;

    const ok = async (host: BootedHost, line: string): Promise<string> => {
      const { status, stdout, stderr } = await host.run(['sh', '-c', line], { timeoutMs: 120_000 });
      if (status !== 0) throw new Error(`${host.name}: ${line} ended with ${status}:\n${stderr}${stdout}`);
      return stdout;
    };
    const install = (host: BootedHost) => ok(host, 'dpkg --install /srv/packages/*.deb 2>&1');
    /** Returns the agents; none while the orchestrator does not answer. */
    const agents = async () => {
      const { status, stdout } = await control.run(['orch', 'agents', 'list', '-o', 'json']);
      return status === 0 ? (JSON.parse(stdout) as readonly Agent[]) : [];
    };
    const isConnected = async () => (await agents()).some(({ name, connected }) => name === 'web-01' && connected);
    const connectedAs = async (name: string) =>
      (await agents()).some(({ initial_hostname: host, connected }) => host === name && connected);
    /** Pastes a line into a shell of the bare machine. */
    const paste = (line: string) => db.run(['sh', '-c', line], { timeoutMs: 120_000 });
    const lines = async () =>
      JSON.parse(await ok(control, 'orch enroll create --auto-approve -o json')) as {
        readonly id: string;
        readonly token: string;
        readonly curl: string;
        readonly wget: string;
      };
    const token = async () =>
      (JSON.parse(await ok(control, 'orch enroll create --auto-approve -o json')) as { readonly token: string }).token;

    beforeAll(async () => {
      packages = await makePackages('deb');
      expect(readdirSync(packages).sort()).toEqual([
        'SHA256SUMS',
        'SHA256SUMS.sig',
        expect.stringMatching(/^orch_.*\.deb$/),
      ]);
      fleet = await startFleet({
        hosts: ['orch', 'web-01', 'db-01'],
        project: null,
        packages: DOWNLOADERS,
        binds: [{ from: packages, to: '/srv/packages' }],
      });
      control = fleet.host('orch');
      web = fleet.host('web-01');
      db = fleet.host('db-01');
    });

    afterAll(async () => {
      await fleet?.stop();
      if (packages !== undefined) rmSync(packages, { recursive: true, force: true });
    });

    it('become an orchestrator with one command after the package, hardened and without root', async () => {
      expect(await control.run(['sh', '-c', 'command -v node python3 g++'])).toMatchObject({ stdout: '' });
      await install(control);
      expect(await ok(control, 'orch serve install --advertised-host orch')).toContain(
        'The orchestrator runs as orch-serve',
      );
      expect(await ok(control, 'orch status')).toContain('ok');
      expect(
        (await ok(control, 'systemctl show --property=User,UnitFileState orch-serve')).trim().split('\n').sort(),
      ).toEqual(['UnitFileState=enabled', 'User=orch']);
      const exposure = /exposure level for orch-serve\.service: ([\d.]+)/.exec(
        await ok(control, 'systemd-analyze security --no-pager orch-serve'),
      )?.[1];
      expect(Number(exposure)).toBeLessThanOrEqual(3);
      expect(await ok(control, 'stat -c "%a %U" /var/lib/orch /var/lib/orch/orch.db')).toBe('700 orch\n600 orch\n');
    });

    it('become agents, without a terminal unless that is allowed, and apply', async () => {
      await install(web);
      const wrong = await web.run(['sh', '-c', 'echo orch-enroll-v1.nonsense | orch agent install orch --token -']);
      expect(wrong).toMatchObject({ status: 64, stderr: expect.stringContaining('is no enrolment token') });
      expect(await web.run(['systemctl', 'is-enabled', 'orch-agent'])).toMatchObject({ stdout: 'disabled\n' });
      const shipped = await web.readFile('/etc/orch/agent.yaml');
      await web.writeFile('/etc/orch/agent.yaml', 'remote_terminal: [\n');
      const broken = await web.run(['orch', 'agent', 'install', 'orch', '--terminals', 'on']);
      expect(broken).toMatchObject({ status: 1, stderr: expect.stringContaining('/etc/orch/agent.yaml:') });
      expect(await web.readFile('/etc/orch/agent.yaml')).toBe('remote_terminal: [\n');
      await web.writeFile('/etc/orch/agent.yaml', shipped);
      expect(await ok(web, `echo ${await token()} | orch agent install orch --token -`)).toContain('It is connected.');
      expect(await ok(web, 'ls /var/lib/orch-agent')).not.toContain('enrolment-token');
      await control.writeFile('/root/motd.orch.yaml', MOTD);
      await ok(control, 'orch apply web-01 -f /root/motd.orch.yaml --yes');
      expect(await web.readFile('/etc/motd')).toBe('kept by orch\n');
      expect(await control.run(['orch', 'exec', 'web-01', '--', 'true'])).toMatchObject({ status: 255 });
      await ok(web, 'orch agent install orch --terminals on');
      await ok(control, 'orch agents tag web-01 role=web');
      expect((await agents()).map(({ tags }) => tags)).toEqual([{ role: 'web' }]);
      expect(await ok(control, 'orch exec -l role=web --yes -- id -u')).toContain('0\n');
    });

    it('stay as they are when the pasted line cannot be trusted or does not fit', async () => {
      const { id, curl, wget } = await lines();
      const refused = async (line: string, message: string) => {
        const { status, stdout, stderr } = await paste(line);
        expect(`${stderr}${stdout}`).toContain(message);
        expect(await ok(db, 'ls /opt /usr/local/bin; ls -a /root /tmp | grep -i orch || true')).not.toMatch(/orch/);
        return status;
      };
      const wrongPin = (line: string) => line.replace(/sha256\/\/[^']+/, `sha256//${'A'.repeat(43)}=`);
      await refused(wrongPin(curl), 'does not match pinned public key');
      await refused(wrongPin(wget), 'does not match pinned public key');
      const shadow = (name: string, text: string) =>
        db.writeFile(`/root/shadow/${name}`, `#!/bin/sh\n${text}\n`, '0755');
      const shadowed = (line: string) => line.replace(/\| sh$/, '| PATH=/root/shadow:$PATH sh');
      await shadow('uname', 'case $1 in -m) echo riscv64 ;; *) exec /usr/bin/uname "$@" ;; esac');
      expect(await refused(shadowed(curl), 'no package for this processor (riscv64)')).toBe(1);
      await shadow('uname', 'exec /usr/bin/uname "$@"');
      await shadow('id', 'echo 1000');
      expect(await refused(shadowed(curl), 'only root can install the agent')).toBe(1);
      await ok(db, 'rm /root/shadow/id');
      await shadow(
        'curl',
        '/usr/bin/curl "$@"; for last; do :; done; echo x >>"$(ls -d /opt/orch/.install.*)/orch.tar.gz"',
      );
      expect(await refused(shadowed(curl), 'is not the one that the orchestrator announced')).toBe(1);
      await shadow('curl', 'exec /usr/bin/curl "$@"');
      await shadow('openssl', 'case $1 in version) exec /usr/bin/openssl version ;; *) exit 1 ;; esac');
      expect(await refused(shadowed(curl), 'is not signed by the publisher')).toBe(1);
      await ok(db, 'touch /usr/local/bin/orch');
      expect(await paste(curl)).toMatchObject({
        status: 1,
        stderr: expect.stringContaining('another orch is installed'),
      });
      await ok(db, 'rm /usr/local/bin/orch');
      await ok(control, `orch enroll revoke ${id}`);
      await refused(curl, 'returned error: 401');
      await refused(wget, 'nothing was installed');
      await ok(db, 'rm -r /root/shadow');
    });

    it('become agents by a pasted line, without orch, Node or a package manager', async () => {
      const { curl, token: secret } = await lines();
      const first = await paste(curl);
      expect(first).toMatchObject({ status: 0, stdout: expect.stringContaining('It is connected.') });
      expect(`${first.stdout}${first.stderr}`).not.toContain(secret);
      expect(await ok(db, 'readlink /usr/local/bin/orch')).toBe('/opt/orch/current/bin/orch\n');
      expect(await ok(db, 'systemctl cat orch-agent')).toContain(
        'ExecStart=/opt/orch/current/bin/orch agent connect orch:4747',
      );
      await ok(control, 'orch apply db-01 -f /root/motd.orch.yaml --yes');
      expect(await db.readFile('/etc/motd')).toBe('kept by orch\n');
      expect(await ok(control, 'journalctl -u orch-serve')).not.toContain(secret);
      // The same line repairs what is broken, although its token is used up.
      await ok(db, 'echo broken >/opt/orch/current/dist/orch/orch.js');
      expect(await paste(curl)).toMatchObject({ status: 0, stdout: expect.stringContaining('It is connected.') });
      expect(await paste(curl)).toMatchObject({ status: 0, stdout: expect.stringContaining('is installed already') });
      expect(await ok(db, 'ls -A /opt/orch /opt/orch/releases | wc -l')).toBe('6\n');
    });

    it('keep their places over a reboot', async () => {
      await Promise.all([control.reboot(), web.reboot(), db.reboot()]);
      await until(isConnected, 'the agent is connected again');
      await until(() => connectedAs('db-01'), 'the agent without a package is connected again');
    });

    it('keep nothing of a pasted line after a purge, and become agents again by the line for wget', async () => {
      expect(await ok(db, 'orch agent uninstall --purge --yes')).toContain('Stopped and removed');
      expect(
        await ok(
          db,
          'find / -xdev -name "*orch*" -not -path "/proc/*" -not -path "/sys/*" -not -path "/srv*" -not -path "/run/*" -not -path "/var/log/*" -not -path "/etc/host*" -not -path "/tmp/*"',
        ),
      ).toBe('');
      await ok(db, 'mv /usr/bin/curl /usr/bin/hidden');
      const { wget, token: secret } = await lines();
      const pasted = await paste(wget);
      expect(pasted).toMatchObject({ status: 0, stdout: expect.stringContaining('It is connected.') });
      expect(`${pasted.stdout}${pasted.stderr}`).not.toContain(secret);
    });

    it('take a package over the release of the line, even when the agent itself installs it', async () => {
      await control.writeFile('/root/upgrade.orch.yaml', UPGRADE);
      const agent = (await agents()).find(({ initial_hostname: host, connected }) => host === 'db-01' && connected);
      const pid = await ok(db, 'systemctl show --value --property=MainPID orch-agent');
      expect(await ok(control, `orch apply ${agent?.name} -f /root/upgrade.orch.yaml --yes`)).toContain(
        'Applied: 1 script run',
      );
      expect(await ok(db, 'dpkg --status orch')).toContain('Status: install ok installed');
      await until(
        async () => (await ok(db, 'systemctl show --value --property=MainPID orch-agent')) !== pid,
        'the agent was restarted',
      );
      expect(await ok(db, 'systemctl cat orch-agent')).toContain('ExecStart=/usr/bin/orch agent connect orch:4747');
      expect(await ok(db, 'ls /opt/orch /usr/local/bin; command -v orch')).toBe(
        '/opt/orch:\nreleases\n\n/usr/local/bin:\n/usr/bin/orch\n',
      );
      await until(() => connectedAs('db-01'), 'the agent of the package is connected');
      await ok(db, 'mv /usr/bin/hidden /usr/bin/curl');
      const again = await paste((await lines()).curl);
      expect(again).toMatchObject({ status: 0, stdout: expect.not.stringContaining('Downloading') });
      expect(await ok(db, 'ls /opt/orch')).toBe('releases\n');
      await ok(db, 'dpkg --purge orch 2>&1; test ! -e /opt/orch');
    });

    it('are healthy for orch doctor, which names what has stopped and how to start it', async () => {
      for (const host of [control, web]) {
        const { status, stdout } = await host.run(['orch', 'doctor']);
        expect(stdout).toContain('No problems.');
        expect(stdout).not.toContain('warning');
        expect(status).toBe(0);
      }
      expect(await ok(control, 'orch doctor')).toMatch(/^ok +serve ready +it listens: API https/m);
      await ok(web, 'systemctl stop orch-agent');
      await ok(control, 'systemctl stop orch-serve');
      const agent = await web.run(['orch', 'doctor']);
      expect(agent).toMatchObject({
        status: 1,
        stdout: expect.stringContaining('sudo systemctl start orch-agent.service'),
      });
      const serve = await control.run(['orch', 'doctor']);
      expect(serve.status).toBe(1);
      expect(serve.stdout).toMatch(/^problem +serve service +orch-serve.service is inactive/m);
      expect(serve.stdout).toMatch(/^ok +serve store +1 MiB, whole/m);
      expect(serve.stdout).toMatch(/^problem +orchestrator .*nothing listens there/m);
      // A copy as orch serve makes it before a migration, and the way back to it in docs/upgrading.md.
      const copy = '/var/lib/orch/orch.db.schema-1-2026-03-01T12-00-00.000Z';
      await ok(control, `cp -p /var/lib/orch/orch.db ${copy}`);
      await ok(control, `runuser -u orch -- orch serve restore ${copy} --data-dir /var/lib/orch --yes`);
      expect(await ok(control, 'find /var/lib/orch ! -user orch')).toBe('');
      await web.writeFile('/etc/orch/agent.yaml', 'remote_terminal: [\n');
      await web.run(['systemctl', 'start', 'orch-agent']);
      await until(
        async () => (await web.run(['orch', 'doctor'])).stdout.includes('ends again and again'),
        'it is found',
      );
      await web.writeFile('/etc/orch/agent.yaml', 'remote_terminal: {enabled: true}\n');
      await ok(control, 'systemctl start orch-serve');
      await until(isConnected, 'the agent is connected again');
    });

    it('run again after the package was installed again', async () => {
      await install(control);
      await install(web);
      await until(isConnected, 'the agent is connected again');
    });

    it('show the token later when the orchestrator is not there yet', async () => {
      await ok(web, 'orch agent leave --yes');
      const fresh = await token();
      await web.cutCable();
      const said = await web.run(['sh', '-c', `echo ${fresh} | orch agent install orch --token -`], {
        timeoutMs: 120_000,
      });
      expect(said).toMatchObject({ status: 0, stdout: expect.stringContaining('keeps trying') });
      await web.plugCable();
      await until(
        async () => (await agents()).filter(({ connected }) => connected).length === 1,
        'an agent is connected',
      );
      expect(await ok(web, 'ls /var/lib/orch-agent')).not.toContain('enrolment-token');
    });

    it('lose the service and keep the data with uninstall', async () => {
      expect(await ok(control, 'orch serve uninstall --yes')).toContain('Kept: /var/lib/orch');
      expect(await control.run(['systemctl', 'is-active', 'orch-serve'])).toMatchObject({ stdout: 'inactive\n' });
      await ok(control, 'orch serve install');
      await until(async () => (await agents()).some(({ connected }) => connected), 'an agent is connected');
    });

    it('keep nothing but what modules have made after a purge', async () => {
      await ok(web, 'dpkg --purge orch 2>&1');
      const left = await ok(
        web,
        'find / -xdev -name "*orch*" -not -path "/proc/*" -not -path "/srv/*" -not -path "/var/log/*"',
      );
      expect(
        left.split('\n').filter((path) => !/^\/(run|sys|tmp|etc\/(hosts|hostname))/.test(path) && path !== ''),
      ).toEqual([]);
      expect(await web.run(['getent', 'passwd', 'orch'])).toMatchObject({ status: 2 });
      expect(await web.readFile('/etc/motd')).toBe('kept by orch\n');
    });
  },
  needs,
);
