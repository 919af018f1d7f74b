/** The enrolment token that the agent was given: in memory alone, and shown until there is an answer to it. */
import type { PublicKeyHex } from '../kernel/ids.js';
import type { Logger } from '../kernel/logger.js';
import { REFUSAL_TEXT, type TokenVerdict } from '../wire/enrolment-token.js';

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
