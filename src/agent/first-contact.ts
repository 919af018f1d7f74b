/** Which key the agent trusts: the pinned one, else the given one, else the one that a person or a flag accepts. */
import { join } from 'node:path';
import { readPin, requirePinned, writePin } from '../identity/pin.js';
import { Fault } from '../kernel/fault.js';
import type { PublicKeyHex } from '../kernel/ids.js';
import type { Logger } from '../kernel/logger.js';
import { REFUSAL_TEXT, type TokenVerdict } from '../wire/enrolment-token.js';

export const PIN_FILE = 'orchestrator.pub';

export interface TrustOptions {
  readonly dataDir: string;
  /** The key that the orchestrator has to have; pinned once the orchestrator has proved it. */
  readonly orchestratorKey?: PublicKeyHex | undefined;
  /** Pin whatever key the first orchestrator shows. */
  readonly trustOnFirstUse: boolean;
  /** Asks a person; null when there is nobody to ask. */
  readonly ask: ((question: string) => Promise<boolean>) | null;
}

/** Thrown out of the handshake, because a person takes longer than it may last. */
class QuestionPending extends Error {
  readonly key: PublicKeyHex;
  constructor(key: PublicKeyHex) {
    super('the key of the orchestrator has to be confirmed first');
    this.key = key;
  }
}

export class Trust {
  private readonly options: TrustOptions;
  private readonly file: string;
  private pinned: PublicKeyHex | null;

  constructor(options: TrustOptions) {
    this.options = options;
    this.file = join(options.dataDir, PIN_FILE);
    this.pinned = readPin(this.file);
  }

  /** The key that an orchestrator has proved to this agent; null before the first contact. */
  get key(): PublicKeyHex | null {
    return this.pinned;
  }

  /** The only key that is trusted; null while any may be accepted. */
  get expected(): PublicKeyHex | null {
    return this.pinned ?? this.options.orchestratorKey ?? null;
  }

  /** A given key that contradicts the pinned one, which counts; null when there is no contradiction. */
  get contradiction(): Fault | null {
    const { orchestratorKey: given } = this.options;
    if (given === undefined || this.pinned === null || given === this.pinned) return null;
    return new Fault('pin_mismatch', `${this.file} pins ${this.pinned}, and the agent was given ${given}`, {
      hint: 'give the pinned key or none; if the orchestrator really has a new key, first forget the pinned one with "orch agent repin"',
      data: { pinned: this.pinned, given },
    });
  }

  /** For the handshake, in which the peer has proved the key. Throws `pin_mismatch`, `pin_missing`, or what `settle` has to see. */
  verify(shown: PublicKeyHex, where: string): void {
    const { orchestratorKey: given } = this.options;
    if (this.pinned !== null) {
      requirePinned(this.pinned, shown, where);
      return;
    }
    if (given !== undefined && given !== shown) throw notTheGiven(given, shown, where);
    if (given !== undefined || this.options.trustOnFirstUse) {
      this.pin(shown);
      return;
    }
    if (this.options.ask !== null) throw new QuestionPending(shown);
    throw new Fault('pin_missing', `the key of the orchestrator at ${where} is not known here: it shows ${shown}`, {
      hint: `compare it with the key in the orchestrator's first log line, then: orch agent connect ${where} --orchestrator-key ${shown}`,
    });
  }

  /** After a failed attempt: asks the question it left open. True when there was one and the answer was yes. */
  async settle(error: unknown, where: string): Promise<boolean> {
    if (!(error instanceof QuestionPending) || this.options.ask === null) return false;
    const yes = await this.options.ask(
      `The orchestrator at ${where} shows the key\n  ${error.key}\nCompare it with "orch status" or the first log line of orch serve. Trust it from now on?`,
    );
    if (!yes) {
      throw new Fault('pin_missing', `the key of the orchestrator at ${where} was not accepted`, {
        hint: 'its key is in the first log line of orch serve',
      });
    }
    this.pin(error.key);
    return true;
  }

  private pin(key: PublicKeyHex): void {
    writePin(this.file, key);
    this.pinned = key;
  }
}

const notTheGiven = (given: PublicKeyHex, shown: PublicKeyHex, where: string): Fault =>
  new Fault('pin_mismatch', `${where} shows the key ${shown}, but the agent was given ${given}`, {
    hint: 'nothing was pinned: compare both with "orch status" on the orchestrator, and start the agent with the right key or the right address',
    data: { given, shown },
  });

/** The enrolment token that the agent was given: in memory alone, and shown until there is an answer to it. */
export interface OfferedToken {
  readonly text: string;
  /** Of the only orchestrator that may see it. */
  readonly orchestratorKey: PublicKeyHex;
}

export class Enrolment {
  private readonly logger: Logger;
  private token: OfferedToken | null;
  private refusal: string | null = null;

  constructor(token: OfferedToken | undefined, logger: Logger) {
    this.token = token ?? null;
    this.logger = logger;
  }

  /** Why the agent waits although it had a token, else null. */
  get problem(): string | null {
    return this.refusal;
  }

  /** What to show to an orchestrator that has proved this key. */
  offerTo(key: PublicKeyHex): string | null {
    return this.token?.orchestratorKey === key ? this.token.text : null;
  }

  judged(verdict: TokenVerdict): void {
    this.token = null;
    if (verdict === 'accepted') {
      this.logger.info('the enrolment token was accepted');
      return;
    }
    this.refusal = `the enrolment token was not accepted: ${REFUSAL_TEXT[verdict]}`;
    this.logger.error(this.refusal, {
      hint: 'the agent goes on without it and waits for approval by an operator, or start it with a new one: orch enroll create',
    });
  }

  /** The agent was told where it stands: a token has done what it can. */
  settled(status: 'pending' | 'approved'): void {
    this.token = null;
    if (status === 'approved') this.refusal = null;
  }
}
