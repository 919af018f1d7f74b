/** Scripts on a booted Debian machine: without an orchestrator as root, and commands under systemd. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { RunResult } from '../../src/contract/runs.js';
import { until } from '../support/orch.js';
import { type Fleet, startFleet } from './fleet.js';
import type { BootedHost } from './host.js';
import { describeHosts } from './requirements.js';
import { projectPath } from './root.js';

const SECRET = 'tr0ub4dor-and-3';

const moduleOf = (resources: string) => `name: site
supports: [{platform: linux}]
resources:
${resources}`;

/** A file, and a script that counts its runs in /root/ran. */
const site = (conf: string) =>
  moduleOf(`  - id: conf
    resource:
      file-unix: {path: /etc/site.conf, content: "${conf}\\n"}
  - id: reader
    resource:
      script:
        program: sh
        apply: cat /etc/site.conf >>/root/ran
        check: test -e /root/ran
        undo: mv /root/ran /root/undone
        rerun_on: [conf]
`);

const scriptOf = (apply: readonly string[], more = '') =>
  moduleOf(`  - id: work
    resource:
      script:
        program: bash
        apply: |
${apply.map((line) => `          ${line}`).join('\n')}
${more}`);

describeHosts('scripts on a booted machine', () => {
  let fleet: Fleet;
  let host: BootedHost;

  const sh = async (line: string) => (await host.run(['sh', '-c', line])).stdout;
  const local = async (verb: 'plan' | 'apply' | 'drift', module: string, ...args: readonly string[]) => {
    await host.writeFile('/root/m.orch.yaml', module);
    const given = ['--local', '-f', '/root/m.orch.yaml', '-o', 'json', ...args];
    const { status, stdout, stderr } = await host.run(['orch', verb, ...given, ...(verb === 'apply' ? ['--yes'] : [])]);
    if (stdout === '') throw new Error(`orch ${verb} ended with ${status}: ${stderr}`);
    return { status, result: JSON.parse(stdout) as RunResult, text: `${stdout}${stderr}` };
  };
  const fates = ({ result }: { readonly result: RunResult }) =>
    result.resources.map(({ identity, action, status, error }) =>
      [identity, action, status, ...(error ? [error.code] : [])].join(' '),
    );
  /** The files of scripts that are left in their places. */
  const remains = () => sh('ls -A /var/lib/orch-local/scripts; ls -dA /tmp/orch-* 2>/dev/null');
  const isGone = async (file: string) => (await host.run(['sh', '-c', `kill -0 "$(cat ${file})"`])).status !== 0;

  beforeAll(async () => {
    fleet = await startFleet({ hosts: ['web-01'] });
    host = fleet.host('web-01');
  });

  afterAll(async () => {
    await fleet?.stop();
  });

  it('run when their check asks for it, and when what they listen to has changed', async () => {
    expect(fates(await local('plan', site('one')))).toEqual(['/etc/site.conf create pending', 'reader run pending']);
    expect(await sh('ls /root/ran 2>&1; true')).toContain('No such file');
    expect(fates(await local('apply', site('one')))).toEqual(['/etc/site.conf create changed', 'reader run changed']);
    expect(fates(await local('apply', site('one')))).toEqual([
      '/etc/site.conf none unchanged',
      'reader none unchanged',
    ]);
    expect(fates(await local('apply', site('two')))).toEqual(['/etc/site.conf update changed', 'reader run changed']);
    expect(await host.readFile('/root/ran')).toBe('one\ntwo\n');
    expect(fates(await local('drift', site('two')))).toEqual([
      '/etc/site.conf none unchanged',
      'reader none unchanged',
    ]);
    await sh('mv /root/ran /root/elsewhere');
    const drifted = await local('drift', site('two'));
    expect(drifted.result.resources[1]?.changes).toEqual([{ field: 'check', before: 'exit 1', after: 'exit 0' }]);
    await sh('mv /root/elsewhere /root/ran');
    expect(await remains()).toBe('');
  });

  it('are undone when they are no longer declared', async () => {
    const { status, result } = await local('apply', moduleOf('  []\n'), '--allow-removals', '2');
    expect(status).toBe(0);
    expect(fates({ result })).toEqual(['reader remove changed', '/etc/site.conf remove changed']);
    expect(await host.readFile('/root/undone')).toBe('one\ntwo\n');
    expect((await host.run(['test', '-e', '/root/ran'])).status).toBe(1);
  });

  it('fail with their status and last words, and when they did not do what their check wants', async () => {
    const failed = await local('apply', scriptOf(['echo first', 'echo "no such thing" >&2', 'exit 7']));
    expect(failed.result.resources[0]?.error).toEqual({
      code: 'script_failed',
      message: 'apply ended with status 7: no such thing',
    });
    const useless = await local('apply', scriptOf(['true'], '        check: test -e /nowhere\n'));
    expect(useless.result.resources[0]?.error).toEqual({
      code: 'not_converged',
      message: 'work still differs after the change: its check ended with status 1',
    });
  });

  it('write as much as they like', async () => {
    const flood = scriptOf(['head -c 200000000 /dev/zero', 'echo the end >&2', 'exit 1']);
    const { result } = await local('apply', flood);
    expect(result.resources[0]?.error?.message).toBe('apply ended with status 1: the end');
  });

  it('have secrets in no argument and no environment of any process, and none is shown', async () => {
    await host.writeFile('/root/pw', SECRET, '0600');
    const told = [
      `password="\${{ secrets.PW }}"`,
      'stat -c %a "$0" "$(dirname "$0")" >/root/modes; touch /root/begun',
      'until [ -e /root/go ]; do sleep 0.1; done',
      'echo "cannot log in with $password"; exit 1',
    ];
    const applied = local('apply', scriptOf(told), '--secret-file', 'PW=/root/pw');
    await until(async () => (await host.run(['test', '-e', '/root/begun'])).status === 0, 'the script runs');
    // The pattern is in a file, so that this search does not find itself.
    const found = await sh('grep -laF -f /root/pw /proc/[0-9]*/cmdline /proc/[0-9]*/environ 2>/dev/null');
    const scripts = await sh('grep -rlaF -f /root/pw /var/lib/orch-local');
    await sh('touch /root/go');
    const { text, result } = await applied;
    expect(found).toBe('');
    expect(scripts).toMatch(/^\/var\/lib\/orch-local\/scripts\/orch-[^/]+\/script\.sh\n$/);
    expect(await host.readFile('/root/modes')).toBe('600\n700\n');
    expect(text).not.toContain(SECRET);
    expect(result.resources[0]?.error?.message).toBe(
      'apply ended with status 1; its output may hold secrets, so it is not shown',
    );
    expect(await sh(`grep -rlF -f /root/pw /var/lib/orch-local /tmp; true`)).toBe('');
  });

  it('run as their user, in its groups, with variables that no other user and no program of root sees', async () => {
    await sh('groupadd build; useradd -m -G build app; mkdir -p /srv/app; chown app /srv/app');
    await host.writeFile('/root/pw', SECRET, '0600');
    const module = (apply: readonly string[], more = '') =>
      moduleOf(`  - id: build
    script:
      program: bash
      user: app
      environment: {TOKEN: "\${{ secrets.PW }}", LD_LIBRARY_PATH: "/srv/app/it's", HOME: /srv/app}
      working_directory: /srv/app
      creates: /srv/app/built
${more}      apply: |
${apply.map((line) => `        ${line}`).join('\n')}
`);
    const work = [
      'echo "$(id -un) $(id -Gn) $HOME $USER $PWD $LD_LIBRARY_PATH" >built',
      'printf %s "$TOKEN" | sha256sum >sum; stat -c "%U %a" "$0" >modes; ls "$(dirname "$0")" 2>&1 | tail -c 18 >>modes',
      'cat /etc/shadow 2>/dev/null && touch /srv/app/root',
      'grep -laF "$TOKEN" /proc/[0-9]*/cmdline >found; echo seen >/dev/stderr',
    ];
    expect(fates(await local('plan', module(work), '--secret-file', 'PW=/root/pw'))).toEqual(['build run pending']);
    const { text, result } = await local('apply', module(work), '--secret-file', 'PW=/root/pw');
    expect(fates({ result })).toEqual(['build run changed']);
    expect(text).not.toContain(SECRET);
    expect(await sh('cat /srv/app/built')).toBe("app app build /srv/app app /srv/app /srv/app/it's\n");
    expect(await sh('cat /srv/app/sum')).toBe(await sh('sha256sum </root/pw'));
    expect(await sh('cat /srv/app/modes')).toBe('app 600\nPermission denied\n');
    expect(await sh('cat /srv/app/found; ls /srv/app')).toBe('built\nfound\nmodes\nsum\n');
    expect(await remains()).toBe('');
    expect(await sh('ls -dA /run/orch-* 2>/dev/null')).toBe('');
    expect(fates(await local('apply', module(work), '--secret-file', 'PW=/root/pw'))).toEqual(['build none unchanged']);
    expect(fates(await local('drift', module(work), '--secret-file', 'PW=/root/pw'))).toEqual(['build none unchanged']);
    await sh('rm /srv/app/built');
    const drifted = await local('drift', module(work), '--secret-file', 'PW=/root/pw');
    expect(drifted.result.resources[0]?.changes).toEqual([{ field: 'creates', before: null, after: '/srv/app/built' }]);
    const useless = await local('apply', module(['true']), '--secret-file', 'PW=/root/pw');
    expect(useless.result.resources[0]?.error?.message).toBe(
      'build still differs after the change: /srv/app/built does not exist',
    );
    const slow = await local('apply', module(['sleep 60'], '      timeout: 1s\n'), '--secret-file', 'PW=/root/pw');
    expect(slow.result.resources[0]?.error).toMatchObject({ code: 'command_timed_out' });
    expect(slow.text).toContain('apply was stopped after 1 seconds, which is its timeout');
  });

  it('say that there is no such user or directory, and run after what makes both', async () => {
    const module = (user: string, directory: string) =>
      moduleOf(`  - id: place
    script: {program: perl, apply: "open(F, '>made')", user: ${user}, working_directory: ${directory}}
`);
    const refused = async (user: string, directory: string) =>
      (await local('plan', module(user, directory))).result.resources[0]?.error;
    expect(fates(await local('apply', moduleOf('  []\n')))).toEqual(['build release changed']);
    const noUser = { code: 'unknown_owner', message: 'there is no user "nemo" on this machine' };
    expect(await refused('nemo', '/srv')).toEqual(noUser);
    expect((await local('apply', module('nemo', '/srv'))).result.resources[0]?.error).toEqual(noUser);
    const noDirectory = { code: 'parent_missing', message: 'the working directory /srv/none does not exist' };
    expect(await refused('root', '/srv/none')).toEqual(noDirectory);
    expect(await refused('root', '/etc/passwd')).toEqual({
      code: 'wrong_type',
      message: 'the working directory /etc/passwd is not a directory',
    });
    const closed = (await local('apply', module('app', '/root'))).result.resources[0]?.error;
    expect(closed?.message).toMatch(/^apply ended with status 126: sh: 1: cd: can't cd to \/root$/);
    const made = moduleOf(`  - user-unix: {name: late}
  - directory-unix: {path: /srv/late, owner: late}
  - id: place
    script: {program: perl, apply: "open(F, '>made')", user: late, working_directory: /srv/late}
`);
    expect(fates(await local('plan', made))).toEqual([
      'late create pending',
      '/srv/late create pending',
      'place run pending',
    ]);
    expect(fates(await local('apply', made))).toEqual([
      'late create changed',
      '/srv/late create changed',
      'place run changed',
    ]);
    expect(await sh('stat -c %U /srv/late/made; rm /srv/late/made')).toBe('late\n');
    expect((await local('apply', moduleOf('  []\n'), '--allow-removals', '3')).status).toBe(0);
  });

  it('run as another user only for an agent of root', async () => {
    const options = JSON.stringify({ dataDir: '/tmp/data-of-app' });
    const command = JSON.stringify({ argv: ['id', '-un'], user: 'root' });
    const program = `import { thisHost } from '${projectPath}/dist/src/agent/host/this-host.js';
      console.log(JSON.stringify((await thisHost(${options}).run(${command})).end));`;
    await host.writeFile('/srv/app/agent.mjs', program);
    const { stdout } = await host.run(['runuser', '-u', 'app', '--', 'node', '/srv/app/agent.mjs']);
    expect(JSON.parse(stdout)).toMatchObject({
      how: 'not-started',
      code: 'permission_denied',
      message: 'this agent does not run as root, so it cannot run programs as root; run the agent as root',
    });
  });

  const endless = ['sleep 600 & echo $! >/root/child', 'echo $$ >/root/main', 'sleep 600'];
  const hasBegun = async () => (await host.run(['test', '-s', '/root/main'])).status === 0;
  const start = async () => {
    await sh('rm -f /root/main /root/child');
    await host.writeFile('/root/m.orch.yaml', scriptOf(endless));
    const program = await host.spawn(['orch', 'apply', '--local', '--yes', '-f', '/root/m.orch.yaml', '-o', 'json']);
    await until(hasBegun, 'the script runs');
    return program;
  };

  it('end as a group when their run is cancelled', async () => {
    const program = await start();
    program.kill('SIGINT');
    const { status, stdout } = await program.ended;
    expect(status).toBe(130);
    expect(stdout).toContain('cancelled');
    expect(await isGone('/root/main')).toBe(true);
    expect(await isGone('/root/child')).toBe(true);
    expect(await remains()).toBe('');
  });

  it('leave nothing that the next run does not clear away when orch is killed', async () => {
    const program = await start();
    program.kill('SIGKILL');
    await program.ended;
    expect(await remains()).toMatch(/^orch-\d+-\d+-\w{6}\n$/);
    await sh('kill -9 "$(cat /root/main)" "$(cat /root/child)"');
    await local('plan', scriptOf(['true']));
    expect(await remains()).toBe('');
  });

  /** Runs one command as the agent does, in a unit of systemd. */
  const runInUnit = async (options: object, command: object) => {
    const module = `${projectPath}/dist/src/agent/host/this-host.js`;
    const program = `import { thisHost } from '${module}';
      const result = await thisHost(${JSON.stringify(options)}).run(${JSON.stringify(command)});
      console.log(JSON.stringify(result.end));`;
    await host.writeFile('/root/agent.mjs', program);
    return ['systemd-run', '--quiet', '--collect', '--unit=fake-agent', 'node', '/root/agent.mjs'];
  };

  it('end as a group when their time is over', async () => {
    await sh('rm -f /root/main /root/child');
    const script = { text: endless.join('\n'), suffix: '.sh' };
    const command = { argv: ['bash'], script, timeoutSecs: 'script', lifetime: 'end' };
    const [first = '', ...rest] = await runInUnit({ scriptTimeoutSecs: 1 }, command);
    const { stdout } = await host.run([first, '--pipe', '--wait', ...rest]);
    expect(JSON.parse(stdout)).toEqual({ how: 'timed-out', seconds: 1 });
    expect(await isGone('/root/main')).toBe(true);
    expect(await isGone('/root/child')).toBe(true);
    expect(await remains()).toBe('');
  });

  it('are ended with the unit of the agent, and package managers are not', async () => {
    for (const [lifetime, survives] of [
      ['end', false],
      ['outlive', true],
    ] as const) {
      await sh('rm -f /root/main /root/done');
      const line = 'echo $$ >/root/main; sleep 3; seq 100000 && cat /proc/self/cgroup >/root/done';
      const start = await runInUnit({}, { argv: ['sh', '-c', line], lifetime });
      expect(await host.run(start)).toMatchObject({ status: 0 });
      await until(hasBegun, 'the command runs');
      expect(await host.run(['systemctl', 'kill', '--signal=SIGKILL', 'fake-agent'])).toMatchObject({ status: 0 });
      await until(async () => isGone('/root/main'), 'the command has ended');
      const done = await host.run(['cat', '/root/done']);
      expect(done.status === 0).toBe(survives);
      if (survives) expect(done.stdout).toMatch(/\/run-[^/]*\.scope\n$/);
    }
  });
});
