/** A session through the client's library: what came of it, as a hash and to look through, at a pace that the test decides. */
import { createHash } from 'node:crypto';
import type { SuccessBody } from '../../../src/client/api-client.js';
import { connectTerminal } from '../../../src/client/terminal/connect-terminal.js';
import type { LinkState, TerminalEnd } from '../../../src/client/terminal/terminal-events.js';
import type { TerminalSession } from '../../../src/client/terminal/terminal-session.js';
import { clock, type TerminalFleet } from './terminal-fleet.js';

/** Output that is kept to be looked through, in bytes. */
const KEPT = 64 * 1024;

export class TerminalClient {
  readonly session: TerminalSession;
  readonly ended: Promise<TerminalEnd>;
  readonly states: LinkState['kind'][] = [];
  /** Snapshots break the stream: a resuming client is never given one unless its place is gone. */
  snapshots = 0;
  /** Bytes so far. */
  received = 0;
  private hash = createHash('sha256');
  private kept = '';
  private waiting: (() => void)[] | null = null;
  private listener: (() => void) | null = null;

  static async shell(fleet: TerminalFleet): Promise<TerminalClient> {
    const params = { node_id: fleet.nodeId };
    const opened = await fleet.api.call('openTerminal', { params, query: { cols: 80, rows: 24 } });
    return new TerminalClient(fleet, opened);
  }

  static async exec(fleet: TerminalFleet, command: readonly string[]): Promise<TerminalClient> {
    const params = { node_id: fleet.nodeId };
    const opened = await fleet.api.call('execOnAgent', { params, body: { command: [...command] } });
    return new TerminalClient(fleet, opened);
  }

  /** A terminal that changes nothing, from the first byte of that command on; its program is not to be typed to at once. */
  static async running(fleet: TerminalFleet, command: string): Promise<TerminalClient> {
    const one = await TerminalClient.raw(fleet, `read -r; ${command}`);
    one.type('\n');
    return one;
  }

  /** A terminal that shows every byte that is typed, once and as it is, from the first one on. */
  static echo(fleet: TerminalFleet): Promise<TerminalClient> {
    return TerminalClient.raw(fleet, 'exec cat');
  }

  private static async raw(fleet: TerminalFleet, command: string): Promise<TerminalClient> {
    const one = await TerminalClient.shell(fleet);
    await one.shows(/[$#] /);
    // Keys that stop and interrupt do.
    one.type(`stty -icanon -icrnl -echo -opost; echo G""O; ${command}\r`);
    await one.shows(/GO\n/);
    one.beginAnew();
    return one;
  }

  private constructor({ api }: TerminalFleet, opened: SuccessBody<'openTerminal'>) {
    let end: (end: TerminalEnd) => void = () => {};
    this.ended = new Promise((resolve) => {
      end = resolve;
    });
    this.session = connectTerminal({
      api,
      sessionId: opened.session_id,
      wsUrl: opened.ws_url,
      mode: 'write',
      clock,
      random: Math.random,
      queueInput: true,
      events: {
        output: (_stream, bytes, done) => this.take(bytes, done),
        snapshot: (_snapshot, done) => {
          this.snapshots += 1;
          done();
        },
        note: () => {},
        state: ({ kind }) => this.states.push(kind),
        drain: () => {},
        inputDropped: () => {},
        ended: end,
      },
    });
  }

  get id(): string {
    return this.session.sessionId;
  }

  /** Of all output so far. */
  get sha256(): string {
    return this.hash.copy().digest('hex');
  }

  /** What came so far does not count. */
  beginAnew(): void {
    this.hash = createHash('sha256');
    this.received = 0;
    this.kept = '';
  }

  /** The newest output. */
  get text(): string {
    return this.kept;
  }

  type(text: string): void {
    this.session.sendInput(Buffer.from(text));
  }

  /** Takes nothing any more, as a terminal that has stopped. */
  stop(): void {
    this.waiting ??= [];
  }

  goOn(): void {
    const { waiting } = this;
    this.waiting = null;
    for (const done of waiting ?? []) done();
  }

  /** Waits until that was shown, for at most so many milliseconds, and forgets what came before. */
  async shows(pattern: RegExp, patience = 60_000): Promise<void> {
    const deadline = performance.now() + patience;
    while (!pattern.test(this.kept)) {
      if (performance.now() > deadline) {
        throw new Error(`session ${this.id} does not show ${pattern}: ${JSON.stringify(this.kept.slice(-500))}`);
      }
      await this.heard(200);
    }
    this.kept = '';
  }

  /** Types that, and waits for any output: milliseconds. */
  async echo(text: string): Promise<number> {
    const start = performance.now();
    const before = this.received;
    this.type(text);
    while (this.received === before) await this.heard(30_000);
    return performance.now() - start;
  }

  private heard(patience: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, patience);
      this.listener = () => {
        clearTimeout(timer);
        this.listener = null;
        resolve();
      };
    });
  }

  private take(bytes: Buffer, done: () => void): void {
    this.hash.update(bytes);
    this.received += bytes.length;
    this.kept = (this.kept + bytes.toString('latin1')).slice(-KEPT);
    if (this.waiting === null) done();
    else this.waiting.push(done);
    this.listener?.();
  }
}
