/** Runs the shell blocks of a guide with the built command: programs in the background, everything else in a shell. */
import { spawn } from 'node:child_process';
import { createPublicKey } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { COMMANDS } from '../../src/cli/commands/index.js';
import type { Agent } from '../../src/contract/agents.js';
import { freePort } from './free-port.js';
import { ORCH, type Ready, type Running, Sandbox, until } from './orch.js';
import { commandsOf, missingLine, type ShellBlock } from './shell-blocks.js';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** Changes a command of a page to what this test has, such as a key in place of `KEY`. */
export type Substitution = readonly [RegExp, string | (() => string | Promise<string>)];

/** A machine with an orchestrator and an agent, and the homes of several operators, all below one directory. */
export class Walkthrough {
  readonly sandbox = new Sandbox();
  private readonly substitutions: readonly Substitution[];
  private readonly homes = new Map<string, NodeJS.ProcessEnv>();
  private readonly programs: Running[] = [];
  private ports: { readonly api: number; readonly agent: number } | null = null;
  private ready: Ready | null = null;

  constructor(substitutions: readonly Substitution[] = []) {
    this.substitutions = substitutions;
    const bin = this.sandbox.path('bin');
    mkdirSync(bin);
    writeFileSync(join(bin, 'orch'), `#!/bin/sh\nexec ${process.execPath} ${ORCH} "$@"\n`, { mode: 0o755 });
    writeFileSync(join(bin, 'sudo'), '#!/bin/sh\nexec "$@"\n', { mode: 0o755 });
    for (const name of ['work', 'backup', 'machine']) mkdirSync(this.sandbox.path(name));
    cpSync(join(root, 'examples'), this.sandbox.path('work', 'examples'), { recursive: true });
    this.moveFiles(this.sandbox.path('work'));
  }

  /** Directory in which blocks run, with a copy of `examples/` that writes below `machine` alone. */
  get directory(): string {
    return this.sandbox.path('work');
  }

  /** Lets modules below a directory write to the machine of this test instead of the real one. */
  private moveFiles(directory: string): void {
    for (const name of readdirSync(directory, { recursive: true, encoding: 'utf8' })) {
      if (!name.endsWith('.yaml')) continue;
      const path = join(directory, name);
      writeFileSync(path, this.onThisMachine(readFileSync(path, 'utf8')));
    }
  }

