/** The raw mode of the terminal that one types at: every key goes through, and nothing is done to what is shown. */
import { spawn } from 'node:child_process';
import type { InputStream } from '../render/printer.js';

export class RawMode {
  private readonly stdin: InputStream;
  private raw = false;

  /** @param stdin a terminal */
  constructor(stdin: InputStream) {
    this.stdin = stdin;
  }

  /** Resolves when the terminal does nothing to the output any more. */
  async enter(): Promise<void> {
    this.stdin.setRawMode?.(true);
    this.raw = true;
    await this.leaveOutputAlone();
  }

  leave(): void {
    if (!this.raw) return;
    this.raw = false;
    this.stdin.setRawMode?.(false);
  }

  /**
   * Node's raw mode still puts a carriage return before each line feed, which full-screen programs do not expect. A system
   * without `stty` has to live with it.
   */
  private async leaveOutputAlone(): Promise<void> {
    const { fd } = this.stdin;
    if (fd === undefined) return;
    const stty = spawn('stty', ['-opost'], { stdio: [fd, 'ignore', 'ignore'] });
    await new Promise<void>((resolve) => {
      stty.once('error', () => resolve());
      stty.once('close', () => resolve());
    });
    // It may have been left while that ran.
    if (!this.raw) this.stdin.setRawMode?.(false);
  }
}
