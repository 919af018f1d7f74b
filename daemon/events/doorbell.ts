/** Wakes one loop that waits: what rings while nobody waits is heard at the next wait. */
export class Doorbell {
  private rung = false;
  private answer: (() => void) | null = null;

  ring(): void {
    this.rung = true;
    this.answer?.();
  }

  /** Resolves when it rings or has rung since the last wait, or after that many milliseconds. */
  async wait(ms: number): Promise<void> {
    if (!this.rung) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, ms);
        this.answer = () => {
          clearTimeout(timer);
          resolve();
        };
      });
      this.answer = null;
    }
    this.rung = false;
  }
}
