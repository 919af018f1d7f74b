/** Standard input shared by commands: each one receives all of it, whenever it starts. */
import type { TerminalSession } from '../../client/terminal/terminal-session.js';
import type { InputStream } from '../render/streams.js';

type Session = Pick<TerminalSession, 'sendInput' | 'sendEof'>;

/** Position of one command in the input. */
export interface InputReader {
  /** Starts to send input to the session. */
  begin(session: Session): void;
  /** Called when the session accepts input again. */
  drain(): void;
  /** Ends the reading of this command. */
  stop(): void;
}

export interface ExecInput {
  /** Returns the reader of the next command. Call it once per command. */
  reader(): InputReader;
}

interface ExecInputOptions {
  readonly stdin: InputStream;
  /** Number of commands, including those that start later. */
  readonly readers: number;
  /** Called when the buffer for commands that have not started exceeds its limit. */
  readonly onOverflow: () => void;
}

/** Bytes read ahead of the slowest running command; and bytes buffered for commands that have not started. */
const AHEAD = 1024 * 1024;
export const MOST_KEPT = 64 * 1024 * 1024;

export const execInput = (options: ExecInputOptions): ExecInput => new SharedInput(options);

class SharedInput implements ExecInput {
  private readonly options: ExecInputOptions;
  private readonly readers = new Set<Reader>();
  private chunks: Buffer[] = [];
  /** Number of dropped chunks before `chunks`. */
  private forgotten = 0;
  private kept = 0;
  private unbegun: number;
  private isReading = false;
  private hasEnded = false;

  constructor(options: ExecInputOptions) {
    this.options = options;
    this.unbegun = options.readers;
  }

  reader(): InputReader {
    this.unbegun -= 1;
    const reader = new Reader(this);
    this.readers.add(reader);
    return reader;
  }

  get isEnded(): boolean {
    return this.hasEnded;
  }

  chunk(index: number): Buffer | undefined {
    return this.chunks[index - this.forgotten];
  }

  read(): void {
    if (this.isReading) return;
    this.isReading = true;
    const { stdin } = this.options;
    stdin.on('data', this.onData);
    stdin.once('end', this.onEnd);
    // A lost terminal, or a directory as input, counts as end of input.
    stdin.once('error', this.onEnd);
  }

  left(reader: Reader): void {
    this.readers.delete(reader);
    this.moved();
    if (this.readers.size > 0 || this.unbegun > 0) return;
    const { stdin } = this.options;
    stdin.off('data', this.onData);
    stdin.off('end', this.onEnd);
    // An open pipe would keep the process alive.
    stdin.destroy();
  }

  /** Drops chunks that all readers have sent, and pauses or resumes the input. */
  moved(): void {
    if (this.unbegun === 0) this.forget(Math.min(...[...this.readers].map(({ next }) => next)));
    if (!this.isReading || this.hasEnded) return;
    if (this.isAhead()) this.options.stdin.pause();
    else this.options.stdin.resume();
  }

  private readonly onData = (chunk: Buffer | string): void => {
    const bytes = Buffer.from(chunk);
    this.chunks.push(bytes);
    this.kept += bytes.length;
    for (const reader of [...this.readers]) reader.pump();
    this.moved();
    if (this.unbegun > 0 && this.kept > MOST_KEPT) this.options.onOverflow();
  };

  private readonly onEnd = (): void => {
    this.hasEnded = true;
    for (const reader of [...this.readers]) reader.pump();
  };

  private isAhead(): boolean {
    for (const { next } of this.readers) {
      let behind = 0;
      for (let index = next; behind < AHEAD; index += 1) {
        const bytes = this.chunk(index);
        if (bytes === undefined) break;
        behind += bytes.length;
      }
      if (behind >= AHEAD) return true;
    }
    return false;
  }

  private forget(upTo: number): void {
    const count = Math.min(Math.max(0, upTo - this.forgotten), this.chunks.length);
    for (const bytes of this.chunks.splice(0, count)) this.kept -= bytes.length;
    this.forgotten += count;
  }
}

class Reader implements InputReader {
  /** Index of the next chunk to send. */
  next = 0;
  private readonly input: SharedInput;
  private session: Session | null = null;
  private isFull = false;
  private hasEnded = false;

  constructor(input: SharedInput) {
    this.input = input;
  }

  begin(session: Session): void {
    this.session = session;
    this.input.read();
    this.pump();
    this.input.moved();
  }

  drain(): void {
    this.isFull = false;
    this.pump();
    this.input.moved();
  }

  stop(): void {
    this.session = null;
    this.input.left(this);
  }

  pump(): void {
    while (this.session !== null && !this.isFull) {
      const bytes = this.input.chunk(this.next);
      if (bytes === undefined) break;
      this.next += 1;
      this.isFull = !this.session.sendInput(bytes);
    }
    if (this.session === null || this.isFull || this.hasEnded || !this.input.isEnded) return;
    if (this.input.chunk(this.next) !== undefined) return;
    this.hasEnded = true;
    this.session.sendEof();
  }
}
