/** Memory that the relay and the thread that records both see, so that output is copied once and nothing is left to collect. */

export interface Slot {
  readonly number: number;
  readonly bytes: Buffer;
}

/** Bytes of a slot: output that is recorded as one event. */
export const SLOT = 64 * 1024;
/** What waits for the thread beyond that takes memory of its own. */
const MOST = 32;

export class RecordingSlots {
  private readonly onNew: (slot: number, memory: SharedArrayBuffer) => void;
  private readonly all: Slot[] = [];
  private readonly free: Slot[] = [];

  /** @param onNew the thread has to be told of a new one before it is given it */
  constructor(onNew: (slot: number, memory: SharedArrayBuffer) => void) {
    this.onNew = onNew;
  }

  /** Null when all are in use. */
  take(): Slot | null {
    return this.free.pop() ?? (this.all.length < MOST ? this.make() : null);
  }

  /** The thread has taken what was in it, or was never given it. */
  release(number: number): void {
    const slot = this.all[number];
    if (slot !== undefined) this.free.push(slot);
  }

  private make(): Slot {
    const memory = new SharedArrayBuffer(SLOT);
    const slot = { number: this.all.length, bytes: Buffer.from(memory) };
    this.all.push(slot);
    this.onNew(slot.number, memory);
    return slot;
  }
}
