/** A real orchestrator without agents, its operator, and the operator's client. */
import { randomUUID } from 'node:crypto';
import { copyFileSync, existsSync, rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { type OpenDatabase, openDatabase } from '../../daemon/database/database.js';
import { loadSqlite } from '../../daemon/database/sqlite/load-sqlite.js';
import type { ApiClient } from '../../src/client/api-client.js';
import { resolveConnection } from '../../src/client/connection.js';
import { connect } from '../../src/client/http-api-client.js';
import { openSigner, type Signer } from '../../src/client/login.js';
import { messageOf } from '../../src/kernel/fault.js';
import { silentLogger } from '../../src/kernel/logger.js';
import { type Ready, type Running, Sandbox } from '../support/orch.js';
import type { LoadTarget } from './http-load.js';

const ORCH = fileURLToPath(new URL('../../dist/orch/orch.js', import.meta.url));

export class Orchestrator {
  readonly sandbox: Sandbox;
  readonly api: ApiClient;
  readonly signer: Signer;
  private server: Running;
  private current: Ready;
  private readonly flags: readonly string[];

  private constructor(
    sandbox: Sandbox,
    { server, ready }: { server: Running; ready: Ready },
    flags: readonly string[],
  ) {
    this.sandbox = sandbox;
    this.server = server;
    this.current = ready;
    this.flags = flags;
    const connection = resolveConnection({
      flags: { url: ready.api_url, tlsFingerprint: ready.tls_fingerprint },
      env: sandbox.env,
      profiles: { path: '/nowhere', standard: null, byName: {} },
    });
    const clock = { now: () => Date.now(), monotonic: () => performance.now() };
    this.signer = openSigner(connection.key);
    this.api = connect({ connection, signer: async () => this.signer, clock, newId: randomUUID, warn: () => {} });
  }

  /** Starts `orch serve` with an operator, who also has a profile for the command. */
  static async start(flags: readonly string[] = [], env: NodeJS.ProcessEnv = {}): Promise<Orchestrator> {
    const sandbox = new Sandbox();
    const run = async (...args: readonly string[]) => {
      const { status, stderr } = await sandbox.orch(args);
      if (status !== 0) throw new Error(`orch ${args.join(' ')} ended with ${status}: ${stderr}`);
    };
    try {
      await run('operator', 'init');
      const started = await sandbox.serve(flags, env);
      const { api_url: url, tls_fingerprint: fingerprint } = started.ready;
      await run('profile', 'create', 'bench', '--url', url, '--tls-fingerprint', fingerprint);
      await run('profile', 'use', 'bench');
      return new Orchestrator(sandbox, started, flags);
    } catch (error) {
      await sandbox.dispose();
      throw error;
    }
  }

  get env(): NodeJS.ProcessEnv {
    return this.sandbox.env;
  }

  get ready(): Ready {
    return this.current;
  }

  get pid(): number {
    return this.server.process.pid as number;
  }

  get storeFile(): string {
    return this.sandbox.path('serve', 'orch.db');
  }

  /** Port of the agent link. */
  get agentPort(): number {
    return Number(/:(\d+)$/.exec(this.current.agent_address)?.[1]);
  }

  /** Returns the words that run `orch` with these arguments. */
  command(...args: readonly string[]): readonly string[] {
    return [process.execPath, ORCH, ...args];
  }

  /** Logs in once more and returns the token of the session. */
  async logIn(): Promise<string> {
    const { publicKey: public_key } = this.signer;
    const { nonce } = await this.api.call('createChallenge', { body: { public_key } });
    const signature = await this.signer.sign(Buffer.from(nonce, 'hex'));
    return (await this.api.call('verifyChallenge', { body: { public_key, signature } })).token;
  }

  /** Returns a request for `http-load` with the session of a token. */
  get(path: string, token: string): LoadTarget {
    const { host, port } = new URL(this.current.api_url);
    const head = [`GET /api/v1${path} HTTP/1.1`, `host: ${host}`, `authorization: Bearer ${token}`];
    return { port: Number(port), request: [...head, 'accept: application/json', '', ''].join('\r\n') };
  }

  /** Uploads a module with so many files of 200 bytes below a directory named after it. */
  async uploadFiles(name: string, files: number): Promise<void> {
    await this.api.call('uploadModule', { body: { name, content: moduleOfFiles(name, files) } });
  }

  /** Ends `orch serve` with SIGTERM, calls `meanwhile`, and starts it again on the same ports. */
  async restart(flags: readonly string[] = [], meanwhile: () => Promise<void> = async () => {}): Promise<void> {
    await this.server.stop();
    await meanwhile();
    const ports = ['--agent-port', String(this.agentPort), '--api-port', new URL(this.current.api_url).port];
    const { server, ready } = await this.sandbox.serve([...this.flags, ...ports, ...flags]);
    this.server = server;
    this.current = ready;
  }

  /** Opens the store of the stopped orchestrator. */
  openStore(): Promise<OpenDatabase> {
    return openDatabase({ server: null, file: this.storeFile, logger: silentLogger, clock: Date, onFatal: () => {} });
  }

  /**
   * Returns the bytes of the store that hold something, in its main file or not yet. Reads a copy, because the orchestrator keeps
   * its store locked, so call it while nothing is written.
   */
  async storedBytes(): Promise<number> {
    const copy = this.sandbox.path('copy.db');
    for (const suffix of ['', '-wal']) {
      rmSync(copy + suffix, { force: true });
      if (existsSync(this.storeFile + suffix)) copyFileSync(this.storeFile + suffix, copy + suffix);
    }
    const Sqlite = await loadSqlite();
    const store = new Sqlite(copy);
    try {
      const read = (name: string) => Number(store.pragma(name, { simple: true }));
      return (read('page_count') - read('freelist_count')) * read('page_size');
    } finally {
      store.close();
    }
  }

  async stop(): Promise<void> {
    this.api.close();
    try {
      await this.sandbox.dispose();
    } catch (error) {
      // It complains of warnings of the runtime, which is for tests to find; the figures are worth having.
      process.stderr.write(`${messageOf(error)}\n`);
    }
  }
}

/** Returns the text of a module with files of 200 bytes. */
export function moduleOfFiles(name: string, files: number): string {
  const resources = Array.from({ length: files }, (_, index) => {
    const content = `${index} `.repeat(200).slice(0, 199);
    return `- resource: {file-unix: {path: /srv/${name}/${index % 10}/file-${index}, content: "${content}\\n"}}\n`;
  });
  return `name: ${name}\nsupports: [{platform: linux}]\nresources:\n${resources.join('')}`;
}
