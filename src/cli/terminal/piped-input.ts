/** Input for a terminal that comes from a pipe or a file: all of it, then Ctrl-D, as somebody at the keys would end it. */
import type { TerminalSession } from '../../client/terminal/terminal-session.js';
import type { InputStream } from '../render/printer.js';

const CTRL_D = Buffer.of(0x04);
/** How long the program has to get to its input, in milliseconds. */
const FIRST_PAUSE = 300;
const PAUSE = 1_000;

export class PipedInput {
  private readonly stdin: InputStream;
  private readonly session: TerminalSession;
  private timer: NodeJS.Timeout | null = null;

  constructor(stdin: InputStream, session: TerminalSession) {
    this.stdin = stdin;
    this.session = session;
  }

  begin(): void {
    this.stdin.on('data', this.take);
    this.stdin.once('end', this.end);
  }

  stop(): void {
    this.stdin.off('data', this.take);
    this.stdin.off('end', this.end);
    if (this.timer !== null) clearTimeout(this.timer);
  }

  /** There is room again. */
  drain(): void {
    this.stdin.resume();
  }

  private readonly take = (bytes: Buffer): void => {
    if (!this.session.sendInput(bytes)) this.stdin.pause();
  };

  /**
   * Again and again: a shell that is only starting loses the first one, the first one in the middle of a line only hands in what
   * is there, and of shells within shells each takes one.
   */
  private readonly end = (): void => {
    const press = () => {
      this.session.sendInput(CTRL_D);
      this.timer = setTimeout(press, PAUSE);
    };
    this.timer = setTimeout(press, FIRST_PAUSE);
  };
}
