/** What of a session's output reaches the operator's terminal. */
import { StringDecoder } from 'node:string_decoder';
import type { TerminalMode } from '../../terminal/notes.js';
import { Neutralizer } from '../../terminal/recording/neutralizer.js';
import { formatBytes } from '../format.js';
import { ClipboardFilter } from './clipboard-filter.js';
import type { ClipboardChoice } from './session-options.js';

export interface ShownOutputOptions {
  /** False for a pipe or a file, which get every byte. */
  readonly isTerminal: boolean;
  readonly clipboard: ClipboardChoice;
  /** Called for each attempt of a program to use the clipboard that is refused to it. */
  onClipboardBlocked(): void;
}

/**
 * A writer's terminal is the terminal of the program and gets everything but what touches the clipboard. A viewer's terminal
 * only shows: it gets what draws, so that it answers no query as input and no title, clipboard, keyboard or mouse mode of the
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

  /** Returns what of the output may be shown now. */
  take(bytes: Buffer): Buffer {
    if (!this.options.isTerminal) return bytes;
    if (this.current === 'write') return this.clipboard.write(bytes);
    return Buffer.from(this.neutralizer.write(this.decoder.write(bytes)));
  }

  /** The same for a picture of the whole screen, which ends whatever the output before it has begun. */
  takePicture(bytes: Buffer): Buffer {
    this.restart();
    return this.take(bytes);
  }

  private restart(): void {
    this.decoder = new StringDecoder('utf8');
    this.neutralizer = new Neutralizer();
  }
}

/** Counts the output that a picture of the screen stood in for, and says how much that was and where it can be read. */
export class SkippedOutput {
  private readonly sessionId: string;
  /** Bytes that were skipped since the last words about them. */
  private fresh = 0;
  /** The screen before the first of them was the alternate one. */
  private wasAlternate = false;
  /** Bytes so far. */
  private total = 0;
  private recording: 'off' | 'on' | 'stopped' = 'off';

  constructor(sessionId: string) {
    this.sessionId = sessionId;
  }

  set isRecorded(isRecorded: boolean) {
    if (isRecorded) this.recording = 'on';
    else if (this.recording === 'on') this.recording = 'stopped';
  }

  /** @param isAlternate whether the terminal showed the alternate screen before the bytes that are skipped */
  add(bytes: number, isAlternate: boolean): void {
    if (this.fresh === 0) this.wasAlternate = isAlternate;
    this.fresh += bytes;
  }

  /**
   * Returns what to say about the bytes that were added since the last call.
   * A program that has the alternate screen before and after them draws over what it showed, so that nothing is missed.
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
