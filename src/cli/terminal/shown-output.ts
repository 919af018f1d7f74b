/** The part of a session's output that reaches the operator's terminal, and a count of the part that was skipped. */
import { StringDecoder } from 'node:string_decoder';
import type { TerminalMode } from '../../terminal/notes.js';
import { Neutralizer } from '../../terminal/recording/neutralizer.js';
import { formatBytes } from '../format.js';
import { ClipboardFilter } from './clipboard-filter.js';
import type { ClipboardChoice } from './session-options.js';

interface ShownOutputOptions {
  /** False for a pipe or file, which gets all bytes. */
  readonly isTerminal: boolean;
  readonly clipboard: ClipboardChoice;
  /** Called for each blocked use of the clipboard. */
  onClipboardBlocked(): void;
}

/**
 * A writer's terminal is the program's terminal and gets everything except clipboard access. A viewer's terminal
 * only gets what draws: it answers no query, and no title, clipboard, keyboard or mouse mode of the
 * host reaches it.
 */
export class ShownOutput {
  private readonly options: ShownOutputOptions;
  private readonly clipboard: ClipboardFilter;
  private current: TerminalMode = 'write';
  private decoder = new StringDecoder('utf8');
  private neutralizer = new Neutralizer();

  constructor(options: ShownOutputOptions) {
    this.options = options;
    this.clipboard = new ClipboardFilter({
      clipboard: options.clipboard,
      onBlocked: () => options.onClipboardBlocked(),
    });
  }

  set mode(mode: TerminalMode) {
    this.current = mode;
    this.restart();
  }

  /** Returns the allowed part of the output. */
  take(bytes: Buffer): Buffer {
    if (!this.options.isTerminal) return bytes;
    if (this.current === 'write') return this.clipboard.write(bytes);
    return Buffer.from(this.neutralizer.write(this.decoder.write(bytes)));
  }

  /** Returns the allowed part of a screen picture, which aborts any sequence before it. */
  takePicture(bytes: Buffer): Buffer {
    this.restart();
    return this.take(bytes);
  }

  private restart(): void {
    this.decoder = new StringDecoder('utf8');
    this.neutralizer = new Neutralizer();
  }
}

/** Counts the output that screen pictures replaced, and says where it can be read. */
export class SkippedOutput {
  private readonly sessionId: string;
  /** Skipped bytes since the last notice. */
  private fresh = 0;
  /** True if the alternate screen was shown before the first of them. */
  private wasAlternate = false;
  /** Skipped bytes in all notices. */
  private total = 0;
  private recording: 'off' | 'on' | 'stopped' = 'off';

  constructor(sessionId: string) {
    this.sessionId = sessionId;
  }

  set isRecorded(isRecorded: boolean) {
    if (isRecorded) this.recording = 'on';
    else if (this.recording === 'on') this.recording = 'stopped';
  }

  /** Adds skipped bytes. `isAlternate` tells whether the alternate screen was shown before them. */
  add(bytes: number, isAlternate: boolean): void {
    if (this.fresh === 0) this.wasAlternate = isAlternate;
    this.fresh += bytes;
  }

  /**
   * Returns the notice about bytes skipped since the last call.
   * A program on the alternate screen before and after redraws it, so that no notice is needed.
   */
  words(isAlternate: boolean): readonly string[] {
    const { fresh, wasAlternate, total } = this;
    this.fresh = 0;
    if (fresh === 0 || (wasAlternate && isAlternate)) return [];
    this.total += fresh;
    const all = total === 0 ? '' : ` (${formatBytes(this.total)} so far)`;
    return [`${formatBytes(fresh)} of output was not shown here${all}, only the screen behind it`, this.place()];
  }

  private place(): string {
    const read = `orch term transcript ${this.sessionId}`;
    if (this.recording === 'on') return `to read it: ${read}`;
    if (this.recording === 'stopped') return `the recording has stopped, so it may lack some of it: ${read}`;
    return 'this session is not recorded, so it cannot be read later';
  }
}
