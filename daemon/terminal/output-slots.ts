/**
 * Output on its way to another thread, in memory that both see: it is copied once, and nothing is left to collect. Serves the
 * benchmark row "echo beside idle and flooding sessions".
 */

interface Slot {
  readonly number: number;
  readonly bytes: Buffer;
}

/** Where output is: at the beginning of a slot, or in the message when there was none left. */
export type OutputPlace =
  | { readonly slot: number; readonly length: number }
  | { readonly slot: null; readonly bytes: Uint8Array };

/** Bytes of a slot: output that goes in one message. */
export const SLOT = 64 * 1024;
/** Output beyond that, waiting for the thread, takes memory of its own. */
const MOST = 64;

/** The slots of one thread. */
export class SharedSlots {
  private readonly onNew: (slot: number, memory: SharedArrayBuffer) => void;
  private readonly all: Slot[] = [];
  private readonly free: Slot[] = [];

  /** @param onNew called with a new slot, before the slot is used: the thread must receive it first */
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

/** Output of one session that waits for more of it, so that single bytes share a message. */
export class OutputBatch {
  private readonly slots: SharedSlots;
  private readonly post: (place: OutputPlace, transfer: readonly ArrayBuffer[]) => void;
  private slot: Slot | null = null;
  private filled = 0;

  constructor(slots: SharedSlots, post: (place: OutputPlace, transfer: readonly ArrayBuffer[]) => void) {
    this.slots = slots;
    this.post = post;
  }

  /** Bytes that were not posted yet. */
  get waiting(): number {
    return this.filled;
  }

  /** Copies the bytes; posts as much of them as fills a slot. */
  add(bytes: Buffer): void {
    for (let rest = bytes; rest.length > 0; ) {
      this.slot ??= this.slots.take();
      if (this.slot === null) {
        const copy = Uint8Array.from(rest);
        this.post({ slot: null, bytes: copy }, [copy.buffer]);
        return;
      }
      const count = rest.copy(this.slot.bytes, this.filled);
      this.filled += count;
      if (this.filled === SLOT) this.flush();
      rest = rest.subarray(count);
    }
  }

  /** Posts what waits. */
  flush(): void {
    const { slot, filled: length } = this;
    if (slot === null) return;
    this.slot = null;
    this.filled = 0;
    this.post({ slot: slot.number, length }, []);
  }

  /** Forgets what waits. */
  drop(): void {
    if (this.slot !== null) this.slots.release(this.slot.number);
    this.slot = null;
    this.filled = 0;
  }
}

/** The other thread's end: the slots that it has received. */
export class ReceivedSlots {
  private readonly slots: Buffer[] = [];

  add(slot: number, memory: SharedArrayBuffer): void {
    this.slots[slot] = Buffer.from(memory);
  }

  /** The output. Bytes in a slot are valid until the slot is reported free. */
  read(place: OutputPlace): Buffer {
    if (place.slot !== null) return this.slots[place.slot]?.subarray(0, place.length) ?? Buffer.alloc(0);
    const { buffer, byteOffset, byteLength } = place.bytes;
    return Buffer.from(buffer, byteOffset, byteLength);
  }
}
