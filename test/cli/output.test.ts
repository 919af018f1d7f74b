/** Output that operators choose: quiet, parts of JSON, the pager; the settings of the client, and what stays on disk. */
import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { EXIT, EXIT_PRECEDENCE } from '../../src/cli/exit-status.js';
import { type AgentRun, exitStatusOfRuns } from '../../src/cli/runs/agent-run.js';
import { publicKeyOfKeyObject } from '../../src/identity/key-object.js';
import { generateKey, privateKeyPem } from '../../src/identity/private-key.js';
import { Fault, type FaultCode } from '../../src/kernel/fault.js';
import { Home, runOrch } from '../support/cli.js';
import { inSync, planned, readings, runResult, ulid, web1 } from '../support/cli-world.js';
import { startServer } from '../support/client.js';
import { type FakeApi, loggedIn, startFakeApi } from '../support/fake-api.js';
import { itNeeding } from '../support/needing.js';
import { ORCH } from '../support/orch.js';
import { Pty } from '../support/pty.js';
import { until } from '../support/until.js';

let home: Home;
let api: FakeApi;
beforeAll(async () => {
  api = await startFakeApi(readings);
});
beforeEach(() => {
  home = new Home();
});
afterEach(() => {
  home.dispose();
  expect(api.violations).toEqual([]);
});
afterAll(() => api.stop());

const run = (argv: readonly string[], env: Readonly<Record<string, string>> = {}, columns?: number) =>
  runOrch(argv, {
    env: { ...home.env, ...loggedIn(api), NO_COLOR: '1', ...env },
    ...(columns === undefined ? {} : { columns }),
  });

describe('--quiet', () => {
  it('prints the names or IDs alone, and no notes', async () => {
    expect((await run(['ops', '--agent', 'web-01'])).stderr).toContain('more with --offset');
    expect(await run(['ops', '--agent', 'web-01', '-q'])).toEqual({ status: 0, stdout: `${ulid(2)}\n`, stderr: '' });
    expect((await run(['-q', 'agents', '--status', 'online'])).stdout).toBe('web-01\nweb-02\n');
  });

  it('keeps errors, and the format that -o asks for', async () => {
    expect((await run(['agents', 'show', 'nobody', '-q'])).stderr).toContain('there is no agent "nobody"');
    expect(JSON.parse((await run(['agents', 'show', 'web-01', '-q', '--json'])).stdout).name).toBe('web-01');
  });
});

describe('-o jsonpath', () => {
  it.each([
    ['$[*].name', 'db-01\nweb-01\nweb-02\nnull\n'],
    ['{[*].name}', 'db-01\nweb-01\nweb-02\nnull\n'],
    ['$[?@.connected==false].name', 'db-01\n'],
    ["$[?@.tags.role=='web' && @.tags.canary].name", 'web-01\n'],
    ['$[1].tags', '{"role":"web","canary":""}\n'],
    ['$[*].nothing', ''],
  ])('%s', async (expression, expected) => {
    expect(await run(['agents', '-o', `jsonpath=${expression}`])).toEqual({ status: 0, stdout: expected, stderr: '' });
  });

  it('finds a mistake in the expression before anything is sent', async () => {
    const before = api.requests.length;
    const ran = await run(['agents', '-o', 'jsonpath=$[*']);
    expect(ran).toMatchObject({ status: 64, stdout: '', stderr: expect.stringContaining('"$[*" is no JSONPath') });
    expect(api.requests).toHaveLength(before);
  });

  it('needs an expression', async () => {
    const ran = await run(['agents', '-o', 'jsonpath']);
    expect(ran.stderr).toContain('jsonpath=EXPR, not "jsonpath"');
    expect(ran.status).toBe(64);
  });
});

