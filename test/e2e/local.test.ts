/** `--local` with the real program: plan, apply and drift on this machine, without an orchestrator. */
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import type { DriftDetail, RunResult } from '../../src/contract/runs.js';
import { isRoot, needs, place, run, succeeds } from '../support/agent.js';
import { ORCH, Sandbox, until } from '../support/orch.js';
import { Pty } from '../support/pty.js';

let sandbox: Sandbox;
let site: string;
let data: string;

beforeEach(() => {
  sandbox = new Sandbox();
  site = sandbox.path('site');
  data = sandbox.path('data');
});
afterEach(() => sandbox.dispose());

const file = (name: string, content: string) => `  - resource:
      file-unix: {path: ${site}/${name}, content: ${JSON.stringify(content)}}
`;
const directory = () => `  - resource:
      directory-unix: {path: ${site}, mode: "0750"}
`;

/** Writes a module of these resources; its path. */
function module(name: string, ...resources: readonly string[]): string {
  const path = sandbox.path(`${name}.orch.yaml`);
  writeFileSync(path, `name: ${name}\nsupports:\n  - platform: linux\nresources:\n${resources.join('')}`);
  return path;
}

const orch = (verb: string, ...args: readonly string[]) => sandbox.orch([verb, '--local', '--data-dir', data, ...args]);
const json = <T>(verb: string, ...args: readonly string[]) =>
  sandbox.json<T>([verb, '--local', '--data-dir', data, ...args]);

describe('a loop of a module', () => {
  it('removes what an element made when it leaves, before what listened to it runs, and nothing else', async () => {
    const seen = sandbox.path('seen');
    const sites = (...names: readonly string[]) =>
      module(
        'sites',
        `  - directory-unix: {path: ${site}}
  - id: sites
    for_each: [${names.join()}]
    resources:
      - directory-unix: {path: "${site}/\${{ each.key }}"}
      - file-unix: {path: "${site}/\${{ each.key }}/conf", content: "\${{ each.key }}\\n"}
  - if: tags.env == "prod"
    file-unix: {path: ${site}/prod, content: "yes\\n"}
  - id: reader
    script: {program: sh, check: test -e ${seen}, apply: "ls ${site} >>${seen}", rerun_on: [sites]}
`,
      );
    const first = await json<RunResult>('apply', '-f', sites('shop', 'blog'), '--tag', 'env=prod', '--yes');
    expect(first).toMatchObject({ status: 'succeeded', summary: { changed: 7 } });
    expect(readFileSync(seen, 'utf8')).toBe('blog\nprod\nshop\n');

    const plan = await orch('plan', '-f', sites('shop'), '--tag', 'env=test');
    expect(plan.stdout).toContain(`script reader  (directory-unix ${site}/blog and 1 more go)`);
    expect(plan.stdout).toContain('Plan: 3 to remove, 1 script to run; 3 unchanged.');
    const applied = await json<RunResult>('apply', '-f', sites('shop'), '--tag', 'env=test', '--yes');
    expect(applied).toMatchObject({ status: 'succeeded', summary: { changed: 4, removed: 3, unchanged: 3 } });
    expect(readFileSync(seen, 'utf8')).toBe('blog\nprod\nshop\nprod\nshop\n');
    expect(readdirSync(site)).toEqual(['shop']);
    expect(await json<RunResult>('apply', '-f', sites('shop'), '--yes')).toMatchObject({ has_changes: false });
  });
});

