/** The stage of the quickstart: child processes of this program with a home of their own, and the output of the tour. */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Chalk, type ChalkInstance } from 'chalk';
import type { Agent } from '../../src/contract/agents.js';
import { Fault } from '../../src/kernel/fault.js';

interface StageOptions {
  /** Directory of all files. */
  readonly directory: string;
  readonly color: boolean;
  readonly out: NodeJS.WritableStream;
}

/** The ready file of `orch serve`. */
interface Ready {
  readonly api_url: string;
  readonly agent_address: string;
  readonly tls_fingerprint: string;
  readonly public_key: string;
}

interface Outcome {
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Time limit for the start of a program or a connection. */
const START_TIMEOUT_MS = 30_000;
const STOP_MS = 10_000;

export class Stage {
  private readonly directory: string;
  private readonly out: NodeJS.WritableStream;
  private readonly paint: ChalkInstance;
  private readonly env: NodeJS.ProcessEnv;
  private readonly programs: { readonly process: ChildProcess; readonly log: () => string }[] = [];
  private readonly commands = new Set<ChildProcess>();
  private steps = 0;

  constructor({ directory, color, out }: StageOptions) {
    this.directory = directory;
    this.out = out;
    this.paint = new Chalk({ level: color ? 1 : 0 });
    // An early end of this process, such as by a closed pipe, also ends the programs.
    process.once('exit', () => {
      for (const { process: child } of this.programs) child.kill('SIGTERM');
    });
    const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith('ORCH_'));
    this.env = {
      ...Object.fromEntries(inherited),
      XDG_CONFIG_HOME: join(directory, 'config'),
      XDG_STATE_HOME: join(directory, 'state'),
      ...(color ? { FORCE_COLOR: '1' } : { NO_COLOR: '1' }),
    };
  }

  say(text: string): void {
    this.out.write(`${text}\n`);
  }

  title(text: string): void {
    this.steps += 1;
    this.say(`\n${this.paint.bold(`${this.steps}. ${text}`)}`);
  }

  /** Shows a file that was just written. */
  file(path: string): void {
    this.command(`cat ${path}`);
    this.say(indent(readFileSync(path, 'utf8')));
  }

  /** Shows a shell command and runs `act` in its place. */
  shell(line: string, act: () => void): void {
    this.command(line);
    act();
  }

  /** Runs a command of orch and shows it with its output. Throws when it fails. */
  async orch(...args: readonly string[]): Promise<void> {
    this.command(`orch ${args.join(' ')}`);
    const { status, stdout, stderr } = await this.run(args);
    const shown = indent(stderr + stdout);
    if (shown !== '') this.say(shown);
    if (status !== 0) {
      throw new Fault('internal', `"orch ${args.join(' ')}" ended with status ${status}`, {
        hint: `everything is still in ${this.directory}`,
      });
    }
  }

  /** Starts the orchestrator on free loopback ports and waits until it accepts connections. */
  async startServe(): Promise<Ready> {
    const file = join(this.directory, 'ready.json');
    const data = join(this.directory, 'orchestrator');
    const serve = ['serve', '--api-port', '0', '--agent-port', '0', '--agent-host', '127.0.0.1', '--data-dir', data];
    const program = this.start([...serve, '--ready-file', file]);
    await this.wait('the orchestrator accepts connections', () => existsSync(file), program);
    return JSON.parse(readFileSync(file, 'utf8')) as Ready;
  }

  async startAgent(ready: Ready): Promise<void> {
    const data = join(this.directory, 'agent');
    this.start(['agent', 'connect', ready.agent_address, '--orchestrator-key', ready.public_key, '--data-dir', data]);
  }

  /** Waits for the agent that needs approval and returns its node ID. */
  async pendingAgent(): Promise<string> {
    let found: Agent | undefined;
    await this.wait('the agent waits for approval', async () => {
      found = (await this.agents()).find((agent) => agent.status === 'pending');
      return found !== undefined;
    });
    return (found as Agent).node_id;
  }

  async connectedAgent(name: string): Promise<void> {
    await this.wait('the agent is connected', async () =>
      (await this.agents()).some((agent) => agent.name === name && agent.connected),
    );
  }