describe('the pager', () => {
  const script = () => home.file('pager');
  beforeEach(() => writeFileSync(script(), '#!/bin/sh\necho "PAGED $(wc -l)"\n', { mode: 0o755 }));

  async function shown(words: readonly string[], env: Readonly<Record<string, string>>, rows = 10) {
    const pty = new Pty([process.execPath, ORCH, ...words], {
      cwd: home.path,
      env: { ...home.env, PATH: process.env.PATH, ...loggedIn(api), NO_COLOR: '1', ...env },
      rows,
      cols: 100,
    });
    const status = await pty.ended();
    return { status, output: pty.output };
  }

  it.each([
    ['ORCH_PAGER before PAGER', (pager: string) => ({ ORCH_PAGER: pager, PAGER: 'false' }), [], 10, true],
    ['PAGER', (pager: string) => ({ PAGER: pager }), [], 10, true],
    ['not for what fits', (pager: string) => ({ ORCH_PAGER: pager }), [], 200, false],
    ['not with --no-pager', (pager: string) => ({ ORCH_PAGER: pager }), ['--no-pager'], 10, false],
    ['not with an empty ORCH_PAGER', (pager: string) => ({ ORCH_PAGER: '', PAGER: pager }), [], 10, false],
  ] as const)('%s', async (_name, env, more, rows, isPaged) => {
    const { status, output } = await shown(['help', 'exit-codes', ...more], env(script()), rows);
    expect(status).toBe(0);
    expect(output.includes('PAGED')).toBe(isPaged);
    expect(output.includes('How orch ends')).toBe(!isPaged);
  });

  it('that does not exist gives a warning, and the output all the same', async () => {
    const { status, output } = await shown(['help', 'exit-codes'], { ORCH_PAGER: '/no/such/pager' });
    expect(status).toBe(0);
    expect(output).toContain('warning: the pager "/no/such/pager" of ORCH_PAGER cannot be run');
    expect(output).toContain('How orch ends');
  });

  it('that nobody has chosen is not missed where there is none', async () => {
    const { status, output } = await shown(['help', 'exit-codes'], { PATH: '/nowhere' });
    expect(status).toBe(0);
    expect(output).toMatch(/^How orch ends/);
  });

  it('that is left early is no error', async () => {
    const { status, output } = await shown(['help', '--all'], { ORCH_PAGER: 'head -n 1' });
    expect(status).toBe(0);
    expect(output).not.toContain('orch:');
  });

  itNeeding('less')('is less by default, which Ctrl-C does not end', async () => {
    const pty = new Pty([process.execPath, ORCH, 'help', '--all'], {
      cwd: home.path,
      env: { ...home.env, PATH: process.env.PATH, NO_COLOR: '1' },
      rows: 12,
    });
    await pty.shows(/:\u001b\[K/);
    pty.write('\u0003');
    // less drops what is typed while it handles Ctrl-C.
    await until(() => {
      pty.write('G');
      return pty.output.includes('END');
    }, 'less shows the end');
    pty.write('q');
    expect(await pty.ended()).toBe(0);
  });

  it('is not used for lines that are copied', async () => {
    api.answer({
      createEnrolmentToken: {
        body: {
          id: '01JQ2Z6T0V5X8Y4M3N7P9R1S01',
          token: 'orch-enroll-v1.AAAA',
          created_at: 1740830400,
          created_by: 'aaaa1111',
          expires_at: 1740834000,
          uses: 1,
          uses_left: 1,
          auto_approve: false,
          tags: {},
          last_used_at: null,
          agent_host: 'orch.home',
          agent_port: 4747,
          reachable_host: '192.0.2.7',
          install: null,
        },
      },
    });
    const { status, output } = await shown(['enroll', 'create'], { ORCH_PAGER: script() }, 5);
    expect(status).toBe(0);
    expect(output).not.toContain('PAGED');
    expect(output).toContain('orch agent install');
  });

  it('is not used in a pipe', async () => {
    const ran = await run(['help', '--all'], { ORCH_PAGER: script() });
    expect(ran.stdout).not.toContain('PAGED');
  });
});

describe('orch config show', () => {
  const originsOf = async (argv: readonly string[], env: Readonly<Record<string, string>> = {}) => {
    const { stdout, stderr } = await runOrch(['config', 'show', '--json', ...argv], { env: { ...home.env, ...env } });
    if (stdout === '') throw new Error(stderr);
    const settings: readonly { name: string; value: unknown; origin: string }[] = JSON.parse(stdout);
    return Object.fromEntries(settings.map(({ name, value, origin }) => [name, [value, origin]]));
  };

  it('names the flag, the variable, the profile or the default of each setting', async () => {
    const pin = 'ab'.repeat(32);
    await runOrch(['profile', 'create', 'home', '--url', 'https://orch.home:4748', '--tls-fingerprint', pin], {
      env: home.env,
    });
    expect(await originsOf([])).toMatchObject({
      url: ['https://orch.home:4748', 'profile home'],
      'tls-fingerprint': [expect.any(String), 'profile home'],
      key: [home.file('.config', 'orch', 'operator.key'), 'default'],
      pager: ['less -FRX', 'default'],
    });
    const env = { ORCH_KEY: 'secret', ORCH_TOKEN: 'secret', NO_COLOR: '1', PAGER: 'more', ORCH_NO_STATE: '1' };
    const more = { ...env, ORCH_URL: 'https://orch.work', HTTPS_PROXY: 'http://user:secret@proxy:3128' };
    const found = await originsOf(['--key-file', '/k', '--allow-unbound-login'], more);
    expect(found).toMatchObject({
      url: ['https://orch.work', 'ORCH_URL'],
      profile: [null, 'default'],
      key: ['/k', '--key-file'],
      token: ['set, not shown', 'ORCH_TOKEN'],
      'allow-unbound-login': [true, '--allow-unbound-login'],
      proxy: ['http://proxy:3128', 'HTTPS_PROXY'],
      output: ['json', '--json'],
      color: [false, 'NO_COLOR'],
      pager: ['more', 'PAGER'],
      state: [null, 'ORCH_NO_STATE'],
    });
    expect(JSON.stringify(await originsOf([], more))).not.toContain('secret@');
    expect((await originsOf([], more)).key).toEqual(['set, not shown', 'ORCH_KEY']);
  });

  it('shows the origins as a table only with --origin', async () => {
    const plain = await runOrch(['config'], { env: home.env });
    expect(plain.stdout).not.toContain('ORIGIN');
    expect((await runOrch(['config', 'show', '--origin'], { env: home.env })).stdout).toMatch(
      /^SETTING +VALUE +ORIGIN/,
    );
  });
});

describe('what stays on disk', () => {
  const key = generateKey();
  const files = () => (existsSync(home.file()) ? readdirSync(home.path, { recursive: true }) : []);

  it.each([
    ['with a key file', 'ORCH_KEY_FILE', {}, true],
    ['with a key from ORCH_KEY', 'ORCH_KEY', {}, false],
    ['with ORCH_NO_STATE=1', 'ORCH_KEY_FILE', { ORCH_NO_STATE: '1' }, false],
  ])('%s, a session token: %s %o %s', async (_name, variable, env, isKept) => {
    const { url } = await startServer({ tls: null });
    writeFileSync(home.file('k'), privateKeyPem(key), { mode: 0o600 });
    const value = variable === 'ORCH_KEY' ? privateKeyPem(key) : home.file('k');
    const ran = await runOrch(['login', '--url', url], { env: { ...home.env, ...env, [variable]: value } });
    expect(ran).toMatchObject({ status: 0 });
    expect(publicKeyOfKeyObject(key)).toMatch(/^[0-9a-f]{64}$/);
    expect(files().some((path) => String(path).endsWith('.json'))).toBe(isKept);
    if (!isKept) expect(files()).toEqual(['k']);
  });

  it('with ORCH_NO_STATE no profile is written either', async () => {
    const env = { ...home.env, ORCH_NO_STATE: '1' };
    const ran = await runOrch(['profile', 'create', 'home', '--url', 'https://x'], { env });
    expect(ran).toMatchObject({ status: 64, stderr: expect.stringContaining('ORCH_NO_STATE is set') });
    expect(files()).toEqual([]);
    const wrong = await runOrch(['profile', 'create', 'home', '--url', 'https://x'], {
      env: { ...env, ORCH_NO_STATE: 'maybe' },
    });
    expect(wrong.stderr).toContain('ORCH_NO_STATE is "maybe", which is neither true nor false');
  });
});

describe('the exit status, if several apply', () => {
  const ok: AgentRun = { agent: web1, result: runResult(inSync) };
  const changes: AgentRun = { agent: web1, result: runResult(planned) };
  const failed = (code: FaultCode): AgentRun => ({ agent: web1, fault: new Fault(code, code) });
  const offline = failed('agent_not_connected');

  it.each([
    ['all failed alike', [failed('plan_stale'), failed('plan_stale')], EXIT.refusedForNow],
    ['all failed, in different ways', [failed('plan_stale'), failed('agent_timeout')], EXIT.partlyFailed],
    ['one failed, one succeeded', [failed('plan_stale'), ok], EXIT.partlyFailed],
    ['one failed, one has changes', [failed('plan_stale'), changes], EXIT.partlyFailed],
    ['one failed, one is offline', [failed('plan_stale'), offline], EXIT.partlyFailed],
    ['one has changes, one is offline', [changes, offline], EXIT.changes],
    ['one succeeded, one is offline', [ok, offline], EXIT.offline],
    ['all are offline', [offline, offline], EXIT.offline],
    ['one has changes, one has none', [ok, changes], EXIT.changes],
    ['none has changes', [ok, ok], EXIT.done],
  ])('%s', (_name, runs, expected) => expect(exitStatusOfRuns(runs, true)).toBe(expected));

  it('leaves changes out without --detailed-exitcode', () => {
    expect(exitStatusOfRuns([changes, offline], false)).toBe(EXIT.offline);
    expect(exitStatusOfRuns([changes], false)).toBe(EXIT.done);
  });

  it('finds wrong usage before the orchestrator is asked', async () => {
    const ran = await run(['drift', 'web-01', '--concurrency', '0'], { ORCH_URL: 'https://127.0.0.1:1' });
    expect(ran.status).toBe(EXIT.usage);
    expect((await run(['drift', 'web-01'], { ORCH_URL: 'http://127.0.0.1:1' })).status).toBe(EXIT.unreachable);
  });

  it('is explained in orch help exit-codes', async () => {
    const { stdout } = await run(['help', 'exit-codes']);
    const flat = stdout.replaceAll(/\s+/g, ' ');
    for (const line of EXIT_PRECEDENCE) expect(flat).toContain(line);
  });
});
