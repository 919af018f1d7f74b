/** Bounds the work of expressions, so that no module or value keeps the orchestrator from other things. */

/** Thrown where an expression has no value although its types fit; the message names the mistake. */
export class EvaluationError extends Error {}

/** Maximum work of one resource, counted in characters that filters and comparisons look at. */
const MAX_WORK = 1_000_000;

/** Work that the expressions of one resource may still do. */
export class Work {
  private left = MAX_WORK;

  /** Throws `EvaluationError` when the work is used up. */
  spend(amount: number): void {
    this.left -= amount;
    if (this.left >= 0) return;
    throw new EvaluationError('the loops and filters in it do too much work; make the texts and lists in them shorter');
  }
}
