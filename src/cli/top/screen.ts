/** The screen of `orch top`: the alternate screen of a terminal, its keys, and drawing of what has changed. */
import { StringDecoder } from 'node:string_decoder';
import { setTimeout as pause } from 'node:timers/promises';
import type { Streams } from '../context.js';
import { widthOf } from '../render/terminal-text.js';
import { finishKeys, readKeys } from './keys.js';

/** Alternate screen without cursor and wrapping, so that the terminal cuts lines that it finds longer than expected. */
const ENTER = '\u001b[?1049h\u001b[?25l\u001b[?7l\u001b[2J';
const LEAVE = '\u001b[?7h\u001b[?25h\u001b[0m\u001b[?1049l';
const ERASE_LINE = '\u001b[K';
/** Milliseconds after which a lone Escape is the Escape key. */
const ESCAPE_MS = 50;

export interface Size {
  readonly columns: number;
  readonly rows: number;
}

/** A line that is drawn: its text with colours, and the same text without. */
export interface DrawnLine {
  readonly painted: string;
  readonly plain: string;
}

export interface ScreenEvents {
  onKey(key: string): void;
  /** Called after a resize, and when the process continues after a stop. */
  onResize(): void;
  /** Called when the terminal is lost. */
  onClosed(): void;
}

export class LiveScreen {
  private readonly streams: Streams;
  private readonly events: ScreenEvents;
  private decoder = new StringDecoder('utf8');
  private isOpen = false;
  /** Lines on the screen; empty if unknown. */
  private drawn: readonly string[] = [];
  private drawnSize: Size = { columns: 0, rows: 0 };
  private rest = '';
  private escapeTimer: NodeJS.Timeout | undefined;

  constructor(streams: Streams, events: ScreenEvents) {
    this.streams = streams;
    this.events = events;
  }

  get size(): Size {
    const { columns = 80, rows = 24 } = this.streams.stdout;
    return { columns: Math.max(1, columns), rows: Math.max(1, rows) };
  }

  /** Takes the terminal over. */
  open(): void {
    if (this.isOpen) return;
    const { stdin, stdout } = this.streams;
    this.isOpen = true;
    this.drawn = [];
    // These cover ends of the process that skip `finally`, and print an uncaught error on the ordinary screen.
    process.once('exit', this.close);
    process.once('uncaughtExceptionMonitor', this.close);
    process.on('SIGCONT', this.continued);
    stdin.setRawMode?.(true);
    stdin.on('data', this.typed);
    stdin.on('end', this.events.onClosed);
    stdout.on('resize', this.resized);
    // These stay after the close, because writes may still fail then.
    for (const stream of [stdin, stdout]) stream.off('error', this.events.onClosed).on('error', this.events.onClosed);
    stdin.resume();
    stdout.write(ENTER);
    if (stdin.readableEnded) this.events.onClosed();
  }

  /** Gives the terminal back as it was. Does nothing when it is closed. */
  readonly close = (): void => {
    if (!this.isOpen) return;
    const { stdin, stdout } = this.streams;
    this.isOpen = false;
    clearTimeout(this.escapeTimer);
    this.rest = '';
    this.decoder = new StringDecoder('utf8');
    process.off('exit', this.close);
    process.off('uncaughtExceptionMonitor', this.close);
    process.off('SIGCONT', this.continued);
    stdin.off('data', this.typed);
    stdin.off('end', this.events.onClosed);
    stdout.off('resize', this.resized);
    stdin.setRawMode?.(false);
    stdin.pause();
    stdout.write(LEAVE);
  };

  /** Draws lines that fit the size of the screen. Writes only those that differ from what the screen shows. */
  draw(lines: readonly DrawnLine[]): void {
    if (!this.isOpen) return;
    const { columns, rows } = this.size;
    const isNew = this.drawn.length === 0 || columns !== this.drawnSize.columns || rows !== this.drawnSize.rows;
    const wanted = Array.from({ length: rows }, (_, row) => {
      const line = lines[row];
      if (line === undefined) return ERASE_LINE;
      return widthOf(line.plain) < columns ? `${line.painted}${ERASE_LINE}` : line.painted;
    });
    const changed = wanted.flatMap((text, row) =>
      isNew || text !== this.drawn[row] ? [`\u001b[${row + 1};1H${text}`] : [],
    );
    this.drawn = wanted;
    this.drawnSize = { columns, rows };
    if (changed.length > 0) this.streams.stdout.write(changed.join(''));
  }

  /** Draws every line anew next time. */
  forget(): void {
    this.drawn = [];
  }

  /** Stops the process group like Ctrl-Z, and takes the terminal over again when it continues. */
  async suspend(): Promise<void> {
    this.close();
    await pause(0);
    process.kill(0, 'SIGTSTP');
    await pause(0);
    this.open();
    this.events.onResize();
  }

  private readonly resized = (): void => this.events.onResize();

  /** The shell has changed the mode of the terminal while the process was stopped. */
  private readonly continued = (): void => {
    this.close();
    this.open();
    this.events.onResize();
  };

  private readonly typed = (chunk: Buffer | string): void => {
    clearTimeout(this.escapeTimer);
    const text = this.rest + (typeof chunk === 'string' ? chunk : this.decoder.write(chunk));
    const { keys, rest } = readKeys(text);
    this.rest = rest;
    for (const key of keys) this.press(key);
    if (rest !== '') this.escapeTimer = setTimeout(() => this.endSequence(), ESCAPE_MS);
  };

  private endSequence(): void {
    const { rest } = this;
    this.rest = '';
    for (const key of finishKeys(rest)) this.press(key);
  }

  /** Drops keys that were read together with one that has closed the screen. */
  private press(key: string): void {
    if (this.isOpen) this.events.onKey(key);
  }
}
