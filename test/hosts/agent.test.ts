/** The agent as a service of a booted Debian machine: stopped, killed and configured in the middle of its work, and taken out of its fleet. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Agent } from '../../src/contract/agents.js';
import type { OperationDetail } from '../../src/contract/operations.js';
import type { RunResult } from '../../src/contract/runs.js';
import type { MetricsSample } from '../../src/kernel/schema.js';
import type { Output } from '../../src/resources/result.js';
import { agentUnit } from '../../src/service/units.js';
import { until } from '../support/orch.js';
import { type DebRepository, debRepository, debTools } from './deb-repository.js';
import { type Fleet, startFleet } from './fleet.js';
import type { BootedHost } from './host.js';
import { describeHosts } from './requirements.js';

const unit = (name: string) => readFileSync(fileURLToPath(new URL(`units/${name}.service`, import.meta.url)), 'utf8');

const site = (conf: string, work: string) => `name: site
supports: [{platform: linux}]
resources:
  - id: conf
    resource:
      file-unix: {path: /etc/site.conf, content: "${conf}\\n"}
  - id: work
    resource:
      script:
        program: sh
        apply: |
          ${work.replaceAll('\n', '\n          ')}
        check: test -e /root/worked
        undo: rm /root/worked
        rerun_on: [conf]
  - depends_on: [work]
    resource:
      file-unix: {path: /etc/site.last, content: "${conf}\\n"}
`;

describeHosts(
  'the agent of a booted machine',
  () => {
    let fleet: Fleet;
    let control: BootedHost;
    let web: BootedHost;
    let node: string;
    let repository: DebRepository;

    const orch = (...args: readonly string[]) => control.run(['orch', ...args], { timeoutMs: 120_000 });
    const json = async <T>(...args: readonly string[]): Promise<T> => {
      const { status, stdout, stderr } = await orch(...args, '-o', 'json');
      if (status !== 0) throw new Error(`orch ${args.join(' ')} ended with ${status}:\n${stderr}${stdout}`);
      return JSON.parse(stdout) as T;
    };
    const sh = async (line: string) => (await web.run(['sh', '-c', line])).stdout;
    const push = async (module: string) => {
      await control.writeFile('/root/site.orch.yaml', module);
      expect(await orch('module', 'publish', '/root/site.orch.yaml')).toMatchObject({ status: 0 });
    };
    /** Begins an apply and comes back as soon as the agent has got to the script. */
    const begin = async (module: string): Promise<string> => {
      await push(module);
      await sh('rm -f /root/begun');
      const body = JSON.stringify({ modules: ['site'], wait: false, allow_removals: 9 });
      const { operation_id: id } = await json<RunResult>('api', 'POST', `/agents/${node}/apply`, '--data', body);
      await until(async () => (await web.run(['test', '-s', '/root/begun'])).status === 0, 'the script has begun');
      return id ?? '';
    };
    const ended = async (id: string): Promise<OperationDetail> => {
      let operation: OperationDetail | undefined;
      await until(async () => {
        operation = await json<OperationDetail>('ops', 'show', id);
        return operation.finished_at !== null;
      }, `operation ${id} has ended`);
      if (operation === undefined) throw new Error('it has ended');
      return operation;
    };
    const fates = ({ resources }: Pick<OperationDetail, 'resources'>) =>
      resources.map(({ identity, action, status, error }) =>
        [identity, action, status, ...(error ? [error.code] : [])].join(' '),
      );
    const isConnected = async () => (await json<Agent[]>('agents', 'list')).some(({ connected }) => connected);

    beforeAll(async () => {
      repository = debRepository();
      const postinst = 'touch /root/configuring\nfor i in $(seq 300); do [ -e /root/go ] && break; sleep 0.1; done';
      await repository.publish([
        { name: 'slow', version: '1.0', postinst },
        { name: 'quick', version: '1.0' },
      ]);
      const binds = [{ from: repository.directory, to: '/srv/debs' }];
      fleet = await startFleet({ hosts: ['orch', 'web-01'], binds });
      control = fleet.host('orch');
      web = fleet.host('web-01');
      await web.writeFile('/etc/apt/sources.list', 'deb [trusted=yes] file:/srv/debs ./\n');
      expect(await orch('operator', 'init')).toMatchObject({ status: 0 });
      await control.writeFile('/etc/orch/orchestrator.yaml', 'metrics: {poll_interval: 1}\n');
      await control.writeFile('/etc/systemd/system/orch-serve.service', unit('orch-serve'));
      expect(await control.run(['systemctl', 'enable', '--now', 'orch-serve'])).toMatchObject({ status: 0 });
      await until(async () => (await orch('status')).stderr.includes('--tls-fingerprint'), 'the API answers');
      const fingerprint = /--tls-fingerprint ([0-9a-f:]{64,})/.exec((await orch('status')).stderr)?.[1] as string;
      const url = ['--url', 'https://127.0.0.1:4748', '--tls-fingerprint', fingerprint];
      expect(await orch('profile', 'create', 'here', ...url)).toMatchObject({ status: 0 });
      const { public_key: key } = await json<{ public_key: string }>('status');
      await web.writeFile('/etc/orch/agent.env', `ORCHESTRATOR=orch:4747\nORCHESTRATOR_KEY=${key}\n`, '0600');
      // The text of `orch agent install`.
      const words = ['connect', 'orch:4747', '--orchestrator-key', key];
      await web.writeFile('/etc/systemd/system/orch-agent.service', agentUnit(['/usr/local/bin/orch'], words));
      expect(await web.run(['systemctl', 'enable', '--now', 'orch-agent'])).toMatchObject({ status: 0 });
      await until(async () => (await json<Agent[]>('agents', 'list')).length === 1, 'the machine waits');
      node = (await json<Agent[]>('agents', 'list'))[0]?.node_id as string;
      expect(await orch('agents', 'approve', node, '--name', 'web-01', '--yes')).toMatchObject({ status: 0 });
    });

    afterAll(async () => {
      await fleet?.stop();
      repository?.remove();
    });

    it('runs a script, and keeps what it wrote', async () => {
      await push(site('one', 'echo done; echo "a warning" >&2; echo one >>/root/worked'));
      const run = await json<RunResult>('apply', 'web-01', '-m', 'site', '--yes');
      expect(run).toMatchObject({ status: 'succeeded', summary: { changed: 3 } });
      const { output } = await json<{ output: Record<string, Output> }>('ops', 'output', run.operation_id as string);
      expect(output).toEqual({
        'site/work': { stdout: 'done\n', stderr: 'a warning\n', exit_code: 0, truncated: false },
      });
      expect((await orch('ops', 'output', run.operation_id as string)).stdout).toContain('a warning');
    });

    it('finishes the script that runs when it is stopped, and says that the rest was not begun', async () => {
      const id = await begin(site('two', 'echo $$ >/root/begun; sleep 3; echo two >>/root/worked'));
      expect(await web.run(['systemctl', 'stop', 'orch-agent'])).toMatchObject({ status: 0 });
      expect(await web.readFile('/root/worked')).toBe('one\ntwo\n');
      expect((await sh('systemctl show orch-agent -p Result')).trim()).toBe('Result=success');
      await web.run(['systemctl', 'start', 'orch-agent']);
      expect(fates(await ended(id))).toEqual([
        '/etc/site.conf update changed',
        'work run changed',
        '/etc/site.last none skipped interrupted',
      ]);
      expect(await json<RunResult>('apply', 'web-01', '-m', 'site', '--yes')).toMatchObject({ status: 'succeeded' });
      expect(await web.readFile('/root/worked')).toBe('one\ntwo\n');
    });

    it('owes the rerun of a script that was cut off with it, and pays it with the next apply', async () => {
      const id = await begin(site('three', 'echo $$ >/root/begun; sleep 3; echo three >>/root/worked'));
      await web.run(['systemctl', 'kill', '--signal=KILL', 'orch-agent']);
      const operation = await ended(id);
      expect(operation.status).toBe('interrupted');
      expect(operation.resources[0]).toMatchObject({ status: 'changed' });
      expect(await sh('ls -A /var/lib/orch-agent/scripts')).toBe('');
      await push(site('three', 'echo three >>/root/worked'));
      const plan = await json<RunResult>('plan', 'web-01', '-m', 'site');
      expect(plan.resources[1]).toMatchObject({ action: 'run', reason: `rerun owed since operation ${id}` });
      expect(await json<RunResult>('apply', 'web-01', '-m', 'site', '--yes')).toMatchObject({ status: 'succeeded' });
      expect((await web.readFile('/root/worked')).trim().split('\n').at(-1)).toBe('three');
      expect(await json<RunResult>('plan', 'web-01', '-m', 'site')).toMatchObject({ has_changes: false });
    });

    it('is killed with its unit while dpkg runs, which goes on to its end', async () => {
      await control.writeFile(
        '/root/slow.orch.yaml',
        'name: slow\nsupports: [{platform: linux}]\nresources:\n  - resource: {package-apt: {name: slow}}\n',
      );
      expect(await orch('module', 'publish', '/root/slow.orch.yaml')).toMatchObject({ status: 0 });
      const body = JSON.stringify({ modules: ['site', 'slow'], wait: false });
      const { operation_id: id } = await json<RunResult>('api', 'POST', `/agents/${node}/apply`, '--data', body);
      await until(async () => (await web.run(['test', '-e', '/root/configuring'])).status === 0, 'dpkg is at work');
      const before = await sh('systemctl show orch-agent -p MainPID');
      await web.run(['systemctl', 'kill', '--signal=KILL', 'orch-agent']);
      expect((await ended(id ?? '')).status).toBe('interrupted');
      expect(await sh('systemctl show orch-agent -p MainPID')).not.toBe(before);
      expect(await sh('dpkg-query -W -f "\\${db:Status-Status}" slow')).toBe('half-configured');
      await sh('touch /root/go');
      await until(
        async () => (await sh('dpkg-query -W -f "\\${db:Status-Status}" slow')) === 'installed',
        'dpkg has finished',
      );
      await until(async () => (await sh('pgrep -x apt-get')) === '', 'apt has finished');
      const again = await json<RunResult>('apply', 'web-01', '-m', 'site', '-m', 'slow', '--yes');
      expect(again).toMatchObject({ status: 'succeeded', has_changes: false });
    });

    describe('whose own unit an apply restarts', () => {
      const DROP_IN = '/etc/systemd/system/orch-agent.service.d/own.conf';
      const own = (dropIn: string, after: string, ...more: readonly object[]) =>
        JSON.stringify({
          name: 'own',
          supports: [{ platform: 'linux' }],
          resources: [
            { id: 'cfg', resource: { 'file-unix': { path: DROP_IN, content: `[Service]\n${dropIn}\n` } } },
            { resource: { 'service-systemd': { name: 'orch-agent', running: true, restart_on: ['cfg'] } } },
            { resource: { 'file-unix': { path: '/srv/after', content: `${after}\n` } } },
            ...more,
          ],
        });
      const applyOwn = async (text: string, ...flags: readonly string[]): Promise<RunResult> => {
        await until(isConnected, 'it is connected');
        await control.writeFile('/root/own.orch.yaml', text);
        const words = ['apply', 'web-01', '-m', 'site', '-f', '/root/own.orch.yaml', '--yes', '-o', 'json'];
        const { stdout, stderr } = await orch(...words, '--allow-removals', '9', ...flags);
        if (!stdout.startsWith('{')) throw new Error(`orch apply says:\n${stderr}${stdout}`);
        return JSON.parse(stdout) as RunResult;
      };
      const invocation = () => sh('systemctl show orch-agent -p InvocationID --value');
      const limit = () => sh('grep "open files" /proc/$(systemctl show orch-agent -p MainPID --value)/limits');
      /** An agent that waits for a command that waits for it ends its engine by force. */
      const wasForced = () => sh('journalctl -u orch-agent --no-pager | grep -c "does not end in time"');

      it('restarts itself once, at the end, and then reports the end', async () => {
        const before = await invocation();
        const run = await applyOwn(own('LimitNOFILE=12345', 'one'));
        expect(run.status).toBe('succeeded');
        expect(run.resources.find(({ identity }) => identity === 'orch-agent')).toMatchObject({
          action: 'restart',
          reason: expect.stringContaining('the agent restarts once the results of the apply are stored'),
        });
        const after = await invocation();
        expect(after).not.toBe(before);
        expect(await limit()).toMatch(/12345 +12345/);
        expect(await applyOwn(own('LimitNOFILE=12345', 'two'))).toMatchObject({
          status: 'succeeded',
          summary: { changed: 1 },
        });
        expect(await invocation()).toBe(after);
        expect(await wasForced()).toBe('0\n');
      });

      it('restarts itself within a confirmed apply, which is undone when it does not come back', async () => {
        expect(await applyOwn(own('LimitNOFILE=16384', 'three'), '--confirm-within', '60s')).toMatchObject({
          status: 'succeeded',
        });
        expect(await limit()).toMatch(/16384 +16384/);
        const broken = own('LimitNOFILE=16384\nExecStart=\nExecStart=/bin/false', 'four');
        const run = await applyOwn(broken, '--confirm-within', '20s');
        expect(run).toMatchObject({ status: 'rolled_back', restored: { not_restored: 0 } });
        expect(await sh(`cat ${DROP_IN} /srv/after`)).toBe('[Service]\nLimitNOFILE=16384\nthree\n');
        expect(await applyOwn(own('LimitNOFILE=16384', 'three'))).toMatchObject({
          status: 'succeeded',
          has_changes: false,
        });
      });

      it('is not stopped, and its unit is not removed', async () => {
        const stop = {
          name: 'own',
          supports: [{}],
          resources: [{ resource: { 'service-systemd': { name: 'orch-agent', running: false } } }],
        };
        const run = await applyOwn(JSON.stringify(stop));
        expect(run.resources.find(({ identity }) => identity === 'orch-agent')?.error).toEqual({
          code: 'unit_unsuitable',
          message: 'the agent runs in orch-agent.service and cannot stop it; leave running out',
        });
      });

      it.each([
        [
          'a hook of apt',
          { 'package-apt': { name: 'quick' } },
          'DPkg::Post-Invoke {"systemctl restart orch-agent.service || true";};',
        ],
        [
          'a script',
          {
            script: {
              program: 'sh',
              manages: 'x',
              check: 'test -e /root/x',
              apply: 'touch /root/x; systemctl restart orch-agent',
            },
          },
          '',
        ],
      ])('does not wait for %s that waits for it', async (_, resource, hook) => {
        await web.writeFile('/etc/apt/apt.conf.d/99restart', hook);
        const before = await invocation();
        const run = await applyOwn(own('LimitNOFILE=16384', 'five', { resource }));
        expect(run.status).toBe('interrupted');
        expect(await invocation()).not.toBe(before);
        expect(await wasForced()).toBe('0\n');
        await until(async () => (await sh('pgrep -x apt-get')) === '', 'apt has finished');
        expect(await applyOwn(own('LimitNOFILE=16384', 'six', { resource }))).toMatchObject({ status: 'succeeded' });
        await sh('rm /etc/apt/apt.conf.d/99restart');
      });

      it('keeps needrestart from restarting services, which it does after each run of apt', async () => {
        await web.writeFile('/etc/apt/apt.conf.d/99env', 'DPkg::Post-Invoke {"env >/root/env";};');
        await sh('apt-get remove -y quick');
        expect(
          await applyOwn(own('LimitNOFILE=16384', 'six', { resource: { 'package-apt': { name: 'quick' } } })),
        ).toMatchObject({ status: 'succeeded' });
        expect(await sh('cat /root/env')).toContain('NEEDRESTART_SUSPEND=1');
        await sh('rm /etc/apt/apt.conf.d/99env');
        await control.writeFile('/root/own.orch.yaml', own('', 'none'));
        await sh(`rm ${DROP_IN}; systemctl daemon-reload; systemctl restart orch-agent`);
        await until(isConnected, 'it is connected');
      });
    });

    it('ends a script with all that it has started when the operation is cancelled', async () => {
      const id = await begin(site('four', 'sleep 600 & echo $! >/root/begun; wait; echo four >>/root/worked'));
      expect(await orch('ops', 'cancel', id)).toMatchObject({ status: 0 });
      const operation = await ended(id);
      expect(operation.status).toBe('cancelled');
      expect(fates(operation)[1]).toBe('work run failed cancelled');
      await until(async () => (await sh('kill -0 "$(cat /root/begun)" 2>&1')).includes('No such'), 'the child is gone');
      expect(await web.readFile('/root/worked')).not.toContain('four');
    });

    it('takes over a new time limit without a restart, and ends the script that goes beyond it', async () => {
      const before = await sh('systemctl show orch-agent -p MainPID');
      await web.writeFile('/etc/orch/agent.yaml', 'script_timeout: 1\n');
      await until(async () => (await sh('journalctl -u orch-agent -o cat')).includes('read again'), 'it was read');
      const id = await begin(site('five', 'sleep 600 & echo $! >/root/begun; wait'));
      const { error } = (await ended(id)).resources[1] ?? {};
      expect(error?.code).toBe('command_timed_out');
      expect(error?.message).toContain('script_timeout');
      await until(async () => (await sh('kill -0 "$(cat /root/begun)" 2>&1')).includes('No such'), 'the child is gone');
      await web.writeFile('/etc/orch/agent.yaml', 'script_timeout: soon\n');
      await until(
        async () => (await sh('journalctl -u orch-agent -o cat')).includes('the old one stays'),
        'it was refused',
      );
      expect(await sh('systemctl show orch-agent -p MainPID')).toBe(before);
    });

    it('tells what the machine measures', async () => {
      let sample: MetricsSample | null = null;
      await until(async () => {
        sample = await json<MetricsSample | null>('metrics', 'web-01');
        return sample !== null;
      }, 'something was measured');
      const memory = /MemTotal:\s+(\d+)/.exec(await web.readFile('/proc/meminfo'))?.[1];
      expect(sample).toMatchObject({ memory_total: Number(memory) * 1024 });
      expect((await orch('metrics', 'web-01')).stdout).toMatch(/Memory\s+[█·]+ \d+\.\d% of \d+\.\d [GM]iB/);
    });

    it('leaves with no service that runs another agent, and not while it runs without the service', async () => {
      await until(isConnected, 'it is connected');
      await sh('rm -f /etc/orch/agent.yaml; systemctl stop orch-agent; cp -a /var/lib/orch-agent /root/saved');
      const dropIn = '/etc/systemd/system/orch-agent.service.d';
      await sh(`mkdir -p ${dropIn} && printf '[Service]\nEnvironment=ORCH_AGENT_DATA_DIR=/srv/a\n' >${dropIn}/a.conf`);
      await sh('systemctl daemon-reload');
      const other = await web.run(['orch', 'agent', 'leave', '--yes']);
      expect(other).toMatchObject({ status: 0 });
      expect(other.stderr).toContain('orch-agent.service: it runs the agent of /srv/a');
      expect(await sh('ls /etc/systemd/system/orch-agent.service; systemctl is-enabled orch-agent')).toContain(
        'enabled',
      );
      await sh(`mv /root/saved /var/lib/orch-agent; rm -r ${dropIn}; systemctl daemon-reload`);

      await sh('. /etc/orch/agent.env; systemd-run --unit=by-hand orch agent connect $ORCHESTRATOR');
      await until(isConnected, 'it is connected again');
      const busy = await web.run(['orch', 'agent', 'leave', '--yes']);
      expect(busy).toMatchObject({ status: 1 });
      expect(busy.stderr).toContain('nothing was changed');
      expect((await sh('systemctl is-enabled orch-agent')).trim()).toBe('enabled');
      await sh('systemctl stop by-hand; systemctl start orch-agent');
    });

    it('leaves its fleet with identity, pin and service, and not what modules have made', async () => {
      await until(isConnected, 'it is connected');
      expect((await web.run(['orch', 'agent', 'leave'])).status).toBe(64);
      expect(await web.run(['orch', 'agent', 'leave', '--yes'])).toMatchObject({ status: 0 });
      expect(await sh('ls -d /var/lib/orch-agent /etc/systemd/system/orch-agent.service')).toBe('');
      expect((await sh('systemctl is-active orch-agent')).trim()).toBe('inactive');
      expect(await web.readFile('/root/worked')).toContain('three');
      await until(async () => !(await isConnected()), 'it is gone');
      expect((await web.run(['orch', 'agent', 'leave', '--yes'])).status).toBe(1);
    });
  },
  debTools,
);
