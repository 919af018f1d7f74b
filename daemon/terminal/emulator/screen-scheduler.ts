/** Gives the screens of the emulator thread turns, so that a flooded screen does not delay the others. */
import { messageOf } from '../../../src/kernel/fault.js';
import { TERMINAL_LIMITS } from '../../../src/terminal/limits.js';
import { type OutputPlace, ReceivedSlots } from '../output-slots.js';
import type { ScreenMaker, VirtualScreen } from './virtual-screen.js';

/** Bytes and milliseconds after which a turn ends. */
const TURN_BYTES = 64 * 1024;
const TURN_TIME = 8;
/** Bytes parsed at once between two checks of the time. */
const PIECE = 4096;
/** Maximum bytes of a picture: half of a socket's send limit. */
const LONGEST_PICTURE = TERMINAL_LIMITS.unsent / 2;
/** Maximum turns between two progress messages. */
const TURNS_UNTOLD = 8;

/** Output to be parsed, and its slot. */
interface Output {
  readonly do: 'write';
  readonly bytes: Buffer;
  readonly slot: number | null;
}

type Todo = Output | Exclude<ToEmulator, { readonly do: 'write' }>;

interface Entry {
  readonly id: number;
  readonly screen: VirtualScreen;
  offset: number;
  cols: number;
  rows: number;
  /** Pending work in order. */
  todo: Todo[];
  isWaiting: boolean;
}

interface ScreenSchedulerOptions {
  readonly maker: Pick<ScreenMaker, 'make'>;
  readonly post: (message: FromEmulator, transfer?: readonly ArrayBuffer[]) => void;
  /** Returns milliseconds of a monotonic clock. */
  readonly monotonic: () => number;
}

export class ScreenScheduler {
  private readonly options: ScreenSchedulerOptions;
  private readonly entries = new Map<number, Entry>();
  private readonly waiting: Entry[] = [];
  private readonly unreported = new Set<Entry>();
  private readonly slots = new ReceivedSlots();
  private free: number[] = [];
  private unreportedTurns = 0;
  private isScheduled = false;

  constructor(options: ScreenSchedulerOptions) {
    this.options = options;
  }

  take(message: ToEmulator): void {
    if (message.do === 'open') {
      this.open(message);
      return;
    }
    if (message.do === 'slot') {
      this.slots.add(message.slot, message.memory);
      return;
    }
    const entry = this.entries.get(message.id);
    const todo: Todo =
      message.do === 'write' ? { do: 'write', bytes: this.slots.read(message), slot: message.slot } : message;
    if (entry === undefined) {
      this.release([todo]);
      return;
    }
    if (message.do === 'close') {
      this.drop(entry);
      return;
    }
    entry.todo.push(todo);
    if (!entry.isWaiting) {
      entry.isWaiting = true;
      this.waiting.push(entry);
    }
    this.schedule();
  }

  private open({ id, cols, rows, offset }: Extract<ToEmulator, { do: 'open' }>): void {
    const screen = this.options.maker.make({ cols, rows });
    this.entries.set(id, { id, screen, offset, cols, rows, todo: [], isWaiting: false });
  }

  private drop(entry: Entry): void {
    this.release(entry.todo);
    entry.todo = [];
    this.entries.delete(entry.id);
    this.unreported.delete(entry);
    entry.screen.dispose();
  }

  private schedule(): void {
    if (this.isScheduled) return;
    this.isScheduled = true;
    setImmediate(() => {
      this.isScheduled = false;
      this.turn();
      if (this.waiting.length > 0) this.schedule();
    });
  }

  private turn(): void {
    const entry = this.waiting.shift();
    if (entry === undefined) return;
    entry.isWaiting = false;
    try {
      this.work(entry);
    } catch (error) {
      this.drop(entry);
      this.options.post({ is: 'failed', id: entry.id, reason: messageOf(error) });
    }
    if (entry.todo.length > 0) {
      entry.isWaiting = true;
      this.waiting.push(entry);
    }
    this.unreportedTurns += 1;
    if (this.waiting.length === 0 || this.unreportedTurns >= TURNS_UNTOLD) this.report();
  }

  private work(entry: Entry): void {
    const { monotonic } = this.options;
    const start = monotonic();
    let left = TURN_BYTES;
    for (let message = entry.todo[0]; message !== undefined && left > 0; message = entry.todo[0]) {
      if (message.do !== 'write') {
        entry.todo.shift();
        this.handle(entry, message);
        continue;
      }
      const passed = entry.screen.skim(message.bytes);
      const piece = message.bytes.subarray(passed, passed + PIECE);
      entry.screen.write(piece);
      entry.offset += passed + piece.length;
      left -= passed + piece.length;
      this.unreported.add(entry);
      const rest = message.bytes.subarray(passed + piece.length);
      if (rest.length === 0) {
        entry.todo.shift();
        if (message.slot !== null) this.free.push(message.slot);
      } else entry.todo[0] = { ...message, bytes: rest };
      if (monotonic() - start >= TURN_TIME) return;
    }
  }

  private handle(entry: Entry, message: Exclude<Todo, Output>): void {
    if (message.do === 'resize') {
      entry.cols = message.cols;
      entry.rows = message.rows;
      entry.screen.resize(message.cols, message.rows);
    } else if (message.do === 'picture') {
      const { id, cols, rows } = entry;
      const offset = entry.offset - entry.screen.pending;
      const bytes = Uint8Array.from(entry.screen.picture(LONGEST_PICTURE));
      this.report();
      this.options.post({ is: 'picture', id, cols, rows, offset, bytes }, [bytes.buffer]);
    }
  }

  /** Frees the slots of work that is dropped. */
  private release(todo: readonly Todo[]): void {
    for (const each of todo) if (each.do === 'write' && each.slot !== null) this.free.push(each.slot);
    this.reportFreeSlots();
  }

  private reportFreeSlots(): void {
    if (this.free.length > 0) this.options.post({ is: 'free', slots: this.free });
    this.free = [];
  }

  private report(): void {
    this.unreportedTurns = 0;
    this.reportFreeSlots();
    if (this.unreported.size === 0) return;
    this.options.post({ is: 'parsed', offsets: [...this.unreported].map(({ id, offset }) => [id, offset] as const) });
    this.unreported.clear();
  }
}

/** Messages from the relay's thread to the emulator thread. */
export type ToEmulator =
  | { readonly do: 'open'; readonly id: number; readonly cols: number; readonly rows: number; readonly offset: number }
  | ({ readonly do: 'write'; readonly id: number } & OutputPlace)
  /** Shared memory for the output of any screen. */
  | { readonly do: 'slot'; readonly slot: number; readonly memory: SharedArrayBuffer }
  | { readonly do: 'resize'; readonly id: number; readonly cols: number; readonly rows: number }
  | { readonly do: 'picture'; readonly id: number }
  | { readonly do: 'close'; readonly id: number };

export type FromEmulator =
  /** Progress of screens as pairs of ID and parsed offset. */
  | { readonly is: 'parsed'; readonly offsets: readonly (readonly [id: number, offset: number])[] }
  /** Slots that the thread no longer needs. */
  | { readonly is: 'free'; readonly slots: readonly number[] }
  /** Pictures of a screen arrive in the order of the requests. */
  | {
      readonly is: 'picture';
      readonly id: number;
      readonly cols: number;
      readonly rows: number;
      readonly offset: number;
      readonly bytes: Uint8Array;
    }
  /** The screen failed and sends no more messages. */
  | { readonly is: 'failed'; readonly id: number; readonly reason: string };
