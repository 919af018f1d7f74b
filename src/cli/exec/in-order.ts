/** Calls back in the order in which work was taken on, in whatever order it is finished. */
export class InOrder {
  private readonly waiting: { finished: boolean; readonly done: () => void }[] = [];

  /** @returns to be called when this piece of work is finished */
  next(done: () => void): () => void {
    const piece = { finished: false, done };
    this.waiting.push(piece);
    return () => {
      piece.finished = true;
      while (this.waiting[0]?.finished) this.waiting.shift()?.done();
    };
  }
}