describe('the loop on this machine', () => {
  it('plans without writing, applies, finds drift and repairs it', async () => {
    const path = module('site', directory(), file('greeting', `\${{ agent.name }} is \${{ tags.role }}\n`));
    const with_ = ['-f', path, '--tag', 'role=web'];
    const plan = await orch('plan', ...with_, '--detailed-exitcode');
    expect(plan).toMatchObject({ status: 2 });
    expect(plan.stdout).toContain('Plan: 2 to create.');
    expect(existsSync(site)).toBe(false);
    expect((await orch('drift')).stderr).toContain('nothing was ever applied');

    const applied = await json<RunResult>('apply', ...with_, '--yes');
    expect(applied).toMatchObject({ status: 'succeeded', has_changes: true, summary: { total: 2, changed: 2 } });
    expect(readFileSync(`${site}/greeting`, 'utf8')).toMatch(/ is web\n$/);
    expect(statSync(site).mode & 0o7777).toBe(0o750);
    expect((await json<RunResult>('plan', ...with_)).has_changes).toBe(false);
    expect((await json<RunResult>('plan', '-f', path, '--tag', 'role=db')).has_changes).toBe(true);

    expect((await json<DriftDetail>('drift')).status).toBe('in_sync');
    appendFileSync(`${site}/greeting`, 'by hand\n');
    const drift = await orch('drift', '--detailed-exitcode');
    expect(drift.status).toBe(2);
    expect(drift.stdout).toContain('-by hand');
    expect(await orch('apply', ...with_, '--yes', '--detailed-exitcode')).toMatchObject({ status: 2 });
    expect((await json<DriftDetail>('drift')).status).toBe('in_sync');
  });

  it('refuses a run of more resources than through an orchestrator', { timeout: 120_000 }, async () => {
    const modules = sandbox.path('modules');
    mkdirSync(modules);
    for (let part = 0; part < 21; part += 1) {
      const count = part === 20 ? 1 : 1_000;
      const resources = Array.from({ length: count }, (_, index) => file(`${part}-${index}`, 'text'));
      const text = `name: part-${part}\nsupports:\n  - platform: linux\nresources:\n${resources.join('')}`;
      writeFileSync(`${modules}/part-${part}.orch.yaml`, text);
    }
    const refused = await orch('apply', '-f', modules, '--yes');
    expect(refused).toMatchObject({ status: 1, stdout: '' });
    expect(refused.stderr).toContain('these modules make a run of 20001 resources, and 20000 is the most');
    expect(refused.stderr).toContain('hint: declare fewer resources');
    expect(existsSync(site)).toBe(false);
  });

  it('keeps what was applied for the owner alone', async () => {
    await json('apply', '-f', module('site', directory()), '--yes');
    expect(statSync(data).mode & 0o777).toBe(0o700);
    expect(readdirSync(data).sort()).toEqual(['journal', 'journal.made', 'modules', 'state.json']);
    expect(statSync(`${data}/modules`).mode & 0o777).toBe(0o700);
    const files = readdirSync(data, { recursive: true, encoding: 'utf8' }).filter((name) => name !== 'modules');
    expect(files).toHaveLength(5);
    for (const name of files) expect(statSync(`${data}/${name}`).mode & 0o777).toBe(0o600);
  });

  it('says the same about a module that an earlier run has checked', async () => {
    mkdirSync(site);
    const path = module('site', file('greeting', `\${{ tags.role }}\n`), directory());
    const args = ['-f', path, '--tag', 'role=web'];
    const first = await json<RunResult>('plan', ...args);
    expect(first.warnings).toMatchObject([{ line: 6 }]);
    const again = await json<RunResult>('plan', ...args);
    expect(again.warnings).toEqual(first.warnings);
    const failed = await orch('plan', '-f', path);
    expect(failed.stderr).toContain(`${path}:5:`);
    const other = module('other', file('b', 'b\n'));
    writeFileSync(other, readFileSync(other, 'utf8').replace('name: other', 'name: site'));
    expect((await orch('plan', ...args, '-f', other)).stderr).toContain('both hold the module "site"');
  });

  it('warns of the text of a module in each run, as a run through an orchestrator does', async () => {
    const script = `  - id: p\n    resource: {script: {program: sh, apply: "#!/usr/bin/env python3\\ntrue"}}\n`;
    const path = module('site', script);
    const stderr = expect.stringMatching(
      /site.orch.yaml:\d+:\d+: the first line names "python3", but sh runs this text/,
    );
    for (const run of ['the first', 'a later']) {
      expect(await orch('plan', '-f', path), run).toMatchObject({ status: 0, stderr });
    }
    expect(await orch('apply', '-f', path, '--yes')).toMatchObject({ status: 0, stderr });
    expect(await orch('drift', '-f', path)).toMatchObject({ status: 0, stderr });
  });

  it('checks a changed module again', async () => {
    const path = module('site', file('a', 'a\n'));
    await json('plan', '-f', path);
    writeFileSync(path, readFileSync(path, 'utf8').replace('content', 'contents'));
    expect((await orch('plan', '-f', path)).stderr).toContain('unknown key "contents"');
  });

  it('writes nothing when an apply changes nothing', async () => {
    const path = module('site', directory(), file('a', 'a\n'));
    await json('apply', '-f', path, '--yes');
    const stored = () =>
      ['journal', 'state.json'].map((name) => [statSync(`${data}/${name}`).ino, readFileSync(`${data}/${name}`)]);
    const before = stored();
    expect(await json<RunResult>('apply', '-f', path, '--yes')).toMatchObject({
      status: 'succeeded',
      has_changes: false,
    });
    expect(stored()).toEqual(before);
  });

  it('gives its applies rising IDs, also after the clock was set back', async () => {
    const path = module('site', directory(), file('a', 'a\n'));
    const first = (await json<RunResult>('apply', '-f', path, '--yes')).operation_id ?? '';
    const later = `6${first.slice(1)}`;
    writeFileSync(`${data}/state.json`, readFileSync(`${data}/state.json`, 'utf8').replaceAll(first, later));
    const second = await json<RunResult>('apply', '-f', module('site', directory()), '--yes', '--allow-removals', '1');
    expect(second.operation_id && second.operation_id > later).toBe(true);
    expect(existsSync(`${site}/a`)).toBe(false);
    expect(await json<DriftDetail>('drift')).toMatchObject({ status: 'in_sync', summary: { total: 1 } });
  });

  it('tells a failed resource as an apply of an agent does', async () => {
    const path = module('site', `  - resource: {file-unix: {path: ${site}/x, content: a, parents: false}}\n`);
    const failed = await orch('apply', '-f', path, '--yes');
    expect(failed.status).toBe(3);
    expect(failed.stdout).toContain(site);
    expect((await orch('drift')).status).toBe(1);
  });
});

