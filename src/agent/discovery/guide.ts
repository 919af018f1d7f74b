/** Where the agent looks for its orchestrator: at the place that it was told, or where discovery packets say. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { PublicKeyHex } from '../../kernel/ids.js';
import type { Target } from '../target.js';

export interface Place {
  readonly target: Target;
  /** The key that was announced for it; null for a place that was told otherwise. */
  readonly announcedKey: PublicKeyHex | null;
}

export interface Guide {
  /** Throws `port_in_use` or `invalid_config` when it cannot look. */
  start(): Promise<void>;
  stop(): void;
  /** Where to dial now; null while it is not known. */
  readonly place: Place | null;
  /** Waits until `place` is known or `signal` aborts. */
  found(signal: AbortSignal): Promise<void>;
  /** Waits that many milliseconds, or less when there is another place to try at once: then it is true. */
  rest(ms: number, signal: AbortSignal): Promise<boolean>;
  /** Says whether there is a connection; as long as there is, no other place is looked for. */
  connected(is: boolean): void;
  /** Another key answers at the place. False when there is no other place to look for. */
  forsake(): boolean;
}

/** The place that somebody typed. */
export class FixedGuide implements Guide {
  readonly place: Place;

  constructor(target: Target) {
    this.place = { target, announcedKey: null };
  }

  async start(): Promise<void> {}

  stop(): void {}

  async found(): Promise<void> {}

  async rest(ms: number, signal: AbortSignal): Promise<boolean> {
    await sleep(ms, undefined, { signal }).catch(() => undefined);
    return false;
  }

  connected(): void {}

  forsake(): boolean {
    return false;
  }
}
