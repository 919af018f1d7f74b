/** What we have to say to the person at the terminal, kept apart from what the program shows. */
import { sanitizeLine } from '../render/sanitize.js';
import { aboveCursor, overScreen, wrapLines } from './notice-lines.js';
import type { TerminalOutput } from './terminal-output.js';

export interface NoticesOptions {
  readonly output: TerminalOutput;
  /** Standard error is the terminal that the program is shown on; else plain lines go to it. */
  readonly shared: boolean;
  /** Draws the screen anew after something was laid over it. */
  redraw(): void;
  size(): { readonly cols: number; readonly rows: number };
}

/** How long words stay over a full-screen program, in milliseconds. */
const SHOWN_FOR = 5_000;

export class Notices {
  private readonly options: NoticesOptions;
  private overlay: NodeJS.Timeout | null = null;

  constructor(options: NoticesOptions) {
    this.options = options;
  }

  /**
   * One line each. They stand above the line that is being typed; over a full-screen program at the top, and go away by
   * themselves.
   */
  say(...texts: readonly string[]): void {
    this.sayLater(() => texts);
  }

  /** Says what is returned once everything before it is written; nothing for no texts. */
  sayLater(texts: () => readonly string[]): void {
    this.options.output.say(() => {
      const said = texts().map((text) => `orch: ${sanitizeLine(text)}`);
      return said.length === 0 ? '' : this.placed(said);
    });
  }

  /** Only once everything before it is written is it known which program has the screen. */
  private placed(said: readonly string[]): string {
    const { output, shared, size } = this.options;
    if (!shared) return said.map((line) => `${line}\n`).join('');
    const { cols, rows } = size();
    const lines = wrapLines(said, Math.max(20, cols - 1));
    const isFullScreen = output.modes.isFullScreen;
    if (isFullScreen || lines.length < rows) output.modes.loseSavedCursor();
    if (isFullScreen) return this.layOver(lines);
    return lines.length < rows ? aboveCursor(lines) : `\r\n${lines.map((line) => `${line}\r\n`).join('')}`;
  }

  /** The words over the screen may go now. */
  clear(): void {
    if (this.overlay === null) return;
    clearTimeout(this.overlay);
    this.overlay = null;
    this.options.redraw();
  }

  stop(): void {
    if (this.overlay !== null) clearTimeout(this.overlay);
    this.overlay = null;
  }

  private layOver(lines: readonly string[]): string {
    if (this.overlay !== null) clearTimeout(this.overlay);
    this.overlay = setTimeout(() => this.clear(), SHOWN_FOR);
    return overScreen(lines);
  }
}