  /** Shows the next commands to type. */
  next(keep: boolean): void {
    if (keep) {
      this.say(`   export XDG_CONFIG_HOME=${this.env.XDG_CONFIG_HOME} XDG_STATE_HOME=${this.env.XDG_STATE_HOME}`);
      for (const line of ['orch agents', 'orch state this-machine', 'orch ops list', 'orch audit list'])
        this.say(`   ${line}`);
      return;
    }
    this.say('   orch quickstart --keep       the same tour, and the programs stay up for you to try things');
    this.say('   orch operator init           your own key, then: orch serve');
    this.say('   orch agent connect HOST      on each machine, then: orch agents approve NODE --name NAME');
    this.say(`   rm -r ${this.directory}   everything that the tour made`);
  }

  /** Settles with 130 at the first SIGINT or SIGTERM. */
  untilInterrupted(): Promise<number> {
    return new Promise((resolve) => {
      for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => resolve(130));
    });
  }

  /** Rejects when the orchestrator or the agent ends by itself. */
  programEnded(): Promise<never> {
    return Promise.race(
      this.programs.map(
        ({ process: child, log }) =>
          new Promise<never>((_, reject) => {
            child.once('close', () => reject(new Fault('internal', `a program ended by itself:\n${log()}`)));
          }),
      ),
    );
  }

  /** Ends all started processes: the agent first, then the orchestrator. */
  async close(): Promise<void> {
    for (const child of this.commands) child.kill('SIGTERM');
    for (const { process: child } of [...this.programs].reverse()) await ended(child);
  }

  private command(line: string): void {
    this.say(`   ${this.paint.cyan(`$ ${line}`)}`);
  }

  private async agents(): Promise<readonly Agent[]> {
    const { stdout } = await this.run(['agents', 'list', '-o', 'json']);
    return JSON.parse(stdout) as readonly Agent[];
  }

  private run(args: readonly string[]): Promise<Outcome> {
    return new Promise((resolve, reject) => {
      const child = this.spawn(args);
      this.commands.add(child);
      const [stdout, stderr] = [collect(child.stdout), collect(child.stderr)];
      child.on('error', reject);
      child.on('close', (code) => {
        this.commands.delete(child);
        resolve({ status: code ?? 1, stdout: stdout(), stderr: stderr() });
      });
    });
  }

  private start(args: readonly string[]): ChildProcess {
    this.command(`orch ${args.join(' ')} &`);
    const child = this.spawn(args);
    const [stdout, stderr] = [collect(child.stdout), collect(child.stderr)];
    this.programs.push({ process: child, log: () => stdout() + stderr() });
    return child;
  }

  private spawn(args: readonly string[]): ChildProcess {
    const program = process.argv[1] as string;
    // A process group of its own, so that Ctrl-C reaches only this process, which stops the others in order.
    return spawn(process.execPath, [program, ...args], {
      env: this.env,
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
    });
  }

  private async wait(what: string, condition: () => boolean | Promise<boolean>, needed?: ChildProcess): Promise<void> {
    const since = performance.now();
    while (performance.now() - since < START_TIMEOUT_MS) {
      if (await condition()) return;
      if (needed !== undefined && needed.exitCode !== null) break;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    const logs = this.programs.map(({ log }) => log()).join('\n');
    throw new Fault('internal', `timed out waiting until ${what}`, {
      hint: `output of the programs:\n${indent(logs)}`,
    });
  }
}

function collect(stream: NodeJS.ReadableStream | null): () => string {
  let text = '';
  stream?.on('data', (chunk: Buffer) => {
    text += chunk.toString();
  });
  return () => text;
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const over = new Promise((resolve) => child.once('close', resolve));
  child.kill('SIGTERM');
  const last = setTimeout(() => child.kill('SIGKILL'), STOP_MS);
  await over;
  clearTimeout(last);
}

const indent = (text: string): string =>
  text
    .trimEnd()
    .split('\n')
    .map((line) => (line === '' ? '' : `   ${line}`))
    .join('\n');
