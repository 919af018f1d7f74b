/** What we have to say to the person at the terminal, kept apart from what the program shows. */

import type { LinkState } from '../../client/terminal/terminal-events.js';
import { sanitizeLine, widthOf } from '../render/terminal-text.js';
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

/** Tells of a connection that is lost, once it has been for a while, and of its return. */
export interface LinkNoticesOptions {
  readonly notices: Notices;
  /** How one leaves, such as `~.`; null when nothing does. */
  readonly leave: string | null;
  /** Input waits for as long as it takes. */
  readonly queueInput: boolean;
  /** Milliseconds that something typed has waited for the agent. */
  readonly inputAge: () => number;
}

/** A shorter loss is not worth a word, and neither is one of which what is typed shows nothing. */
const QUIET_MS = 3_000;
const INPUT_QUIET_MS = 1_500;

export class LinkNotices {
  private readonly options: LinkNoticesOptions;
  private timer: NodeJS.Timeout | null = null;
  private told = false;

  constructor(options: LinkNoticesOptions) {
    this.options = options;
  }

  /** The connection to the orchestrator. */
  state(state: LinkState): void {
    if (state.kind === 'connected') this.back('connected to the orchestrator again');
    else if (state.kind === 'silent') this.tell('the orchestrator does not answer');
    else this.soon(`${state.cause.message}; trying again`);
  }

  /** The orchestrator's connection to the agent. */
  agentLink(connected: boolean): void {
    if (connected) this.back('the agent is connected again');
    else this.soon('the orchestrator has lost its connection to the agent, and waits for it');
  }

  stop(): void {
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = null;
  }

  private soon(text: string): void {
    this.stop();
    if (this.options.inputAge() > INPUT_QUIET_MS) this.tell(text);
    else this.timer = setTimeout(() => this.tell(text), QUIET_MS);
  }

  private tell(text: string): void {
    this.stop();
    if (this.told) return;
    this.told = true;
    const { notices, leave, queueInput } = this.options;
    const keys = queueInput
      ? 'what you type is sent when it is back'
      : 'what you type is dropped unless it is back within 10 s';
    notices.say(text, leave === null ? keys : `${keys}; ${leave} leaves`);
  }

  private back(text: string): void {
    this.stop();
    if (!this.told) return;
    this.told = false;
    const { notices } = this.options;
    notices.say(text);
  }
}

/** The texts in lines of at most that many columns, broken between words where there are some. */
export function wrapLines(texts: readonly string[], columns: number): readonly string[] {
  return texts.flatMap((text) => wrapLine(text, columns));
}

function wrapLine(text: string, columns: number): readonly string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(/(?<= )/u)) {
    if (line !== '' && widthOf((line + word).trimEnd()) > columns) {
      lines.push(line.trimEnd());
      line = '  ';
    }
    line += word;
  }
  return [...lines, line];
}

/**
 * Inserts lines above the one that the cursor is in, which moves down with all that is in it: a prompt stays whole. The cursor
 * has to have room for so many lines on the screen. Overwrites the saved cursor.
 */
export function aboveCursor(lines: readonly string[]): string {
  const { length } = lines;
  // Down and up again: at the lower edge that scrolls, so that there are free lines below in any case.
  const room = '\x1bD'.repeat(length) + '\x1bM'.repeat(length);
  return `${room}\x1b7\x1b[0m\r\x1b[${length}L${lines.join('\r\n')}\x1b8\x1b[${length}B`;
}

/** Lays lines over the top of the screen, with the cursor where it was. Overwrites the saved cursor. */
export function overScreen(lines: readonly string[]): string {
  const drawn = lines.map((line, index) => `\x1b[${index + 1};1H\x1b[0;7m${line}\x1b[K`).join('');
  return `\x1b7${drawn}\x1b[0m\x1b8`;
}
