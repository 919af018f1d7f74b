/** The end of a session: stores it, shows it to everybody who is attached, and waits for the one who wrote to see all of it. */
import { messageOf } from '../../../src/kernel/fault.js';
import type { Exit, ExitReason } from '../../../src/terminal/exit.js';
import { jsonFrame } from '../../../src/terminal/frames.js';
import { TERMINAL_CLOSE } from '../../../src/terminal/limits.js';
import type { RequestContext } from '../../core/domain-event.js';
import type { ClientEnd } from './client-end.js';
import type { SessionCore } from './session-core.js';
import { isOver } from './session-state.js';

export interface SessionEndingOptions {
  /** Over for the agent: told by whatever way there is. */
  readonly dismiss: () => void;
  /** It is over and stored, and nobody is being served any more. */
  readonly onGone: () => void;
}

/** How long after its end a session still serves the one who wrote and has not got all of it, in milliseconds. */
const LINGER = 60_000;
/** Ends that the agent tells: it knows, and keeps the session until its socket is closed. */
export const BY_AGENT: ReadonlySet<ExitReason> = new Set([
  'exited',
  'timed_out',
  'disabled',
  'agent_stopped',
  'failed',
]);

export class SessionEnding {
  private readonly core: SessionCore;
  private readonly options: SessionEndingOptions;
  private storedAt: number | null = null;
  /** The one who wrote has got all of it. */
  private isServed = false;

  constructor(core: SessionCore, options: SessionEndingOptions) {
    this.core = core;
    this.options = options;
  }

  /** The end is stored, and may be told. */
  get isStored(): boolean {
    return this.storedAt !== null;
  }

  /** Of a session that has just ended. Resolves when that is stored. */
  async store(exit: Exit, by: RequestContext | null): Promise<void> {
    const { agent, book, clock, course, facts, recording, relay } = this.core;
    if (!agent.isHere || !BY_AGENT.has(exit.reason)) this.options.dismiss();
    const transcriptSha256 = await this.seal(exit.code);
    await book
      .ended(facts, { exit, bytes: relay.received, size: relay.size, recording: recording.state, transcriptSha256, by })
      // The book stores it later.
      .catch((error: unknown) => this.failed('the end of a terminal could not be stored, it is tried again', error));
    course.take({ type: 'stored' });
    this.storedAt = clock.monotonic();
    if (exit.reason === 'operator_removed') this.isServed = true;
    agent.close(TERMINAL_CLOSE.done, 'all is stored');
    relay.finish();
    this.leaveWhenServed();
  }

  /** A client has been sent all output. */
  served({ secretHash, socket }: ClientEnd): void {
    const { course, keys } = this.core;
    if (!isOver(course.state)) return;
    if (keys.pen === null || secretHash === keys.pen.hash) this.isServed = true;
    socket.send(jsonFrame('exit', course.state.exit));
    socket.close(TERMINAL_CLOSE.done, 'the session is over');
  }

  /** Not over, or not yet shown to the end to the one who wrote, who may have been cut off in the last moment. */
  isServing(operatorId: string): boolean {
    const { course, facts, keys } = this.core;
    if (!course.isOver) return true;
    return !this.isServed && operatorId === (keys.pen?.operatorId ?? facts.operatorId);
  }

  leaveWhenServed(): void {
    const { clock, people, relay } = this.core;
    if (this.storedAt === null || people.count > 0) return;
    if (!this.isServed && clock.monotonic() - this.storedAt < LINGER) return;
    relay.dropScreen();
    this.options.onGone();
  }

  private async seal(status: number | null): Promise<string | null> {
    const { recording } = this.core;
    try {
      return await recording.seal(status);
    } catch (error) {
      recording.stop('failed', messageOf(error));
      this.failed('a recording was not closed', error);
      return null;
    }
  }

  private failed(what: string, error: unknown): void {
    this.core.logger.error(what, { session_id: this.core.facts.id, reason: messageOf(error) });
  }
}