describe('what is no longer declared', () => {
  it('is removed when orch made it, and released when it was there before', async () => {
    mkdirSync(site);
    writeFileSync(`${site}/old`, 'old\n');
    await json('apply', '-f', module('site', directory(), file('old', 'old\n'), file('new', 'new\n')), '--yes');
    const path = module('site', directory());
    const plan = await orch('plan', '-f', path);
    expect(plan.stdout).toMatch(/- file-unix .*\/new/);
    expect(plan.stdout).toMatch(/= file-unix .*\/old/);
    await json('apply', '-f', path, '--yes');
    expect(existsSync(`${site}/new`)).toBe(false);
    expect(readFileSync(`${site}/old`, 'utf8')).toBe('old\n');
    expect((await json<RunResult>('plan', '-f', path)).summary.total).toBe(1);
  });

  it('is removed with its directory, which a later apply put behind it', async () => {
    await json('apply', '-f', module('site', directory(), file('a', 'a\n')), '--yes');
    await json('apply', '-f', module('site', file('a', 'a\n'), directory()), '--yes');
    const path = module('site', `  - resource: {file-unix: {path: ${site}-other, content: b}}\n`);
    expect((await orch('plan', '-f', path)).stdout).toContain('2 to remove');
    await json('apply', '-f', path, '--yes', '--allow-removals', '2');
    expect(existsSync(site)).toBe(false);
  });

  it('stays when it is still declared under another path or name, and is still known as made by orch', async () => {
    mkdirSync(`${site}/usr/lib`, { recursive: true });
    symlinkSync('usr/lib', `${site}/lib`);
    const script = (id: string) => `  - id: ${id}
    resource:
      script: {program: sh, check: "test -e ${site}/flag", apply: "touch ${site}/flag", undo: "rm ${site}/flag"}
`;
    const keep = file('keep', 'x');
    await orch('apply', '-f', module('site', file('lib/x', 'x'), script('tz'), keep), '--yes');
    const renamed = module('site', file('usr/lib/x', 'x'), script('timezone'), keep);
    const plan = await orch('plan', '-f', renamed);
    expect(plan.stdout).toContain(`it is the same thing as file-unix ${site}/usr/lib/x, which is wanted`);
    const applied = await json<RunResult>('apply', '-f', renamed, '--yes');
    expect(applied).toMatchObject({ status: 'succeeded', summary: { unchanged: 3, removed: 0 } });
    expect([existsSync(`${site}/lib/x`), existsSync(`${site}/flag`)]).toEqual([true, true]);
    await orch('apply', '-f', module('site', keep), '--yes');
    expect([existsSync(`${site}/lib/x`), existsSync(`${site}/flag`)]).toEqual([false, false]);
  });

  it('is kept when it is much, or all, unless the number is given', async () => {
    const many = Array.from({ length: 11 }, (_, index) => file(`f${index}`, 'x\n'));
    await json('apply', '-f', module('site', directory(), ...many), '--yes');
    const path = module('site', directory());
    const refused = await orch('apply', '-f', path, '--yes');
    expect(refused.status).toBe(6);
    expect(refused.stderr).toContain('--allow-removals 11');
    expect(existsSync(`${site}/f0`)).toBe(true);
    expect(await orch('apply', '-f', path, '--yes', '--allow-removals', '11')).toMatchObject({ status: 0 });
    expect(readdirSync(site)).toEqual([]);

    const other = module('other', file('one', '1\n'));
    const left = await orch('apply', '-f', other, '--yes');
    expect(left.status).toBe(6);
    expect(left.stderr).toContain('everything that is managed');
    expect(left.stderr).toContain('module site is not named');
    expect(left.stderr).toMatch(
      /hint: to keep what site declared, give its module too[\s\S]*to remove it, say how many/,
    );
  });

  it('goes after a yes to the question that names it, however much it is, and with fewer allowed nothing is asked', async () => {
    const many = Array.from({ length: 11 }, (_, index) => file(`f${index}`, 'x\n'));
    await json('apply', '-f', module('site', directory(), ...many), '--yes');
    const path = module('site', directory());
    const terminal = (...more: readonly string[]) => {
      const words = [ORCH, 'apply', '--local', '--data-dir', data, '-f', path, ...more];
      const pty = new Pty([process.execPath, ...words], { env: sandbox.env, cwd: sandbox.root, cols: 160, rows: 50 });
      onTestFinished(() => pty.kill());
      return pty;
    };
    const few = terminal('--allow-removals', '10');
    const [said] = await few.shows(/this apply would remove|Apply it/);
    expect(said).toBe('this apply would remove');
    expect(await few.ended()).toBe(6);
    expect(readdirSync(site)).toHaveLength(11);
    const asked = terminal();
    await asked.shows(/Apply it, with 11 removals\?/);
    asked.write('y\r');
    expect(await asked.ended(), asked.output).toBe(0);
    expect(readdirSync(site)).toEqual([]);
  });

  it('is known after an apply that was killed', async () => {
    const files = Array.from({ length: 1500 }, (_, index) => file(`f${index}`, 'x\n'));
    const path = module('site', directory(), ...files);
    const child = sandbox.start(['apply', '--local', '--data-dir', data, '-f', path, '--yes']);
    for (let round = 0; round < 3000 && !existsSync(`${site}/f0`); round += 1) {
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
    await child.stop('SIGKILL');
    expect(existsSync(`${site}/f0`)).toBe(true);
    expect(await orch('apply', '-f', path, '--yes')).toMatchObject({ status: 0 });
    const state = JSON.parse(readFileSync(`${data}/state.json`, 'utf8')) as { applied: { origin: string }[] };
    expect(state.applied.filter(({ origin }) => origin !== 'created')).toEqual([]);
    expect(state.applied).toHaveLength(1501);
  });
});

describe('an apply that is ended in the middle of a script', () => {
  const pidFile = () => sandbox.path('pid');
  const script = () => `  - id: long
    resource: {script: {program: sh, apply: "echo $$ >${pidFile()}; exec sleep 300"}}
`;
  const isRunning = (pid: number) => {
    try {
      process.kill(pid, 0);
      return !readFileSync(`/proc/${pid}/stat`, 'utf8').includes(') Z ');
    } catch {
      return false;
    }
  };

  /** The status, and the process of the script. */
  async function ended(signal: NodeJS.Signals): Promise<{ status: number | null; script: number }> {
    mkdirSync(site, { mode: 0o750 });
    const path = module('site', file('made', 'x\n'), script());
    const child = sandbox.start(['apply', '--local', '--data-dir', data, '-f', path, '--yes']);
    await until(() => existsSync(pidFile()) && readFileSync(pidFile(), 'utf8').endsWith('\n'), 'the script runs');
    const status = await child.stop(signal);
    return { status, script: Number(readFileSync(pidFile(), 'utf8')) };
  }

  /** The file is known to be orch's own. */
  async function expectRemovable() {
    expect(existsSync(`${site}/made`)).toBe(true);
    const path = module('site', directory());
    expect((await orch('plan', '-f', path)).stdout).toMatch(/- file-unix .*\/made/);
    expect(await orch('apply', '-f', path, '--yes', '--allow-removals', '1')).toMatchObject({ status: 0 });
    expect(existsSync(`${site}/made`)).toBe(false);
  }

  it.each([
    ['SIGINT', 130],
    ['SIGTERM', 143],
    ['SIGHUP', 129],
  ] as const)('%s ends the script, and keeps what was done', async (signal, status) => {
    const { status: seen, script: pid } = await ended(signal);
    expect(seen).toBe(status);
    expect(isRunning(pid)).toBe(false);
    expect(readFileSync(`${data}/state.json`, 'utf8')).toContain(`${site}/made`);
    await expectRemovable();
  });

  it('SIGKILL loses nothing that was reported', async () => {
    const { script: pid } = await ended('SIGKILL');
    if (isRunning(pid)) process.kill(pid, 'SIGKILL');
    expect((await json<DriftDetail>('drift')).summary).toMatchObject({ total: 1, unchanged: 1 });
    await expectRemovable();
  });

  it('marks secrets as before, ignores a torn record, and says when the journal is lost', async () => {
    writeFileSync(sandbox.path('password'), 'correct-horse-battery');
    mkdirSync(site, { mode: 0o750 });
    const secret = `  - resource:\n      file-unix: {path: ${site}/conf, content: "\${{ secrets.DB }}"}\n`;
    const long = `  - id: long\n    resource: {script: {program: sh, apply: "echo $$ >${pidFile()}; exec sleep 300"}}\n`;
    const given = ['-f', module('site', secret, long), '--secret-file', `DB=${sandbox.path('password')}`];
    const child = sandbox.start(['apply', '--local', '--data-dir', data, ...given, '--yes']);
    await until(() => existsSync(pidFile()) && readFileSync(pidFile(), 'utf8').endsWith('\n'), 'the script runs');
    await child.stop('SIGKILL');
    process.kill(Number(readFileSync(pidFile(), 'utf8')), 'SIGKILL');
    expect(readFileSync(`${data}/journal`, 'utf8')).toContain(`${site}/conf`);
    expect(readFileSync(`${data}/journal`, 'utf8')).not.toContain('correct-horse');
    expect(statSync(`${data}/journal`).mode & 0o777).toBe(0o600);
    appendFileSync(`${data}/journal`, Buffer.from([0x1e, 0x4f, 0x52, 0x4a, 0xff, 0, 0, 0]));
    const drift = await orch('drift', ...given);
    expect(drift).toMatchObject({ status: 0 });
    expect(drift.stderr).not.toContain('is not compared');
    expect(await json<DriftDetail>('drift', ...given)).toMatchObject({ summary: { total: 1, unchanged: 1 } });
    rmSync(`${data}/journal`);
    const lost = (await orch('drift', ...given)).stderr;
    expect(lost).toContain(`the journal ${data}/journal is empty or missing`);
    expect(lost).toContain('what only a cut-off apply made counts as there before');
    expect(lost).toContain('nothing was ever applied');
    expect((await orch('drift', ...given)).stderr).not.toContain('is empty or missing');
  });
});

describe('a full disk', () => {
  it('ends an apply clearly, and what it made is known when there is room again', async (context) => {
    const mounted = () => succeeds('mount', '-t', 'tmpfs', '-o', 'size=256k', 'orch-test', data);
    data = `${place()}/mount`;
    mkdirSync(data);
    needs(context, isRoot && process.platform === 'linux' && mounted(), 'root on Linux who may mount');
    onTestFinished(() => {
      run('umount', '-l', data);
    });
    const fill = `head -c 400k /dev/zero >${data}/ballast || true`;
    const filler = `  - id: fill\n    resource: {script: {program: sh, apply: "${fill}"}}\n`;
    mkdirSync(site);
    const rest = Array.from({ length: 200 }, (_, index) => file(`last${index}`, 'y\n'));
    const path = module('site', file('first', 'x\n'.repeat(10_000)), filler, ...rest);
    const full = await orch('apply', '-f', path, '--yes');
    expect(full.status).toBe(1);
    expect(full.stderr).toMatch(/what was applied cannot be written to .*state\.json: ENOSPC/);
    expect(full.stderr).toContain('free space');
    expect(readdirSync(site)).toEqual(['first']);
    rmSync(`${data}/ballast`);
    expect((await json<DriftDetail>('drift')).summary).toMatchObject({ total: 2, unchanged: 2 });
    const without = module('site', directory());
    expect((await orch('plan', '-f', without)).stdout).toMatch(/- file-unix .*\/first/);
  });
});

describe('secrets', () => {
  it('are written, and shown nowhere', async () => {
    const secret = 'correct-horse-battery';
    writeFileSync(sandbox.path('password'), secret);
    const path = module('site', directory(), file('conf', `user a\npassword \${{ secrets.DB }}\n`));
    const given = ['-f', path, '--secret-file', `DB=${sandbox.path('password')}`];
    const plan = await orch('plan', ...given);
    expect(plan.stdout).toMatch(/password ‹secret DB #[0-9a-f]{4}›/);
    const applied = await orch('apply', ...given, '--yes', '-v');
    expect(applied.status).toBe(0);
    expect(readFileSync(`${site}/conf`, 'utf8')).toBe(`user a\npassword ${secret}\n`);
    expect(statSync(`${site}/conf`).mode & 0o777).toBe(0o600);
    expect(await json<DriftDetail>('drift', ...given)).toMatchObject({ status: 'in_sync' });
    const kept = readdirSync(data, { recursive: true, encoding: 'utf8' }).map((name) => `${data}/${name}`);
    for (const path of kept) if (statSync(path).isFile()) expect(readFileSync(path, 'utf8')).not.toContain(secret);
    writeFileSync(sandbox.path('password'), 'another-horse-battery');
    expect((await json<RunResult>('plan', ...given)).has_changes).toBe(true);
    writeFileSync(sandbox.path('password'), secret);

    const without = await orch('drift');
    expect(without).toMatchObject({ status: 0 });
    expect(without.stderr).toContain('holds a secret and is not compared');
    appendFileSync(`${site}/conf`, 'more\n');
    const drift = await orch('drift', ...given, '--detailed-exitcode');
    expect(drift.status).toBe(2);
    for (const { stdout, stderr } of [plan, applied, without, drift]) expect(stdout + stderr).not.toContain(secret);
    expect(readFileSync(`${data}/state.json`, 'utf8')).not.toContain(secret);

    const missing = await orch('plan', '-f', path);
    expect(missing.status).toBe(1);
    expect(missing.stderr).toContain('the secret "DB" does not exist');
  });

  it('keep a script that cannot be without one out of a drift check that is not given it', async () => {
    writeFileSync(sandbox.path('password'), 'correct-horse-battery');
    const script = `  - id: once\n    resource: {script: {program: sh, apply: ": \${{ secrets.DB }}"}}\n`;
    const given = ['-f', module('site', directory(), script), '--secret-file', `DB=${sandbox.path('password')}`];
    expect(await orch('apply', ...given, '--yes')).toMatchObject({ status: 0 });
    expect(await json<DriftDetail>('drift', ...given)).toMatchObject({ summary: { unchanged: 2 } });
    const without = await orch('drift');
    expect(without).toMatchObject({ status: 0 });
    expect(without.stderr).toContain('script once: apply holds a secret and is not compared');
  });

  it('keep all that makes one thing with them out of such a check, too', async () => {
    writeFileSync(sandbox.path('password'), 'correct-horse-battery');
    const script = `  - id: once\n    resource: {script: {program: sh, check: ": \${{ secrets.DB }}", apply: "exit 1"}}\n`;
    const given = ['-f', module('site', directory(), script), '--secret-file', `DB=${sandbox.path('password')}`];
    expect(await orch('apply', ...given, '--yes')).toMatchObject({ status: 0 });
    expect(await json<DriftDetail>('drift')).toMatchObject({ status: 'in_sync', summary: { total: 1, unchanged: 1 } });
  });
});

describe('what is refused', () => {
  it.each([
    [['plan', '--local', 'web-01'], /names no agent/],
    [['apply', '--local', 'web-01', '--yes'], /names no agent/],
    [['drift', '--local', 'web-01'], /names no agent/],
    [['plan', '--local'], /needs module files/],
    [['plan', '--local', '-m', 'site'], /-m needs an orchestrator/],
    [['plan', '--local', '-f', 'x', '--out', 'x.orchplan'], /--out needs an orchestrator/],
    [['plan', '--tag', 'a=b', 'web-01'], /--tag goes with --local/],
    [['drift', '-f', 'x', 'web-01'], /-f goes with --local/],
    [['drift', '--local', '--selector', '*'], /needs an orchestrator, and --local has none/],
    [['plan', '--local', '-f', 'x', '--tag', '='], /--tag takes KEY=VALUE/],
    [['plan', '--local', '-f', 'x', '--secret-file', 'DB'], /--secret-file takes NAME=FILE/],
    [['plan'], /needs an agent/],
    [['apply', '--local', '-f', 'x'], /x does not exist/],
  ])('orch %j', async (argv, message) => {
    const ran = await sandbox.orch([...argv, ...(argv.includes('--local') ? ['--data-dir', data] : [])]);
    expect(ran.status).toBe(64);
    expect(ran.stderr).toMatch(message);
  });

  it('what the machine does not allow, with the reason', async () => {
    mkdirSync(site);
    symlinkSync('nowhere', `${site}/link`);
    const path = module(
      'site',
      file('link/f', 'x'),
      '  - resource: {file-unix: {path: /proc/sys/vm/swappiness-of-orch, content: x}}\n',
      '  - id: probe\n    resource: {script: {program: sh, check: nosuchcommand --version, apply: "true"}}\n',
    );
    const reasons = async (verb: string, ...more: readonly string[]) => {
      const { stdout } = await orch(verb, '-f', path, '-o', 'json', ...more);
      return (JSON.parse(stdout) as RunResult).resources.map(({ error }) => error?.message ?? null);
    };
    const dangling = `${site}/link is a symlink to nowhere, which does not exist, so nothing can lie below it; make the target, or remove the link`;
    const virtual = expect.stringContaining('files cannot be made in /proc/sys/vm, where the kernel keeps its own');
    expect(await reasons('plan')).toEqual([dangling, virtual, null]);
    expect(await reasons('apply', '--yes')).toEqual([
      dangling,
      virtual,
      expect.stringMatching(
        /^probe still differs after the change: its check ended with status 127.*nosuchcommand: not found/s,
      ),
    ]);
  });

  it.each([
    [
      'braces that no quotes hold',
      'content: {{ x }}',
      /put the value in quotes. orch writes its expressions as "\$\{\{ … \}\}"/,
    ],
    ['a blank that is none', 'content: x\n   \u00a0   mode: "0644"', /no-break space \(U\+00A0\)/],
  ])('%s, with the mend', async (_, text, advice) => {
    const path = module('site', `  - resource:\n      file-unix:\n        path: ${site}/f\n        ${text}\n`);
    const refused = await orch('plan', '-f', path);
    expect(refused.status).not.toBe(0);
    expect(refused.stderr).toMatch(advice);
  });

  it('a merge of mappings, without a warning of the anchor that it uses', async () => {
    const anchored = `  - resource:\n      file-unix: &b {path: ${site}/f, content: x}\n`;
    const path = module('site', anchored, `  - resource:\n      file-unix:\n        <<: *b\n        path: ${site}/g\n`);
    const refused = await orch('plan', '-f', path);
    expect(refused.stderr).toContain('merge keys are not part of the module language');
    expect(refused.stderr).not.toContain('no alias uses');
  });

  it('a module that is not for this machine, and a state that is damaged', async () => {
    const path = sandbox.path('mac.orch.yaml');
    writeFileSync(path, 'name: mac\nsupports:\n  - platform: macos\nresources: []\n');
    expect((await orch('plan', '-f', path)).stderr).toContain('does not support agent');
    await json('apply', '-f', module('site', directory()), '--yes');
    writeFileSync(`${data}/state.json`, '{"version":1}');
    const damaged = await orch('plan', '-f', module('site', directory()));
    expect(damaged.status).toBe(1);
    expect(damaged.stderr).toContain('state.json does not hold what was applied');
    rmSync(data, { recursive: true });
  });
});
