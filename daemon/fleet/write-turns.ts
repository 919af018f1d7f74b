/**
 * Shares the time of the event loop among the connections that write large messages: each writes a piece in turn, and all together
 * take a few milliseconds of one turn of the event loop. So the API answers beside the largest contents.
 */

/** Maximum milliseconds of all pieces in one turn of the event loop, if no single piece takes longer. */
const SLICE_MS = 2;

/** Writes a piece. Returns whether it has another one to write now. */
type Writer = () => boolean;

export class WriteTurns {
  /** In the order of their turns. */
  private readonly writers = new Set<Writer>();
  private isDue = false;

  /** Calls the writer in the next turn of the event loop, and again until it returns false. Does nothing for one that waits. */
  add(writer: Writer): void {
    this.writers.add(writer);
    if (this.isDue) return;
    this.isDue = true;
    setImmediate(() => this.run());
  }

  private run(): void {
    this.isDue = false;
    const end = performance.now() + SLICE_MS;
    do {
      const [first] = this.writers;
      if (first === undefined) return;
      this.writers.delete(first);
      if (first()) this.add(first);
    } while (performance.now() < end);
    const [waiting] = this.writers;
    if (waiting !== undefined) this.add(waiting);
  }
}
