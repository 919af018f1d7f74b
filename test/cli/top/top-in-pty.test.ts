/** `orch top` in a real terminal, with a real orchestrator and a real agent. */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Agent } from '../../../src/contract/agents.js';
import { Pty } from '../../support/pty.js';
import { TerminalFleet } from '../../support/terminal-fleet.js';
import { until } from '../../support/until.js';

let fleet: TerminalFleet;
const open = new Set<Pty>();

beforeAll(async () => {
  fleet = await TerminalFleet.start();
});
afterAll(async () => {
  for (const pty of open) pty.kill();
  await fleet.dispose();
});

const quote = (word: string): string => `'${word}'`;

/** Runs it below a shell with jobs, which compares the settings of the terminal afterwards. */
function startTop(size: { readonly cols: number; readonly rows: number } = { cols: 80, rows: 24 }): Pty {
  const { env, root, program } = fleet.sandbox;
  const pty = new Pty(['/bin/bash', '--norc', '-i'], { cwd: root, env: { ...env, PS1: 'PROMPT$ ' }, ...size });
  open.add(pty);
  pty.write(`BEFORE=$(stty -g); ${quote(process.execPath)} ${quote(program)} top; echo "STATUS=$?"; `);
  pty.write('[ "$BEFORE" = "$(stty -g)" ] && echo SAME-TERMINAL\n');
  return pty;
}

it('opens an agent and a terminal on it, comes back, and gives the terminal back', async () => {
  const pty = startTop();
  await pty.displays(/^> web-01 +up/);
  pty.write('\r');
  await pty.displays(/^orch top {2}agent web-01/);
  await pty.displays(/^Attributes/);
  pty.write('t');
  await pty.displays(/this session is recorded/);
  pty.write('echo in-the-$((40+2))-shell\r');
  // Behind the prompt when the line was typed before it.
  await pty.displays(/in-the-42-shell/);
  pty.write('exit\r');
  await pty.displays(/the terminal on web-01 is closed/);
  pty.resize(120, 40);
  pty.write('\x1b');
  await pty.displays(/^> web-01 +up/);
  pty.write('q');
  await pty.displays(/^STATUS=0/);
  await pty.displays(/^SAME-TERMINAL/);
});

it('stops at Ctrl-Z, and goes on at fg', async () => {
  const pty = startTop();
  await pty.displays(/^> web-01 +up/);
  pty.write('\x1a');
  await pty.displays(/Stopped/);
  pty.write('fg\n');
  await pty.displays(/^> web-01 +up/);
  pty.write('q');
  await pty.displays(/^PROMPT\$ ?$/);
});

it('gives the terminal back at SIGTERM', async () => {
  const pty = startTop();
  await pty.displays(/^> web-01 +up/);
  const child = execFileSync('pgrep', ['-P', `${pty.pid}`], { encoding: 'utf8' });
  process.kill(Number(child.trim()), 'SIGTERM');
  await pty.displays(/^STATUS=143/);
  await pty.displays(/^SAME-TERMINAL/);
});

