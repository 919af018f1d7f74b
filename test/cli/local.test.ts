/** The commands that need no orchestrator, and the way to the programs. */
import { execFile } from 'node:child_process';
import { EventEmitter } from 'node:events';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { PassThrough, Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { runCli } from '../../src/cli/run.js';
import { Fault } from '../../src/kernel/fault.js';
import type { AgentConnectFlags, AgentListenFlags } from '../../src/programs/agent.js';
import type { ServeFlags } from '../../src/programs/serve.js';
import { expectGolden, Home, NOW, noPrograms, type RunOptions, runOrch, transcript } from '../support/cli.js';
import { events, readings, ulid } from '../support/cli-world.js';
import { type FakeApi, loggedIn, startFakeApi } from '../support/fake-api.js';

const ORCH = fileURLToPath(new URL('../../dist/orch/orch.js', import.meta.url));

let home: Home;
beforeEach(() => {
  home = new Home();
});
afterEach(() => home.dispose());

const run = (argv: readonly string[], options: RunOptions = {}) =>
  runOrch(argv, { ...options, env: { ...home.env, NO_COLOR: '1', ...options.env } });

describe('orch profile', () => {
  it('keeps its options, for the owner alone', async () => {
    const pin = 'AB:'.repeat(31).concat('AB');
    const session: readonly (readonly string[])[] = [
      ['profile', 'list'],
      ['profile', 'create', 'home', '--url', 'orch.home'],
      [
        'profile',
        'create',
        'work',
        '--url',
        'https://orch.example:8443',
        '--tls-fingerprint',
        pin,
        '--ca',
        '/etc/ca.pem',
      ],
      ['profile', 'create', 'work', '--url', 'x'],
      ['profile', 'create', 'a/b', '--url', 'x'],
      ['profile', 'create', 'none'],
      ['profile', 'update', 'home', '--key-file', '~/k', '--allow-unbound-login', '--allow-plain-http'],
      ['profile', 'update', 'home', '--forget', 'allow-plain-http'],
      ['profile', 'update', 'home'],
      ['profile', 'use', 'work'],
      ['profile', 'use', 'nowhere'],
      ['profile', 'list'],
      ['profile', 'list', '-o', 'json'],
      ['profile', 'remove', 'work'],
      ['profile', 'list', '-o', 'name'],
      ['agents', '--profile', 'gone'],
    ];
    let shown = '';
    for (const argv of session) shown += transcript(argv, await run(argv));
    expectGolden('profiles', shown.replaceAll(home.path, '~'));
    const file = home.file('.config', 'orch', 'config.yaml');
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(readFileSync(file, 'utf8')).toContain('allow_unbound_login: true');
  });

  it('says where a broken file is broken', async () => {
    await run(['profile', 'create', 'home', '--url', 'orch.home']);
    const file = home.file('.config', 'orch', 'config.yaml');
    writeFileSync(file, 'profiles:\n  home:\n    ulr: x\n');
    const ran = await run(['agents']);
    expect(ran.status).toBe(1);
    expect(ran.stderr).toContain(`${file}:3:5: unknown key "ulr"`);
  });
});

describe('the programs', () => {
  it('orch serve hands every flag on as it was typed', async () => {
    const seen: ServeFlags[] = [];
    const serve = async (flags: ServeFlags) => {
      seen.push(flags);
      return 7;
    };
    const argv = [
      'serve',
      '--api-port',
      '0',
      '--no-tls',
      '--log-level',
      'loud',
      '--trust-proxy-tls',
      '--ready-file',
      'r',
    ];
    expect((await run(argv, { programs: { serve } })).status).toBe(7);
    await run(['serve'], { programs: { serve } });
    expect(seen).toEqual([
      { api_port: '0', tls_enabled: false, log_level: 'loud', trust_proxy_tls: true, ready_file: 'r' },
      {},
    ]);
  });

  it('orch serve tells why it did not start', async () => {
    const serve = async () => {
      throw new Fault('port_in_use', 'port 4748 is in use', { hint: 'name another one with --api-port' });
    };
    const ran = await run(['serve'], { programs: { serve } });
    expect(ran).toMatchObject({
      status: 1,
      stderr: 'orch: port 4748 is in use\n  hint: name another one with --api-port\n',
    });
  });

  it('orch agent connect asks about a key only on a terminal', async () => {
    const seen: (AgentConnectFlags | AgentListenFlags)[] = [];
    const agent = {
      connect: async (flags: AgentConnectFlags) => {
        seen.push(flags);
        return (await flags.confirmKey?.('Trust it?')) ? 0 : 5;
      },
      listen: async (flags: AgentListenFlags) => {
        seen.push(flags);
        return 6;
      },
      status: async () => ({ node_id: 'ab', pinned_key: null, connected: true }),
      repin: async () => {},
      planLeave: async () => ({ data_dir: '/d', service: 'orch-agent.service', service_kept: null }),
      leave: async () => ({ data_dir: '/d', service: 'orch-agent.service', service_kept: null }),
      configSchema: async () => ({ title: 'Configuration' }),
    };
    const argv = [
      'agent',
      'connect',
      'orch.home:4747',
      '--orchestrator-key',
      'abc',
      '--hostname',
      'h',
      '--data-dir',
      '/d',
    ];
    expect((await run(argv, { programs: { agent } })).status).toBe(5);
    expect(seen[0]).toEqual({
      target: 'orch.home:4747',
      orchestratorKey: 'abc',
      trustOnFirstUse: false,
      hostname: 'h',
      dataDir: '/d',
      config: undefined,
      confirmKey: null,
    });
    const waiting = ['agent', '--port', '4800', '--trust-on-first-use'];
    expect((await run(waiting, { programs: { agent } })).status).toBe(6);
    expect(seen.at(-1)).toMatchObject({ port: 4800, trustOnFirstUse: true, orchestratorKey: undefined });
    expect(seen.at(-1)).not.toHaveProperty('confirmKey');
    const asked = await run(['agent', 'connect', 'h'], {
      programs: { agent },
      columns: 80,
      answers: [{ at: 'Trust it?', type: 'y\r' }],
    });
    expect(asked.status).toBe(0);
    expect((await run(['agent', 'status'], { programs: { agent } })).stdout).toBe(
      'Node ID     ab\nPinned key  -\nConnected   true\n',
    );
    expect((await run(['agent', 'repin'], { programs: { agent } })).status).toBe(64);
    expect((await run(['agent', 'repin', '--yes'], { programs: { agent } })).status).toBe(0);
    const leave = await run(['agent', 'leave'], { programs: { agent } });
    expect(leave.status).toBe(64);
    expect(leave.stderr).toContain('--yes');
    const left = await run(['agent', 'leave', '--yes'], { programs: { agent } });
    expect(left.stdout).toBe('Left. On the orchestrator: orch agents reject NODE, then orch agents remove NODE\n');
    const schema = await run(['agent', 'config-schema'], { programs: { agent } });
    expect(JSON.parse(schema.stdout)).toEqual({ title: 'Configuration' });
  });

  it('orch quickstart', async () => {
    const seen: unknown[] = [];
    const quickstart = async (flags: unknown) => {
      seen.push(flags);
      return 0;
    };
    await run(['quickstart', '--keep', '--dir', 'x'], { programs: { quickstart } });
    expect(seen).toEqual([{ keep: true, dir: 'x', color: false }]);
  });
});

describe('what goes wrong inside', () => {
  const serve = async () => {
    throw new TypeError('x is not a function');
  };

  it('is named as such, and where with --verbose', async () => {
    const plain = await run(['serve'], { programs: { serve } });
    expectGolden('internal', transcript(['serve'], plain));
    expect((await run(['serve', '-v'], { programs: { serve } })).stderr).toContain('local.test.ts');
    const json = await run(['serve', '--json'], { programs: { serve } });
    expect(JSON.parse(json.stderr)).toMatchObject({ code: 'internal' });
  });
});

describe('completion', () => {
  const words = async (line: string, env: Readonly<Record<string, string>> = {}) =>
    (await run(['__complete', '--', ...line.split(' ')], { env })).stdout
      .trim()
      .split('\n')
      .map((found) => found.split(' ')[0]);

  it.each([
    ['ag', ['agents', 'agent']],
    ['agents ', ['list', 'show', 'approve', 'reject', 'rename', 'keep', 'remove', 'tag', 'untag', 'upgrade']],
    ['agents --st', ['--status']],
    ['-o ', ['table', 'json', 'yaml', 'wide', 'name', 'jsonpath=']],
    ['-o j', ['json', 'jsonpath=']],
    ['agents --output=j', ['--output=json', '--output=jsonpath=']],
    ['agents --status o', ['online', 'offline', 'on_trial']],
    ['agents --status offline,be', ['offline,behind']],
    ['agents --status offline,o', ['offline,online', 'offline,on_trial']],
    ['help a', ['agents', 'assignments', 'apply', 'audit', 'agent', 'api']],
    ['help exit', ['exit-codes']],
    ['help agents app', ['approve']],
    ['completion ', ['bash', 'zsh', 'fish']],
    ['drift --wait web', ['']],
    ['module new x --recipe t', ['timer']],
    ['agents --status a', ['approved']],
    ['apply --allow', ['--allow-empty', '--allow-removals', '--allow-automatic-applies', '--allow-unbound-login']],
    ['serve --no-', ['--no-tls', '--no-drift', '--no-color', '--no-pager']],
    ['module publish ', [':file']],
    ['apply -f ', [':file']],
    ['operator init --passphrase', ['--passphrase']],
    ['-o ', ['']],
    ['nonsense ', ['']],
  ])('orch %s', async (line, expected) => {
    const found = await words(line);
    if (line === '-o ') expect(found.length).toBeGreaterThan(0);
    else expect(found).toEqual(expected);
  });

  it('knows live names, and stays silent where there are none', async () => {
    const api = await startFakeApi(readings);
    const env = loggedIn(api);
    expect(await words('agents show w', env)).toEqual(['web-01', 'web-02']);
    expect(await words('agents tag ', env)).toContain('db-01');
    expect(await words('apply web-01 -m ', env)).toEqual(['site']);
    expect(await words('apply web-01 web', env)).toEqual(['web-01', 'web-02']);
    expect(await words('drift ', env)).toEqual(expect.arrayContaining(['list', 'web-01']));
    expect(await words('agents -l ', env)).toEqual(expect.arrayContaining(['role=', 'env=', 'canary', 'platform=']));
    expect(await words('agents -l role=', env)).toEqual(['role=db', 'role=web']);
    expect(await words('exec -l role=web,e', env)).toEqual(['role=web,env=']);
    expect(await words('apply -l platform=l', env)).toEqual(['platform=linux']);
    expect(await words('agents tag web-01 ', env)).toEqual(['role=', 'canary', 'env=']);
    expect(await words('ops show ', env)).toEqual([ulid(2), ulid(1), ulid(0)]);
    expect(await words('operator remove ', env)).toEqual(['ada']);
    expect(await words('drift show ', env)).toContain(ulid(7));
    api.answer({ listModules: { body: [{ name: '$(reboot)', uploaded_at: 1, uploaded_by: 'x' }] } });
    expect(await words('plan web-01 -m ', env)).toEqual(['']);
    await api.stop();
    expect(await words('agents show w', env)).toEqual(['']);
    await run(['profile', 'create', 'home', '--url', 'x']);
    expect(await words('agents --profile ')).toEqual(['home']);
  });

  let api: FakeApi | null = null;
  afterAll(() => api?.stop());

  /** Runs a shell beside the API of this process, which has to answer it meanwhile. */
  function ranShell(shell: string, command: string, env: NodeJS.ProcessEnv) {
    return new Promise<{ readonly error: Error | null; readonly stdout: string; readonly stderr: string }>(
      (resolve) => {
        execFile(shell, ['-c', command], { env, cwd: home.path, encoding: 'utf8' }, (error, stdout, stderr) => {
          const isMissing = error !== null && 'code' in error && error.code === 'ENOENT';
          resolve({ error: isMissing ? error : null, stdout, stderr });
        });
      },
    );
  }

  /** The completions that a shell offers for a line, with the built program in its path; null where there is no such shell. */
  async function offered(shell: string, command: string): Promise<readonly string[] | null> {
    writeFileSync(home.file('script'), (await run(['completion', shell])).stdout);
    api ??= await startFakeApi(readings);
    writeFileSync(home.file('orch'), `#!/bin/sh\nexec ${process.execPath} ${ORCH} "$@"\n`, { mode: 0o755 });
    const env = { ...home.env, ...loggedIn(api), PATH: `${home.path}:${process.env.PATH}` };
    const { error, stdout, stderr } = await ranShell(shell, command, env);
    if (error) {
      console.info(`${shell} is not here, so its script was not tried`);
      return null;
    }
    expect(stderr).toBe('');
    return stdout.trim().split('\n');
  }

  /** The variables that bash sets before it calls the function; it has split the line at blanks and at "=". */
  const bash = (line: string, words: string) =>
    `source ./script; COMP_LINE="${line}"; COMP_POINT=\${#COMP_LINE}; COMP_WORDS=(${words}); ` +
    `COMP_CWORD=$((\${#COMP_WORDS[@]}-1)); _orch; printf '%s\\n' "\${COMPREPLY[@]}"`;

  it.each([
    ['bash', bash('orch agents sh', 'orch agents sh'), ['show']],
    ['bash', bash('orch ', "orch ''"), expect.arrayContaining(['agents', 'apply'])],
    ['bash', bash('orch help exit', 'orch help exit'), ['exit-codes']],
    ['bash', bash('orch agents --status offline,be', 'orch agents --status offline,be'), ['offline,behind']],
    ['bash', bash('orch apply -l platform=l', "orch apply -l platform '=' l"), ['linux']],
    ['bash', bash('orch apply -l platform=', "orch apply -l platform '='"), ['linux', 'macos', 'windows']],
    ['bash', bash('orch module publish scr', 'orch module publish scr'), ['script']],
    ['fish', 'source ./script; complete -C "orch agents --status behind,dr"', ['behind,drifted']],
    ['fish', 'source ./script; complete -C "orch apply -l platform=l"', ['platform=linux']],
    ['fish', 'source ./script; complete -C "orch agents sh"', ['show\tshow one agent with its attributes and tags']],
    ['fish', 'source ./script; complete -C "orch module publish scr"', ['script']],
    ['zsh', 'zsh -n ./script', ['']],
  ])('works in %s: %s', async (shell, command, expected) => {
    const found = await offered(shell, command);
    if (found !== null) expect(found).toEqual(expected);
  });

  it.each(['bash', 'zsh', 'fish'])('has a script for %s', async (shell) => {
    expectGolden(`completion-${shell}`, (await run(['completion', shell])).stdout);
  });
});

describe('the streams', () => {
  it('end quietly when their reader has gone', async () => {
    const [first] = events;
    const api = await startFakeApi({
      listAuditEvents: { body: { events: [first], has_more: true, next_cursor: first?.id } },
    });
    let writes = 0;
    const broken = new Writable({
      write(_chunk, _encoding, done) {
        writes += 1;
        done(writes > 2 ? Object.assign(new Error('write EPIPE'), { code: 'EPIPE' }) : null);
      },
    });
    const stderr = new PassThrough();
    const status = await runCli({
      argv: ['audit', '--all'],
      env: { ...home.env, ...loggedIn(api) },
      stdin: new PassThrough(),
      stdout: broken,
      stderr,
      programs: noPrograms,
      clock: { now: () => NOW, monotonic: () => 0 },
      interrupts: () => () => {},
    });
    await api.stop();
    expect({ status, writes, stderr: stderr.read() }).toEqual({ status: 0, writes: 3, stderr: null });
  });

  it('give way to Ctrl-C while standard input is awaited', async () => {
    const interrupts = new EventEmitter();
    const pending = runCli({
      argv: ['operator', 'add', '@-', '--username', 'ada'],
      env: home.env,
      stdin: new PassThrough(),
      stdout: new PassThrough(),
      stderr: new PassThrough(),
      programs: noPrograms,
      clock: { now: () => NOW, monotonic: () => 0 },
      interrupts: (listener) => {
        interrupts.on('SIGINT', listener);
        setImmediate(() => listener('SIGINT'));
        return () => {};
      },
    });
    expect(await pending).toBe(130);
  });
});
