/** `ssh`, `scp`, `rsync` and Ansible of Debian through the agent of a booted machine, whose sshd no other machine reaches, and `orch cp`. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { AuditEvent } from '../../src/contract/audit.js';
import { until } from '../support/orch.js';
import type { Outcome } from './command.js';
import { describeHosts } from './requirements.js';
import { startTerminalSite, type TerminalSite } from './terminal-site.js';

const SETTINGS = '{ssh_proxy: {targets: ["localhost:22"]}, copy: {read: [/srv], write: [/srv]}}';

describeHosts('the tools of ssh through an agent', () => {
  let site: TerminalSite;
  /** Runs a line on the operator's machine. */
  const here = (line: string): Promise<Outcome> => site.control.run(['sh', '-c', line], { timeoutMs: 120_000 });
  const good = async (line: string): Promise<string> => {
    const { status, stdout, stderr } = await here(line);
    expect([line, status, status === 0 ? '' : stderr]).toEqual([line, 0, '']);
    return stdout;
  };

  beforeAll(async () => {
    site = await startTerminalSite({ packages: ['openssh-server', 'rsync', 'ansible-core'] });
    const { web } = site;
    await site.configure(SETTINGS);
    await web.writeFile('/etc/ssh/sshd_config.d/local.conf', 'ListenAddress 127.0.0.1\n');
    await web.run(['systemctl', 'restart', 'ssh']);
    await good(
      'mkdir -p -m 700 ~/.ssh && ssh-keygen -q -t ed25519 -N "" -f ~/.ssh/id_ed25519 && mkdir -p /srv/tree/below',
    );
    const key = await good('cat ~/.ssh/id_ed25519.pub');
    await web.run(['install', '-d', '-m', '700', '-o', 'ada', '-g', 'ada', '/home/ada/.ssh']);
    await web.writeFile('/home/ada/.ssh/authorized_keys', key, '0644');
    await good('orch ssh-config > ~/.ssh/orch.conf');
    await good(
      'printf "Include orch.conf\\nHost *\\n  User ada\\n  StrictHostKeyChecking accept-new\\n" > ~/.ssh/config',
    );
    await good(
      'head -c 3000000 /dev/urandom > /srv/tree/data; ln -s data /srv/tree/link; echo text > "/srv/tree/below/two words"',
    );
    await until(async () => (await here('ssh web-01 true')).status === 0, 'ssh works');
  });

  afterAll(async () => {
    await site?.stop();
  });

  const sums = 'find . -type f -exec sha256sum {} + | sort -k 2';
  const sumsThere = async (directory: string) => site.sh(`cd ${directory} && ${sums}`);

  it('reaches a sshd that listens for its own machine alone, with a status, input and output', async () => {
    expect((await here('ssh -o ProxyCommand=none web-01 true')).stderr).toContain('Connection refused');
    expect(await here('echo typed | ssh web-01 "cat; id -un; exit 7"')).toMatchObject({
      status: 7,
      stdout: 'typed\nada\n',
    });
  });

  it('copies with scp and rsync, both ways', async () => {
    const before = await good(`cd /srv/tree && ${sums}`);
    await good('scp -rq /srv/tree web-01:by-scp && scp -rq web-01:by-scp /tmp/by-scp');
    await good('rsync -a /srv/tree/ web-01:by-rsync/ && rsync -a web-01:by-rsync/ /tmp/by-rsync/');
    for (const copy of ['by-rsync', 'by-scp']) {
      expect(await good(`cd /tmp/${copy} && rm -f link && ${sums}`)).toContain('two words');
    }
    expect(await sumsThere('/home/ada/by-rsync')).toBe(before);
    expect(await good(`cd /tmp/by-rsync && ${sums}`)).toBe(before);
  });

  it('carries Ansible', async () => {
    await good('printf "[web]\\nweb-01\\n" > /tmp/inventory');
    const ansible = 'ANSIBLE_NOCOLOR=1 ansible -i /tmp/inventory web';
    expect(await good(`${ansible} -m ping`)).toContain('"ping": "pong"');
    await good(`${ansible} -m copy -a 'content=managed dest=/home/ada/managed mode=0640'`);
    expect(await site.sh('stat -c "%a %U" /home/ada/managed; cat /home/ada/managed')).toBe('640 ada\nmanaged');
  });

  it('is beside orch cp, which needs no sshd', async () => {
    await site.web.run(['systemctl', 'stop', 'ssh.service', 'ssh.socket']);
    await good('orch cp -rp /srv/tree web-01:/srv/by-cp && orch cp -rp web-01:/srv/by-cp /tmp/by-cp');
    const before = await good(`cd /srv/tree && ${sums}`);
    expect(await sumsThere('/srv/by-cp')).toBe(before);
    expect(await good(`cd /tmp/by-cp && ${sums}`)).toBe(before);
    expect(await site.sh('readlink /srv/by-cp/link; stat -c %U /srv/by-cp/data')).toBe('data\nroot\n');
    const events = async (type: string) =>
      (await site.json<{ readonly events: readonly AuditEvent[] }>('audit', 'list', '--type', type)).events;
    expect((await events('copy.closed')).map(({ metadata }) => metadata.direction).sort()).toEqual(['read', 'write']);
    expect(new Set((await events('forward.closed')).map(({ metadata }) => metadata.kind))).toEqual(
      new Set(['ssh-proxy']),
    );
  });
});