describe('applies and approves after a question', () => {
  const target = () => fleet.sandbox.path('by-top');

  async function orch(...args: readonly string[]): Promise<void> {
    const { status, stderr } = await fleet.sandbox.orch(args);
    if (status !== 0) throw new Error(`orch ${args.join(' ')} ended with ${status}: ${stderr}`);
  }

  async function publish(resources: string): Promise<void> {
    const path = fleet.sandbox.path('by-top.orch.yaml');
    writeFileSync(path, `name: by-top\nsupports:\n  - platform: linux\nresources:${resources}\n`);
    await orch('module', 'publish', path, '--yes');
  }

  const file = () => `
  - name: a file
    resource:
      file-unix: {path: ${target()}, content: "green\\n", mode: "0600"}
  - name: another
    resource:
      file-unix: {path: ${target()}-too, content: "red\\n", mode: "0600"}`;

  const operations = async (): Promise<number> =>
    (await fleet.sandbox.json<{ operations: unknown[] }>(['ops', 'list', '--agent', 'web-01'])).operations.length;

  beforeAll(async () => {
    await publish(file());
    await orch('assignments', 'create', 'by-top', '-m', 'by-top', '-l', '*');
  });

  it.each([
    { cols: 80, rows: 24 },
    { cols: 50, rows: 16 },
  ])('plans without a change, applies at a yes alone, and shows the operation, at $cols columns', async (size) => {
    rmSync(target(), { force: true });
    const before = await operations();
    const pty = startTop(size);
    await pty.displays(/^> web-01 +up/);
    pty.write('p');
    await pty.displays(/plan for web-01/);
    await pty.displays(/by-top/);
    expect(existsSync(target())).toBe(false);
    pty.write('a');
    await pty.displays(/Plan for 1 agent: web-01/);
    await pty.displays(/^\? Apply this to web-01\? \(y\/N\)/);
    expect(existsSync(target())).toBe(false);
    pty.write('\r');
    await pty.displays(/not confirmed, nothing was changed/);
    expect([existsSync(target()), await operations()]).toEqual([false, before]);
    pty.write('a');
    await pty.displays(/^\? Apply this to web-01\? \(y\/N\)/);
    pty.write('y\r');
    await pty.displays(/operation on web-01/);
    await pty.displays(/applied to web-01/);
    expect(readFileSync(target(), 'utf8')).toBe('green\n');
    pty.write('j');
    await pty.displays(/Status +succeeded/);
    pty.write('\x1b');
    await pty.displays(/^> (?:\S+ +)?succeeded/);
    pty.write('\x1b');
    await pty.displays(/^orch top {2}agent web-01/);
    for (const line of pty.lines) expect(line.length).toBeLessThanOrEqual(size.cols);
    pty.write('q');
    await pty.displays(/^STATUS=0/);
    await pty.displays(/^SAME-TERMINAL/);
  });

  it('takes no answer that was typed before the question', async () => {
    const go = fleet.sandbox.path('go');
    const ran = fleet.sandbox.path('ran');
    // The plan runs the check, so that it lasts until the keys have been typed.
    await publish(`${file()}
  - id: slow
    resource:
      script:
        program: sh
        check: 'while [ ! -e ${go} ]; do sleep 0.05; done; test -e ${ran}'
        apply: 'touch ${ran}'`);
    const before = await operations();
    const pty = startTop();
    await pty.displays(/^> web-01 +up/);
    pty.write('a');
    await pty.displays(/Plan for 1 agent: web-01/);
    pty.write('y\ry\r');
    // The terminal shows them, so that they wait to be read.
    await pty.displays(/^y$/);
    writeFileSync(go, '');
    await pty.displays(/^\? Apply this to web-01\? \(y\/N\)/);
    pty.write('\r');
    await pty.displays(/not confirmed, nothing was changed/);
    expect([existsSync(ran), await operations()]).toEqual([false, before]);
    pty.write('q');
    await pty.displays(/^STATUS=0/);
    await publish(file());
  });

  it('asks even when nothing changes, and Ctrl-C at the question comes back', async () => {
    const before = await operations();
    const pty = startTop();
    await pty.displays(/^> web-01 +up/);
    pty.write('a');
    await pty.displays(/^\? Nothing changes on web-01\. Apply it/);
    pty.write('\x03');
    await pty.displays(/web-01: interrupted/);
    await pty.displays(/^> web-01 +up/);
    expect(await operations()).toBe(before);
    pty.write('q');
    await pty.displays(/^STATUS=0/);
    await pty.displays(/^SAME-TERMINAL/);
  });

  it('names each removal and their number, and ends at SIGTERM with the terminal as it was', async () => {
    await publish(file().split('\n  - name: another')[0] ?? '');
    const pty = startTop();
    await pty.displays(/^> web-01 +up/);
    pty.write('a');
    await pty.displays(/This removes from web-01:/);
    await pty.displays(/- file-unix .*by-top-too/);
    await pty.displays(/with 1 removal\?/);
    const child = execFileSync('pgrep', ['-P', `${pty.pid}`], { encoding: 'utf8' });
    process.kill(Number(child.trim()), 'SIGTERM');
    await pty.displays(/^STATUS=143/);
    await pty.displays(/^SAME-TERMINAL/);
    expect(existsSync(`${target()}-too`)).toBe(true);
  });

  it('shows drift', async () => {
    writeFileSync(target(), 'by hand\n');
    await orch('drift', 'web-01');
    const pty = startTop();
    await pty.displays(/^> web-01 +up/);
    pty.write('D');
    await pty.displays(/drift of web-01/);
    await pty.displays(/Status +drifted/);
    await pty.displays(/green/);
    pty.write('q');
    await pty.displays(/^STATUS=0/);
  });

  it('approves at a yes to the key that it shows', async () => {
    const { sandbox } = fleet;
    const words = [
      'agent',
      'connect',
      `127.0.0.1:${fleet.agentCable.port}`,
      '--orchestrator-key',
      fleet.orchestratorKey,
    ];
    const second = sandbox.start([...words, '--data-dir', sandbox.path('second')]);
    const pendingOnes = async () => (await sandbox.json<Agent[]>(['agents', '--status', 'pending'])).length;
    await until(async () => (await pendingOnes()) === 1, 'the second agent waits');
    const pty = startTop();
    await pty.displays(/ pending/);
    pty.write('/pending\r');
    await pty.displays(/^> .* pending/);
    pty.write('A');
    await pty.displays(/Name of the agent/);
    pty.write('web-02\r');
    await pty.displays(/Approve this agent as web-02\?/);
    await pty.displays(/Public key/);
    expect(await pendingOnes()).toBe(1);
    pty.write('y\r');
    await pty.displays(/approved /);
    await until(async () => (await pendingOnes()) === 0, 'it is approved');
    pty.write('\x1bq');
    await pty.displays(/^STATUS=0/);
    await second.stop();
  });
});
