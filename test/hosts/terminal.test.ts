/** Terminals and commands on booted Debian machines: as root and as a user, cut cables, dead agents, a killed orchestrator. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { AuditEvent } from '../../src/contract/audit.js';
import type { TerminalDetail } from '../../src/contract/terminal.js';
import { until } from '../support/orch.js';
import type { BootedHost } from './host.js';
import { describeHosts } from './requirements.js';
import { startTerminalSite, type TerminalSite } from './terminal-site.js';

const ALLOWED = 'remote_terminal: {enabled: true, allow_operator_shell_override: true';

describeHosts('terminals of a booted machine', () => {
  let site: TerminalSite;
  let control: BootedHost;
  let web: BootedHost;
  const orch: TerminalSite['orch'] = (...args) => site.orch(...args);
  const json: TerminalSite['json'] = (...args) => site.json(...args);
  const sh: TerminalSite['sh'] = (line) => site.sh(line);
  const onTerminal: TerminalSite['onTerminal'] = (line) => site.onTerminal(line);
  const newest: TerminalSite['newest'] = () => site.newest();
  const isConnected: TerminalSite['isConnected'] = () => site.isConnected();
  const configure: TerminalSite['configure'] = (yaml) => site.configure(yaml);

  beforeAll(async () => {
    site = await startTerminalSite({ configuration: 'terminal: {agent_grace_secs: 20}' });
    ({ control, web } = site);
  });

  afterAll(async () => {
    await site?.stop();
  });

  it('has none unless the machine allows it', async () => {
    const refused = await orch('exec', 'web-01', '--', 'true');
    expect(refused).toMatchObject({ status: 255, stdout: '' });
    expect(refused.stderr).toContain('remote_terminal');
    expect((await (await onTerminal('orch term web-01')).ended).status).toBe(255);
    await configure(`${ALLOWED}}`);
  });

  it('runs a command as root, with nothing of the agent about it', async () => {
    expect(await orch('exec', 'web-01', '--', 'id', '-un')).toMatchObject({ status: 0, stdout: 'root\n' });
    expect(await orch('exec', 'web-01', '--', 'sh', '-c', 'echo out; echo err >&2; exit 7')).toMatchObject({
      status: 7,
      stdout: 'out\n',
      stderr: expect.stringContaining('err\n') as string,
    });
    const { stdout: environment } = await orch('exec', 'web-01', '--', 'env');
    expect(environment).not.toMatch(/ORCH_AGENT|NODE_|ORCHESTRATOR/);
    expect(environment).toContain('ORCH_OPERATOR=');
    const { stdout: descriptors } = await orch('exec', 'web-01', '--', 'sh', '-c', 'ls /proc/$$/fd');
    expect(descriptors.trim().split(/\s+/)).toEqual(['0', '1', '2']);
  });

  it('has the language that the machine sets for logins, in the file of Debian or in that of systemd', async () => {
    // The operator's own language would stand above that of the machine.
    const line = ['env', '-u', 'LANG', 'orch', 'exec', 'web-01', '--', 'sh', '-c', 'echo $LANG'];
    const language = async () => (await control.run(line)).stdout;
    const files = ['/etc/default/locale', '/etc/locale.conf'];
    await web.run(['rm', '-f', ...files]);
    expect(await language()).toBe('C.UTF-8\n');
    for (const file of files) {
      await web.writeFile(file, 'LANG=de_DE.UTF-8\n', '0644');
      expect(await language()).toBe('de_DE.UTF-8\n');
      await web.run(['rm', '-f', file]);
    }
  });

  it('is a login shell on a terminal, and ends with its status', async () => {
    const terminal = await onTerminal('orch term web-01');
    terminal.write('echo "$0 $(id -un) $(tty)"; stty size; exit 9\n');
    const { status, stdout } = await terminal.ended;
    expect(stdout).toMatch(/-\S*sh root \/dev\/pts\/\d/);
    expect(status).toBe(9);
    expect(await newest()).toMatchObject({ status: 'closed', exit_code: 9, user: 'root', recording: 'complete' });
  });

  it('leaves a line in the log of the machine for each that is opened and closed', async () => {
    const log = await sh('journalctl --sync; journalctl -t orch SYSLOG_FACILITY=10');
    const { session_id: id } = await newest();
    expect(log.split('\n').filter((line) => line.includes(id)).length).toBeGreaterThanOrEqual(2);
  });

  it("runs as the user that the machine names, with that user's groups", async () => {
    await configure(`${ALLOWED}, user: ada}`);
    const { stdout } = await orch('exec', 'web-01', '--', 'sh', '-c', 'id -un; id -Gn; pwd; echo $HOME');
    expect(stdout).toBe('ada\nada engines\n/home/ada\n/home/ada\n');
    const terminal = await onTerminal('orch term web-01');
    terminal.write('id -un; id -Gn; exit 0\n');
    expect((await terminal.ended).stdout).toMatch(/ada\r?\nada engines/);
    await configure(`${ALLOWED}}`);
  });

  it('opens only what is a shell', async () => {
    const refused = await onTerminal('orch term web-01 --shell /usr/bin/env');
    const { status, stdout } = await refused.ended;
    expect(status).toBe(255);
    expect(stdout).toContain('/etc/shells');
    const page = await json<{ events: AuditEvent[] }>('audit', 'list', '--type', 'terminal.refused');
    expect(page.events.length).toBeGreaterThan(0);
  });

  it('survives a cut cable without losing or doubling a byte', async () => {
    const terminal = await onTerminal('orch term web-01');
    terminal.write('stty -echo; PS1=; for i in $(seq 1 400); do echo "line $i"; sleep 0.05; done; echo "all"" done"\n');
    await terminal.said(/line 20\r/);
    await web.cutCable();
    // How long the cable is out is what is tried.
    await new Promise((resolve) => setTimeout(resolve, 3_000));
    await web.plugCable();
    await terminal.said(/all done/, 120_000);
    terminal.write('exit 4\n');
    const { status, stdout } = await terminal.ended;
    expect(status).toBe(4);
    const lines = [...stdout.matchAll(/line (\d+)\r/g)].map(([, number]) => Number(number));
    expect(lines).toEqual(Array.from({ length: 400 }, (_, index) => index + 1));
  });

  it('goes on when the orchestrator is killed, with a transcript that is whole', async () => {
    const terminal = await onTerminal('orch term web-01');
    terminal.write('stty -echo; PS1=; for i in $(seq 1 300); do echo "row $i"; sleep 0.05; done; echo "all"" done"\n');
    await terminal.said(/row 20\r/);
    await control.run(['systemctl', 'kill', '--signal=SIGKILL', 'orch-serve']);
    await terminal.said(/all done/, 120_000);
    terminal.write('exit 5\n');
    const { status, stdout } = await terminal.ended;
    expect(status).toBe(5);
    const rows = (text: string) => [...text.matchAll(/row (\d+)\r/g)].map(([, number]) => Number(number));
    const all = Array.from({ length: 300 }, (_, index) => index + 1);
    expect(rows(stdout)).toEqual(all);
    const { session_id: id } = await newest();
    expect(rows((await orch('term', 'transcript', id, '--format', 'raw')).stdout)).toEqual(all);
    expect(await json<TerminalDetail>('term', 'show', id)).toMatchObject({ status: 'closed', recording: 'complete' });
  });

  it('ends as interrupted when the agent is killed, and nothing of it lives on', async () => {
    const terminal = await onTerminal('orch term web-01');
    terminal.write('sleep 4242 & nohup sleep 4243 >/dev/null 2>&1 & echo be"gun"\n');
    await terminal.said(/begun/);
    await web.run(['systemctl', 'kill', '--kill-whom=main', '--signal=SIGKILL', 'orch-agent']);
    expect((await terminal.ended).status).toBe(255);
    expect(await newest()).toMatchObject({ status: 'interrupted', reason: 'agent_lost', exit_code: null });
    await until(
      async () => (await sh('pgrep -f "sleep 424[23]" || echo none')).trim() === 'none',
      'its programs are gone',
    );
    await until(isConnected, 'the agent is back');
  });

  it('ends as interrupted when the machine reboots', async () => {
    const terminal = await onTerminal('orch term web-01');
    terminal.write('echo be"gun"\n');
    await terminal.said(/begun/);
    await web.reboot();
    expect((await terminal.ended).status).toBe(255);
    expect(await newest()).toMatchObject({ status: 'interrupted' });
    await until(isConnected, 'the agent is back');
    expect(await orch('exec', 'web-01', '--', 'true')).toMatchObject({ status: 0 });
  });
});
