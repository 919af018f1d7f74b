/** Notices of orch to the operator, kept apart from the program's output. */

import type { LinkState } from '../../client/terminal/terminal-session.js';
import { wrapAtWords } from '../render/fit-lines.js';
import { plainText } from '../render/paint.js';
import { sanitizeLine } from '../render/terminal-text.js';
import type { TerminalOutput } from './terminal-output.js';

interface NoticesOptions {
  readonly output: TerminalOutput;
  /** True if standard error is the program's terminal; else notices are plain lines. */
  readonly shared: boolean;
  /** True if the terminal knows no control sequences. */
  readonly isDumb: boolean;
  /** Redraws the screen after an overlay. */
  redraw(): void;
  size(): { readonly cols: number; readonly rows: number };
}

/** Milliseconds that a notice covers a full-screen program. */
const SHOWN_FOR = 5_000;

export class Notices {
  private readonly options: NoticesOptions;
  private overlay: NodeJS.Timeout | null = null;

  constructor(options: NoticesOptions) {
    this.options = options;
  }

  /**
   * Shows notices, one line each: above the line being typed, or for a while at the top of a full-screen
   * program.
   */
  show(...texts: readonly string[]): void {
    this.showAfterOutput(() => texts);
  }

  /** Shows the notices that `texts` returns once all earlier output is written. */
  showAfterOutput(texts: () => readonly string[]): void {
    this.options.output.showNotice(() => {
      const said = texts().map((text) => `orch: ${sanitizeLine(text)}`);
      return said.length === 0 ? '' : this.placed(said);
    });
  }

  /** Renders notices for the current screen. Call it once all earlier output is written. */
  private placed(said: readonly string[]): string {
    const { output, shared, isDumb, size } = this.options;
    if (!shared) return said.map((line) => `${line}\n`).join('');
    const { cols, rows } = size();
    const columns = Math.max(20, cols - 1);
    const lines = said.flatMap((text) => wrapAtWords(text, columns, 2).map(plainText));
    if (isDumb) return below(lines);
    const isFullScreen = output.modes.isFullScreen;
    if (isFullScreen || lines.length < rows) output.modes.loseSavedCursor();
    if (isFullScreen) return this.showOverlay(lines);
    return lines.length < rows ? aboveCursor(lines) : below(lines);
  }

  /** Removes the overlay. */
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

  private showOverlay(lines: readonly string[]): string {
    if (this.overlay !== null) clearTimeout(this.overlay);
    this.overlay = setTimeout(() => this.clear(), SHOWN_FOR);
    return overScreen(lines);
  }
}

/** Notices about a lost connection: shown after a delay, and again on its return. */
interface LinkNoticesOptions {
  readonly notices: Notices;
  /** Keys that detach, such as `~.`; null without escapes. */
  readonly leave: string | null;
  /** True if input is queued without a time limit. */
  readonly queueInput: boolean;
  /** Age in milliseconds of the oldest unsent input. */
  readonly inputAge: () => number;
}

/** Milliseconds before a loss is shown, and age of unsent input at which it is shown at once. */
const QUIET_MS = 3_000;
const INPUT_QUIET_MS = 1_500;

export class LinkNotices {
  private readonly options: LinkNoticesOptions;
  private timer: NodeJS.Timeout | null = null;
  private isShown = false;

  constructor(options: LinkNoticesOptions) {
    this.options = options;
  }

  /** Handles a state of the connection to the orchestrator. */
  state(state: LinkState): void {
    if (state.kind === 'connected') this.back('connected to the orchestrator again');
    else if (state.kind === 'silent') this.show('the orchestrator does not answer');
    else this.showSoon(`${state.cause.message}; trying again`);
  }

  /** Handles a state of the orchestrator's connection to the agent. */
  agentLink(connected: boolean): void {
    if (connected) this.back('the agent is connected again');
    else this.showSoon('the orchestrator has lost its connection to the agent, and waits for it');
  }

  stop(): void {
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = null;
  }

  private showSoon(text: string): void {
    this.stop();
    if (this.options.inputAge() > INPUT_QUIET_MS) this.show(text);
    else this.timer = setTimeout(() => this.show(text), QUIET_MS);
  }

  private show(text: string): void {
    this.stop();
    if (this.isShown) return;
    this.isShown = true;
    const { notices, leave, queueInput } = this.options;
    const keys = queueInput
      ? 'what you type is sent when it is back'
      : 'what you type is dropped unless it is back within 10 s';
    notices.show(text, leave === null ? keys : `${keys}; ${leave} leaves`);
  }

  private back(text: string): void {
    this.stop();
    if (!this.isShown) return;
    this.isShown = false;
    const { notices } = this.options;
    notices.show(text);
  }
}

/**
 * Inserts lines above the cursor's line, which moves down, so that a prompt stays intact. The screen must
 * have more rows than there are lines. Overwrites the saved cursor.
 */
function aboveCursor(lines: readonly string[]): string {
  const { length } = lines;
  // Index and reverse index: at the bottom edge this scrolls, which frees lines below the cursor.
  const room = '\x1bD'.repeat(length) + '\x1bM'.repeat(length);
  return `${room}\x1b7\x1b[0m\r\x1b[${length}L${lines.join('\r\n')}\x1b8\x1b[${length}B`;
}

/** Writes lines below the cursor's line. */
const below = (lines: readonly string[]): string => `\r\n${lines.map((line) => `${line}\r\n`).join('')}`;

/** Draws lines over the top of the screen and returns the cursor. Overwrites the saved cursor. */
function overScreen(lines: readonly string[]): string {
  const drawn = lines.map((line, index) => `\x1b[${index + 1};1H\x1b[0;7m${line}\x1b[K`).join('');
  return `\x1b7${drawn}\x1b[0m\x1b8`;
}
