/** Two booted machines for tests of terminals: an orchestrator, and one with an agent and a user `ada`. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Agent } from '../../src/contract/agents.js';
import type { TerminalSession } from '../../src/contract/terminal.js';
import { until } from '../support/orch.js';
import type { Outcome } from './command.js';
import { startFleet } from './fleet.js';
import type { BootedHost } from './host.js';
import type { Program } from './program.js';

export interface TerminalSite {
  readonly control: BootedHost;
  /** Named `web-01`. */
  readonly web: BootedHost;
  /** As the operator, on the orchestrator's machine. */
  readonly orch: (...args: readonly string[]) => Promise<Outcome>;
  readonly json: <T>(...args: readonly string[]) => Promise<T>;
  /** Standard output of a line on the machine with the agent. */
  readonly sh: (line: string) => Promise<string>;
  /** On a terminal of its own, which `script` makes; it ends with the status of the command. */
  readonly onTerminal: (line: string) => Promise<Program>;
  readonly newest: () => Promise<TerminalSession>;
  readonly isConnected: () => Promise<boolean>;
  /** Writes the configuration file of the agent, which has read it then. */
  readonly configure: (yaml: string) => Promise<void>;
  readonly stop: () => Promise<void>;
}

const unit = (name: string) => readFileSync(fileURLToPath(new URL(`units/${name}.service`, import.meta.url)), 'utf8');

export interface TerminalSiteOptions {
  /** Debian packages that both have besides. */
  readonly packages?: readonly string[];
  /** The configuration file of the orchestrator. */
  readonly configuration?: string;
}

export async function startTerminalSite({ packages = [], configuration = '' }: TerminalSiteOptions = {}) {
  const fleet = await startFleet({ hosts: ['orch', 'web-01'], packages });
  const site = siteOf(fleet.host('orch'), fleet.host('web-01'), fleet.stop);
  try {
    await site.control.writeFile('/etc/orch/orchestrator.yaml', `${configuration}\n`);
    await connect(site);
    await must(site.web.run(['useradd', '--create-home', '--shell', '/bin/bash', 'ada']));
    await must(site.web.run(['groupadd', 'engines']));
    await must(site.web.run(['usermod', '--append', '--groups', 'engines', 'ada']));
    return site;
  } catch (error) {
    await fleet.stop();
    throw error;
  }
}

function siteOf(control: BootedHost, web: BootedHost, stop: () => Promise<void>): TerminalSite {
  const orch: TerminalSite['orch'] = (...args) => control.run(['orch', ...args], { timeoutMs: 120_000 });
  const json = async <T>(...args: readonly string[]): Promise<T> =>
    JSON.parse(await must(orch(...args, '-o', 'json'))) as T;
  const sh = async (line: string) => (await web.run(['sh', '-c', line])).stdout;
  const read = () => sh('journalctl -u orch-agent -o cat | grep -c "was read again"');
  return {
    ...{ control, web, orch, json, sh, stop },
    onTerminal: (line) =>
      control.spawn(['script', '--quiet', '--flush', '--return', '--command', line, '/dev/null'], {
        env: { TERM: 'xterm-256color' },
      }),
    newest: async () => {
      const [first] = await json<TerminalSession[]>('term', 'list', '--all');
      if (first === undefined) throw new Error('there is no session');
      return first;
    },
    isConnected: async () => (await json<Agent[]>('agents', 'list')).some(({ connected }) => connected),
    configure: async (yaml) => {
      if ((await sh('cat /etc/orch/agent.yaml')).trim() === yaml) return;
      const before = await read();
      await web.writeFile('/etc/orch/agent.yaml', `${yaml}\n`);
      await until(async () => (await read()) !== before, 'the agent has read its configuration again');
    },
  };
}

async function connect({ control, web, orch, json, isConnected }: TerminalSite): Promise<void> {
  await must(orch('operator', 'init'));
  await control.writeFile('/etc/systemd/system/orch-serve.service', unit('orch-serve'));
  await must(control.run(['systemctl', 'enable', '--now', 'orch-serve']));
  await until(async () => (await orch('status')).stderr.includes('--tls-fingerprint'), 'the API answers');
  const fingerprint = /--tls-fingerprint ([0-9a-f:]{64,})/.exec((await orch('status')).stderr)?.[1] as string;
  const url = ['--url', 'https://127.0.0.1:4748', '--tls-fingerprint', fingerprint];
  await must(orch('profile', 'create', 'here', ...url));
  const { public_key: key } = await json<{ public_key: string }>('status');
  await web.writeFile('/etc/orch/agent.env', `ORCHESTRATOR=orch:4747\nORCHESTRATOR_KEY=${key}\n`, '0600');
  await web.writeFile('/etc/systemd/system/orch-agent.service', unit('orch-agent'));
  await must(web.run(['systemctl', 'enable', '--now', 'orch-agent']));
  const agents = () => json<Agent[]>('agents', 'list');
  await until(async () => (await agents()).length === 1, 'the machine waits');
  await must(orch('agents', 'approve', (await agents())[0]?.node_id as string, '--name', 'web-01', '--yes'));
  await until(isConnected, 'the machine is connected');
}

/** Its standard output. */
async function must(outcome: Promise<Outcome>): Promise<string> {
  const { status, stdout, stderr } = await outcome;
  if (status !== 0) throw new Error(`a command ended with ${status}:\n${stderr}${stdout}`);
  return stdout;
}
