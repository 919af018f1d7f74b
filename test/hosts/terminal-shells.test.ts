/** How programs of sessions are started where a machine lacks what is preferred for that: setpriv, bash, an entry in /etc/passwd. */
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { until } from '../support/orch.js';
import type { BootedHost } from './host.js';
import { describeHosts } from './requirements.js';
import { startTerminalSite, type TerminalSite } from './terminal-site.js';

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

const AS_ADA = 'remote_terminal: {enabled: true, user: ada}';
const AS_ROOT = 'remote_terminal: {enabled: true}';

describeHosts('programs of sessions on a machine that lacks', () => {
  let site: TerminalSite;
  let web: BootedHost;

  beforeAll(async () => {
    site = await startTerminalSite();
    ({ web } = site);
  });

  afterAll(async () => {
    await site?.stop();
  });

  const exec = (line: string, ...options: readonly string[]) =>
    site.orch('exec', 'web-01', ...options, '--', 'sh', '-c', line);

  /** Runs `work` while the programs have another name. */
  async function without(paths: readonly string[], work: () => Promise<void>): Promise<void> {
    for (const path of paths) expect(await web.run(['mv', path, `${path}.away`])).toMatchObject({ status: 0 });
    try {
      await work();
    } finally {
      for (const path of paths) await web.run(['mv', `${path}.away`, path]);
    }
  }

  /** A command's view of itself, without the parts that are new in each session. */
  async function surroundings(): Promise<string> {
    const facts = 'id -u; id -g; id -G; id -un; pwd; umask; grep -E "^(Cap(Inh|Prm|Eff)|Groups)" /proc/self/status';
    const { status, stdout, stderr } = await exec(
      `${facts}; env | grep -Ev "^(ORCH_SESSION|_|SHLVL|PWD|OLDPWD)=" | sort`,
    );
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    return stdout;
  }

  async function descriptors(): Promise<readonly string[]> {
    return (await exec('ls /proc/$$/fd; true')).stdout.trim().split(/\s+/);
  }

  /** The usual ends of a command. */
  async function expectEnds(): Promise<void> {
    expect(await exec('exit 7')).toMatchObject({ status: 7 });
    expect(await exec('kill -TERM $$')).toMatchObject({ status: 143 });
    expect(await exec('sleep 4711; true', '--timeout', '1s')).toMatchObject({ status: 124 });
    expect((await web.run(['pgrep', '-f', 'sleep 4711'])).stdout).toBe('');
  }

  /** One that ends by itself, and one that is closed. @param groups name, then groups */
  async function expectLoginShell(name: string, groups: string, directory: string): Promise<void> {
    const terminal = await site.onTerminal('orch term web-01');
    terminal.write('echo "is: $0 $(id -un) $(id -Gn) $(tty) $(pwd) $- $(stty size)"; exit 9\n');
    const { status, stdout } = await terminal.ended;
    expect(status).toBe(9);
    const [, told] = /[\r\n]is: (.*)\r\n/.exec(stdout) ?? [];
    expect(told).toMatch(new RegExp(`^${name} ${groups} /dev/pts/\\d+ ${directory} \\S*m\\S* \\d+ \\d+$`));
    const closed = await site.onTerminal('orch term web-01');
    closed.write('sleep 4712; echo over\n');
    await until(async () => (await web.run(['pgrep', '-x', 'sleep'])).stdout !== '', 'the program runs');
    await site.orch('term', 'close', (await site.newest()).session_id, '--yes');
    expect((await closed.ended).status).toBe(254);
    await until(async () => (await web.run(['pgrep', '-x', 'sleep'])).stdout === '', 'the program is gone');
  }

  it('an entry in /etc/passwd: the user is found as the machine finds it', async () => {
    await web.writeFile('/var/lib/extrausers/passwd', 'eve:x:4242:4242:Eve:/srv/eve:/bin/sh\n', '0644');
    await web.writeFile('/var/lib/extrausers/group', 'eve:x:4242:\npilots:x:4243:eve\n', '0644');
    await web.writeFile('/var/lib/extrausers/shadow', 'eve:*:::::::\n', '0640');
    await web.run(['sed', '-i', 's/^\\(passwd\\|group\\):.*/\\1: files extrausers/', '/etc/nsswitch.conf']);
    await site.configure('remote_terminal: {enabled: true, user: eve}');
    // Her home directory is not there.
    expect((await exec('id -un; id -Gn; echo $HOME; pwd')).stdout).toBe('eve\neve pilots\n/srv/eve\n/\n');
    await web.run(['install', '-d', '-o', 'eve', '/srv/eve']);
    expect((await exec('pwd')).stdout).toBe('/srv/eve\n');
    await site.configure('remote_terminal: {enabled: true, user: nobody-here}');
    expect(await exec('true')).toMatchObject({ status: 255, stderr: expect.stringContaining('there is no user') });
  });

  describe('setpriv: runuser', () => {
    let preferred = '';

    beforeAll(async () => {
      await site.configure(AS_ADA);
      preferred = await surroundings();
      expect(preferred).toContain('\nada\n/home/ada\n0022\n');
    });

    it('gives the same user, groups, directory, rights and environment', async () => {
      await without(['/usr/bin/setpriv'], async () => {
        expect(await surroundings()).toBe(preferred);
        expect(await descriptors()).toEqual(['0', '1', '2']);
        await expectEnds();
        await expectLoginShell('-bash', 'ada ada engines', '/home/ada');
      });
    });

    it('is taken where setpriv is that of BusyBox, which knows no users', async () => {
      await without(['/usr/bin/setpriv'], async () => {
        await web.run(['ln', '-s', '/bin/busybox', '/usr/local/bin/setpriv']);
        expect(await surroundings()).toBe(preferred);
        await web.run(['rm', '/usr/local/bin/setpriv']);
      });
    });

    it('and runuser: says what to install', async () => {
      await without(['/usr/bin/setpriv', '/usr/sbin/runuser'], async () => {
        const { status, stderr } = await exec('true');
        expect([status, stderr]).toEqual([255, expect.stringContaining('install setpriv (util-linux)')]);
        await site.configure(AS_ROOT);
        expect(await exec('id -un')).toMatchObject({ status: 0, stdout: 'root\n' });
      });
    });
  });

  describe('bash', () => {
    const BASH = '/usr/bin/bash';

    /** No bash, and the shell of BusyBox for all. */
    async function withBusyBox(work: () => Promise<void>): Promise<void> {
      await without([BASH, '/usr/bin/sh'], async () => {
        await web.run(['/usr/bin/busybox', 'ln', '-s', 'busybox', '/usr/bin/sh']);
        try {
          await work();
        } finally {
          await web.run(['/usr/bin/busybox', 'rm', '/usr/bin/sh']);
        }
      });
    }

    it('and has a shell that cannot close descriptors: refuses, and says what to install', async () => {
      await site.configure(AS_ROOT);
      await without([BASH], async () => {
        const { status, stderr } = await exec('true');
        expect([status, stderr]).toEqual([255, expect.stringContaining('descriptors: install bash')]);
      });
    });

    it('but has a shell that can close them: is the same for root, and a login shell', async () => {
      await site.configure(AS_ROOT);
      await web.run(['usermod', '--shell', '/bin/sh', 'root']);
      const preferred = await surroundings();
      await withBusyBox(async () => {
        expect(await surroundings()).toBe(preferred);
        expect(await descriptors()).toEqual(['0', '1', '2']);
        await expectEnds();
        await web.writeFile('/etc/profile.d/seen.sh', 'export SEEN=profile\n', '0644');
        const shell = await site.onTerminal('orch term web-01');
        shell.write('echo "is: $SEEN $(pwd)"; exit 3\n');
        const { status, stdout } = await shell.ended;
        expect([status, stdout]).toEqual([3, expect.stringContaining('is: profile /root')]);
      });
    });

    it('but has a shell that can close them: is the same for a user, with setpriv or runuser', async () => {
      await site.configure(AS_ADA);
      await web.run(['usermod', '--shell', '/bin/sh', 'ada']);
      const preferred = await surroundings();
      await withBusyBox(async () => {
        expect(await surroundings()).toBe(preferred);
        expect(await descriptors()).toEqual(['0', '1', '2']);
        await expectEnds();
        await expectLoginShell('/bin/sh', 'ada ada engines', '/home/ada');
        await without(['/usr/bin/setpriv'], async () => {
          expect(await surroundings()).toBe(preferred);
          await expectEnds();
          await expectLoginShell('/bin/sh', 'ada ada engines', '/home/ada');
        });
      });
    });
  });
});
