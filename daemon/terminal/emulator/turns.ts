/** Gives the screens their turns, so that none that is flooded keeps the others waiting. */
import { messageOf } from '../../../src/kernel/fault.js';
import { TERMINAL_LIMITS } from '../../../src/terminal/limits.js';
import { ReceivedSlots } from '../output-slots.js';
import type { FromEmulator, ToEmulator } from './emulator-messages.js';
import type { ScreenMaker, VirtualScreen } from './virtual-screen.js';

/** A turn ends after that much output, or after that many milliseconds. */
const TURN_BYTES = 64 * 1024;
const TURN_TIME = 8;
/** Output that is parsed in one go, in between which the time is looked at. */
const PIECE = 4096;
/** Half of what a socket may have unsent. */
const LONGEST_PICTURE = TERMINAL_LIMITS.unsent / 2;
/** Turns after which progress is told, when there is always more to do. */
const TURNS_UNTOLD = 8;

/** Output that is still to be parsed, and the slot that it is in. */
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
  /** What is still to be done, in order. */
  todo: Todo[];
  isWaiting: boolean;
}

export interface TurnsOptions {
  readonly maker: Pick<ScreenMaker, 'make'>;
  readonly say: (message: FromEmulator, transfer?: readonly ArrayBuffer[]) => void;
  /** Milliseconds of a clock that never goes back. */
  readonly monotonic: () => number;
}

export class Turns {
  private readonly options: TurnsOptions;
  private readonly entries = new Map<number, Entry>();
  private readonly waiting: Entry[] = [];
  private readonly untold = new Set<Entry>();
  private readonly slots = new ReceivedSlots();
  private free: number[] = [];
  private turnsUntold = 0;
  private isScheduled = false;

  constructor(options: TurnsOptions) {
    this.options = options;
  }

  take(message: ToEmulator): void {
    if (message.do === 'open') {
      this.open(message);
      return;
    }
    if (message.do === 'slot') {
      this.slots.learn(message.slot, message.memory);
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
    this.untold.delete(entry);
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
      this.options.say({ is: 'failed', id: entry.id, reason: messageOf(error) });
    }
    if (entry.todo.length > 0) {
      entry.isWaiting = true;
      this.waiting.push(entry);
    }
    this.turnsUntold += 1;
    if (this.waiting.length === 0 || this.turnsUntold >= TURNS_UNTOLD) this.tell();
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
      this.untold.add(entry);
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
      this.tell();
      this.options.say({ is: 'picture', id, cols, rows, offset, bytes }, [bytes.buffer]);
    }
  }

  /** Nobody parses that any more. */
  private release(todo: readonly Todo[]): void {
    for (const each of todo) if (each.do === 'write' && each.slot !== null) this.free.push(each.slot);
    this.tellFree();
  }

  private tellFree(): void {
    if (this.free.length > 0) this.options.say({ is: 'free', slots: this.free });
    this.free = [];
  }

  private tell(): void {
    this.turnsUntold = 0;
    this.tellFree();
    if (this.untold.size === 0) return;
    this.options.say({ is: 'parsed', offsets: [...this.untold].map(({ id, offset }) => [id, offset] as const) });
    this.untold.clear();
  }
}