  /** Moves paths that a page shows to directories of this test. */
  private onThisMachine(text: string): string {
    return text
      .replaceAll('/mnt/backup', this.sandbox.path('backup'))
      .replaceAll('/var/lib/orch-agent', this.sandbox.path('agent'))
      .replaceAll(/\/var\/lib\/orch\b/g, this.sandbox.path('serve'))
      .replaceAll(/(?<![\w.])\/(etc|opt|srv)\//g, `${this.sandbox.path('machine')}/$1/`);
  }

  private async env(home: string): Promise<NodeJS.ProcessEnv> {
    const found = this.homes.get(home);
    if (found !== undefined) return found;
    this.ports ??= { api: await freePort(), agent: await freePort() };
    const directory = this.sandbox.path('homes', home);
    mkdirSync(directory, { recursive: true });
    const made: NodeJS.ProcessEnv = {
      ...this.sandbox.env,
      HOME: directory,
      XDG_CONFIG_HOME: join(directory, '.config'),
      XDG_STATE_HOME: join(directory, '.local/state'),
      PATH: `${this.sandbox.path('bin')}:${process.env.PATH}`,
      ORCH_SERVE_DATA_DIR: this.sandbox.path('serve'),
      ORCH_SERVE_API_PORT: String(this.ports.api),
      ORCH_SERVE_AGENT_PORT: String(this.ports.agent),
      ORCH_SERVE_AGENT_HOST: '127.0.0.1',
      ORCH_AGENT_DATA_DIR: this.sandbox.path('agent'),
    };
    this.homes.set(home, made);
    return made;
  }

  /**
   * Runs the commands of a block in their order. Throws with the output of the first one that fails, or that prints something
   * else than the page shows. The places `stopped` and `started` are the host, after the orchestrator was stopped or started.
   */
  async run(block: ShellBlock): Promise<void> {
    if (block.place === 'stopped') await this.stopServe();
    if (block.place === 'started') await this.startServe();
    const home = ['stopped', 'started'].includes(block.place) ? 'host' : block.place;
    const env = await this.env(home);
    for (const shown of commandsOf(block)) {
      const command = await this.adapted(shown.command);
      if (BACKGROUND.test(command)) await this.startProgram(command, env);
      else {
        if (NEEDS_AGENTS.test(command)) await this.connected();
        const output = await this.shell(command, { ...env, ...this.trust(home) });
        const missing = missingLine(shown.output, output);
        if (missing !== undefined) throw new Error(`"${command}" does not print "${missing}", but:\n${output}`);
      }
    }
  }

  /** Starts the orchestrator of a guide that does not show its start. */
  async startServe(): Promise<void> {
    const env = await this.env('host');
    if (!existsSync(this.sandbox.path('homes/host/.config/orch/operator.key')))
      await this.shell('orch operator init', env);
    await this.startProgram('orch serve', env);
  }

  /** Starts an agent for a guide that does not show its start, and approves it under a name. */
  async startAgent(name: string): Promise<void> {
    const env = await this.env('host');
    const { agent_address: address, public_key: key } = this.ready as Ready;
    await this.startProgram(`orch agent connect ${address} --orchestrator-key ${key}`, env);
    const node = await this.pendingNode();
    await this.shell(`orch agents approve ${node} --name ${name} --yes`, { ...env, ...this.trust('host') });
    await this.connected();
  }

  /** On the host of the orchestrator the profile of its first operator is not needed; the test confirms the certificate. */
  private trust(home: string): NodeJS.ProcessEnv {
    if (home !== 'host' || this.ready === null) return {};
    return { ORCH_URL: this.ready.api_url, ORCH_TLS_FINGERPRINT: this.ready.tls_fingerprint };
  }

  private async adapted(shown: string): Promise<string> {
    let command = this.onThisMachine(shown)
      .replaceAll('127.0.0.1:4748', `127.0.0.1:${this.ports?.api}`)
      .replace('--local', `--local --data-dir ${this.sandbox.path('local')}`);
    for (const [pattern, value] of [...this.substitutions, ...this.placeholders()]) {
      if (pattern.test(command)) command = command.replace(pattern, typeof value === 'string' ? value : await value());
    }
    return (await asks(command)) ? command.replace(/(?= -- |$)/, ' --yes') : command;
  }

  private placeholders(): readonly Substitution[] {
    const ready = () => this.ready as Ready;
    return [
      [/(?<=--orchestrator-key )KEY\b/, () => ready().public_key],
      [/(?<=operator add |recover-admin )KEY\b/, () => this.publicKeyOf('laptop')],
      [/(?<=operator add )VIEWERKEY\b/, () => publicKeyIn(join(this.directory, 'viewer.key'))],
      [/(?<=operator add )OPERATORKEY\b/, () => publicKeyIn(join(this.directory, 'operator.key'))],
      [/(?<=agent connect )HOST\b/, () => ready().agent_address],
      [/(?<=--tls-fingerprint )HEX\b/, () => ready().tls_fingerprint],
      [/(?<=agents approve )[0-9a-f]{8}\b/, () => this.pendingNode()],
    ];
  }

  /** Public key of the operator of another home, which a person would copy by hand. */
  private async publicKeyOf(home: string): Promise<string> {
    const { XDG_CONFIG_HOME = '' } = await this.env(home);
    return publicKeyIn(join(XDG_CONFIG_HOME, 'orch/operator.key'));
  }

  private async pendingNode(): Promise<string> {
    let found: Agent | undefined;
    await until(async () => {
      found = (await this.agents()).find(({ status }) => status === 'pending');
      return found !== undefined;
    }, 'an agent waits for approval');
    return (found as Agent).node_id;
  }

  private async agents(): Promise<readonly Agent[]> {
    const env = { ...(await this.env('host')), ...this.trust('host') };
    return JSON.parse(await this.shell('orch agents -o json 2>/dev/null', env)) as Agent[];
  }

  /** Waits until every approved agent is connected, as a person would before the next command. */
  private async connected(): Promise<void> {
    await until(
      async () => (await this.agents()).every(({ status, connected }) => status !== 'approved' || connected),
      'the approved agents are connected',
    );
  }

  private async startProgram(command: string, env: NodeJS.ProcessEnv): Promise<void> {
    const words = command.split(/\s+/).slice(1);
    if (words[0] !== 'serve') {
      this.programs.push(this.sandbox.start(words, env));
      return;
    }
    const file = this.sandbox.path(`ready-${this.programs.length}.json`);
    const server = this.sandbox.start([...words, '--ready-file', file], env);
    this.programs.push(server);
    await until(() => existsSync(file) || server.process.exitCode !== null, 'orch serve is ready');
    if (!existsSync(file)) throw new Error(`orch serve ended early:\n${server.output()}`);
    this.ready = JSON.parse(readFileSync(file, 'utf8')) as Ready;
  }

  /** Stops the orchestrator, as Ctrl-C or systemd does. The agent keeps running. */
  private async stopServe(): Promise<void> {
    await this.programs.find(({ process }) => process.spawnargs.includes('serve') && process.exitCode === null)?.stop();
  }

  private async shell(command: string, env: NodeJS.ProcessEnv): Promise<string> {
    const child = spawn('bash', ['-euo', 'pipefail', '-c', command], { env, cwd: this.directory });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += chunk));
    child.stdin.end();
    const status = await new Promise<number | null>((resolve) => child.on('close', resolve));
    if (status !== 0) throw new Error(`"${command}" ended with ${status}:\n${output}`);
    return output;
  }

  dispose(): Promise<void> {
    return this.sandbox.dispose();
  }
}

/** Programs that run until they are stopped. */
const BACKGROUND = /^orch (serve|agent connect)\b(?! (install|backup|restore|rotate|uninstall|recover|accept))/;

/** Commands that reach agents. */
const NEEDS_AGENTS = /^orch (plan|apply|drift|exec|verify)\b/;

/** Returns the public key of a key file without a passphrase, in hex. */
function publicKeyIn(file: string): string {
  const { x = '' } = createPublicKey(readFileSync(file)).export({ format: 'jwk' });
  return Buffer.from(x, 'base64url').toString('hex');
}

/** Returns whether a command of orch asks for consent, so that a test has to answer with `--yes`. */
async function asks(command: string): Promise<boolean> {
  const words = command.replace(/^sudo /, '').split(/\s+/);
  if (words[0] !== 'orch' || words.includes('--yes')) return false;
  const entry = COMMANDS.filter(({ path }) => words.slice(1).join(' ').startsWith(path)).sort(
    (one, other) => other.path.length - one.path.length,
  )[0];
  return entry !== undefined && (await entry.load()).consent;
}
