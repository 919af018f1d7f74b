/** First contact with an orchestrator: which key the agent trusts, how it forgets it, and the enrolment token that it shows. */
import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { holderOf } from '../identity/data-directory.js';
import { readPin, requirePinned, writePin } from '../identity/pin.js';
import { Fault } from '../kernel/fault.js';
import type { PublicKeyHex } from '../kernel/ids.js';
import type { Logger } from '../kernel/logger.js';
import { REFUSAL_TEXT, type TokenVerdict } from '../wire/enrolment-token.js';

export const PIN_FILE = 'orchestrator.pub';

export interface TrustOptions {
  readonly dataDir: string;
  /** Expected key, pinned once the orchestrator has proved it. */
  readonly orchestratorKey?: PublicKeyHex | undefined;
  /** Pins the key of the first orchestrator that answers. */
  readonly trustOnFirstUse: boolean;
  /** Asks the user of the terminal; null without one. */
  readonly ask: ((question: string) => Promise<boolean>) | null;
}

/** Thrown from the handshake, because an answer may take longer than the handshake may last. */
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

  /** The pinned key; null before the first contact. */
  get key(): PublicKeyHex | null {
    return this.pinned;
  }

  /** The only trusted key; null while any may be accepted. */
  get expected(): PublicKeyHex | null {
    return this.pinned ?? this.options.orchestratorKey ?? null;
  }

  /** The Fault for a given key that contradicts the pinned one, or null. */
  get pinMismatch(): Fault | null {
    const { orchestratorKey: given } = this.options;
    if (given === undefined || this.pinned === null || given === this.pinned) return null;
    return new Fault('pin_mismatch', `${this.file} pins ${this.pinned}, and the agent was given ${given}`, {
      hint: 'give the pinned key or none; if the orchestrator really has a new key, first forget the pinned one with "orch agent repin"',
      data: { pinned: this.pinned, given },
    });
  }

  /** Checks the key that the peer has proved in the handshake. Throws `pin_mismatch`, `pin_missing`, or an error for `confirm`. */
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

  /** Asks the question that a failed attempt left open. Returns true if there was one and the answer was yes. */
  async confirm(error: unknown, where: string): Promise<boolean> {
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

/** Deletes the pinned key. Throws `agent_running` while an agent uses the directory, `data_dir_invalid` without an agent. */
export function repin(dataDir: string): void {
  if (!['identity.key', PIN_FILE].some((name) => existsSync(join(dataDir, name)))) {
    throw new Fault('data_dir_invalid', `there is no agent in ${dataDir}`, {
      hint: 'name its directory with --data-dir',
    });
  }
  const pid = holderOf(dataDir)?.pid ?? null;
  if (pid !== null) {
    throw new Fault('agent_running', `the agent of ${dataDir} runs as process ${pid}`, {
      hint: 'stop it first, then repin, then start it with the new key',
      data: { pid },
    });
  }
  rmSync(join(dataDir, PIN_FILE), { force: true });
}

/** File in the data directory in which the installation leaves the enrolment token for the service. */
export const TOKEN_FILE = 'enrolment-token';

/** An enrolment token, shown until the orchestrator has answered it. */
export interface OfferedToken {
  readonly text: string;
  /** File with the token, deleted once the orchestrator has answered it; null for a token kept only in memory. */
  readonly file: string | null;
  /** Key of the only orchestrator that may see it. */
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

  /** Why the token was refused, or null. */
  get problem(): string | null {
    return this.refusal;
  }

  /** Returns the token for an orchestrator that has proved this key, or null. */
  offerTo(key: PublicKeyHex): string | null {
    return this.token?.orchestratorKey === key ? this.token.text : null;
  }

  answered(verdict: TokenVerdict): void {
    this.drop();
    if (verdict === 'accepted') {
      this.logger.info('the enrolment token was accepted');
      return;
    }
    this.refusal = `the enrolment token was not accepted: ${REFUSAL_TEXT[verdict]}`;
    this.logger.error(this.refusal, {
      hint: 'the agent goes on without it and waits for approval by an operator, or start it with a new one: orch enroll create',
    });
  }

  /** Drops the token, because the orchestrator has answered hello. */
  statusReceived(status: 'pending' | 'approved'): void {
    this.drop();
    if (status === 'approved') this.refusal = null;
  }

  private drop(): void {
    const file = this.token?.file ?? null;
    this.token = null;
    if (file !== null) rmSync(file, { force: true });
  }
}
