/** What of a session's output reaches the operator's terminal. */
import { StringDecoder } from 'node:string_decoder';
import type { TerminalMode } from '../../terminal/notes.js';
import { Neutralizer } from '../../terminal/recording/neutralizer.js';
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
