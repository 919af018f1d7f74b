/** Predicted echo with the real programs, over a way that takes its time. */
import { writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, onTestFinished, vi } from 'vitest';
import type { Agent } from '../../src/contract/agents.js';
import type { TerminalSession } from '../../src/contract/terminal.js';
import { itNeeding } from '../support/needing.js';
import { type Ready, Sandbox, until } from '../support/orch.js';
import { Pty } from '../support/pty.js';
import { SlowWay } from '../support/slow-way.js';

vi.setConfig({ testTimeout: 120_000 });

const ORCH = fileURLToPath(new URL('../../dist/orch/orch.js', import.meta.url));
const DELAY = 60;
const sandbox = new Sandbox();
let ready: Ready;
let way: SlowWay;

beforeAll(async () => {
  expect((await sandbox.orch(['operator', 'init'])).status).toBe(0);
  ({ ready } = await sandbox.serve());
  way = await SlowWay.to(Number(new URL(ready.api_url).port), DELAY);
  const create = ['profile', 'create', 'test', '--url', ready.api_url, '--tls-fingerprint', ready.tls_fingerprint];
  expect(await sandbox.orch(create)).toMatchObject({ status: 0 });
  expect(await sandbox.orch(['profile', 'use', 'test'])).toMatchObject({ status: 0 });
  const config = sandbox.path('agent.yaml');
  writeFileSync(config, 'remote_terminal:\n  enabled: true\n  shell: /bin/bash\n', { mode: 0o600 });
  const words = ['--orchestrator-key', ready.public_key, '--data-dir', sandbox.path('agent'), '--config', config];
  sandbox.start(['agent', 'connect', ready.agent_address, ...words]);
  let agents: Agent[] = [];
  await until(async () => {
    agents = await sandbox.json<Agent[]>(['agents', 'list']);
    return agents.length === 1;
  }, 'the agent waits');
  await sandbox.json(['agents', 'approve', agents[0]?.node_id ?? '', '--name', 'web-01', '--yes']);
  await until(async () => (await sandbox.json<Agent[]>(['agents', 'list']))[0]?.connected === true, 'it is connected');
});

afterAll(async () => {
  await way.close();
  await sandbox.dispose();
});

/** A shell at its prompt, over the slow way. */
async function shell(...options: readonly string[]): Promise<Pty> {
  const url = `https://127.0.0.1:${way.port}`;
  const at = ['--url', url, '--tls-fingerprint', ready.tls_fingerprint];
  const pty = new Pty([process.execPath, ORCH, 'term', 'web-01', ...at, ...options], {
    env: sandbox.env,
    cwd: sandbox.root,
  });
  onTestFinished(() => pty.kill());
  await pty.shows(/[$#] $/);
  pty.write("PS1='rea''dy> '\r");
  await pty.displays(/^ready> ?$/);
  return pty;
}

/** Types the beginning of a line like a person who looks, until a key is shown before an answer can have come back. */
async function begin(pty: Pty): Promise<void> {
  const isPredicted = async (): Promise<boolean> => {
    await sleep(4 * DELAY);
    pty.write('a');
    await pty.displays(/^ready> a$/);
    pty.write('b');
    await pty.displays(/^ready> ab$/);
    await sleep(4 * DELAY);
    way.hold();
    pty.write('c');
    for (let look = 0; look < 20 && !pty.lines.includes('ready> abc'); look += 1) await sleep(10);
    const isShown = pty.lines.includes('ready> abc');
    way.release();
    await pty.displays(/^ready> abc$/);
    if (!isShown) pty.write('\x7f\x7f\x7f');
    return isShown;
  };
  await until(isPredicted, 'keys are predicted');
}

describe('predicted echo with the real programs', () => {
  itNeeding('bash', 'stty')(
    'shows keys while nothing comes through, and in the end what the shell has drawn',
    async () => {
      const pty = await shell();
      await begin(pty);
      way.hold();
      pty.write('\x7f\x7f\x7fecho one');
      await pty.displays(/^ready> echo one$/);
      pty.write('\x7f\x7f\x7ftwo');
      await pty.displays(/^ready> echo two$/);
      way.release();
      pty.write(" th''ree\r");
      await pty.displays(/^two three$/);
      expect(pty.lines).toContain("ready> echo two th''ree");
      pty.write('exit 4\r');
      expect(await pty.ended()).toBe(4);
    },
  );

  itNeeding('bash', 'stty')('shows nothing of its own with --predict never', async () => {
    const pty = await shell('--predict', 'never');
    pty.write('e');
    await pty.displays(/^ready> e$/);
    const begun = pty.output.length;
    pty.write('cho unpredicted\r');
    await pty.displays(/^unpredicted$/);
    expect(pty.output.slice(begun)).toMatch(/^cho unpredicted\r\n/);
    pty.write('exit\r');
    expect(await pty.ended()).toBe(0);
  });

  itNeeding('bash', 'stty')('never shows a password, also one that is typed ahead', async () => {
    const pty = await shell();
    await begin(pty);
    pty.write('\x15');
    // The shell has taken the line back.
    await pty.displays(/^ready> ?$/);
    const prompts = [
      ['read -rs one', 'QWERTZ'],
      ['sleep 0.2; read -rs two', 'UIOPAS'],
      ['sleep 0.2; stty -echo; read -r three; stty echo', 'DFGHJK'],
      ['sleep 0.1; read -rsn 4 four', 'LYVB'],
    ] as const;
    const begun = pty.output.length;
    for (const [index, [command, password]] of prompts.entries()) {
      const line = `${command}; echo do''ne ${index}`;
      // A prediction begins with a key that is looked at.
      await sleep(4 * DELAY);
      pty.write(line.slice(0, 1));
      await sleep(4 * DELAY);
      for (const key of line.slice(1)) {
        await sleep(10);
        pty.write(key);
      }
      pty.write('\r');
      for (const key of `${password}${index === 3 ? '' : '\r'}`) {
        await sleep(DELAY);
        pty.write(key);
      }
      await pty.displays(new RegExp(`done ${index}$`));
    }
    const output = pty.output.slice(begun);
    const [session] = await sandbox.json<TerminalSession[]>(['term', 'list']);
    pty.write('exit\r');
    expect(await pty.ended()).toBe(0);
    const { stdout } = await sandbox.orch(['term', 'transcript', session?.session_id ?? '', '--format', 'raw']);
    // The system's echo before it was turned off is in the transcript too.
    const all = new Set(prompts.flatMap(([, password]) => [...password]));
    const shown = [...lettersOf(output)].filter((letter) => all.has(letter));
    expect(shown.filter((letter) => !lettersOf(stdout).has(letter))).toEqual([]);
  });
});

/** Without those of control sequences. */
const lettersOf = (output: string): Set<string> => new Set(output.replaceAll(/\x1b\[[0-9;?]*[ -/]*[@-~]/g, ''));
