/** Whose key the agent trusts: the pinned one, else the one it was given, else the one a person or a flag accepts. */
import { join } from 'node:path';
import { readPin, requirePinned, writePin } from '../identity/pin.js';
import { Fault } from '../kernel/fault.js';
import type { PublicKeyHex } from '../kernel/ids.js';

export const PIN_FILE = 'orchestrator.pub';

export interface TrustOptions {
  readonly dataDir: string;
  /** The key that the orchestrator has to have; pinned at the start. */
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

  /** Throws `pin_mismatch` when another key than the given one is pinned already. */
  constructor(options: TrustOptions) {
    this.options = options;
    this.file = join(options.dataDir, PIN_FILE);
    if (options.orchestratorKey !== undefined) writePin(this.file, options.orchestratorKey);
    this.pinned = readPin(this.file);
  }

  get key(): PublicKeyHex | null {
    return this.pinned;
  }

  /** For the handshake. Throws `pin_mismatch`, `pin_missing`, or what `settle` has to see. */
  verify(shown: PublicKeyHex, where: string): void {
    if (this.pinned !== null) {
      requirePinned(this.pinned, shown, where);
      return;
    }
    if (this.options.trustOnFirstUse) {
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
