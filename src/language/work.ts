/** Bounds the work of expressions, so that no module or value keeps the orchestrator from other things. */

/** Thrown where an expression has no value although its types fit; the message names the mistake. */
export class EvaluationError extends Error {}

/** Characters that a filter or a comparison looks at in the time of a step of a template. */
const STEP = 40;
/** Characters that a filter looks at in the time of a comparison of short values. */
const COMPARISON = 40;
/** Characters of two equal texts that are compared in the time in which a filter looks at one. */
const COMPARED = 32;
/** Maximum work of one resource, in characters: 2 to 8 ms. */
const MAX_OF_RESOURCE = 25_000 * STEP;
/** Work between two pauses of a template, in characters: at most half a millisecond. */
const BETWEEN_PAUSES = 60_000;
/** Maximum work of all resources of one agent. */
const MAX_OF_AGENT = 2_500_000 * STEP;

/** Work that the expressions of one resource may still do. */
export class Work {
  left = 0;
  /** The next pause is due when no more than this is left. */
  private pauseAt = 0;

  /** @param left in characters */
  constructor(left = MAX_OF_RESOURCE) {
    this.restart(left);
  }

  /** Begins anew. @param left in characters */
  restart(left: number): void {
    this.left = left;
    this.pauseAt = left - BETWEEN_PAUSES;
  }

  /** True when enough was done since the last pause, or the beginning, that other work may run. */
  get isPauseNear(): boolean {
    return this.left <= this.pauseAt;
  }

  /** Returns the same, and counts on as from a pause. */
  isPauseDue(): boolean {
    if (!this.isPauseNear) return false;
    this.pauseAt = this.left - BETWEEN_PAUSES;
    return true;
  }

  /** Brings the next pause nearer by the characters of work that is bounded in another way. */
  hasten(characters: number): void {
    this.pauseAt += characters;
  }

  /** Counts steps of a template. Throws `EvaluationError` when the work is used up. */
  step(count: number): void {
    this.read(count * STEP);
  }

  /** Counts a comparison of a condition. Throws `EvaluationError` when the work is used up. */
  compare(left: unknown, right: unknown): void {
    const isLong = typeof left === 'string' && typeof right === 'string' && left.length === right.length;
    this.read(COMPARISON + (isLong ? left.length / COMPARED : 0));
  }

  /** Counts characters that a filter or a comparison looks at. Throws `EvaluationError` when the work is used up. */
  read(characters: number): void {
    this.left -= characters;
    if (this.left >= 0) return;
    throw new EvaluationError('the loops and filters in it do too much work; make the texts and lists in them shorter');
  }
}

/** Work that all resources of one agent may still do, one after the other. */
export class AgentWork {
  private left = MAX_OF_AGENT;
  private given = 0;
  private readonly work = new Work(0);

  /** Returns the work of the next resource, in the same object: the one before does no more. */
  next(): Work {
    this.left -= this.given - this.work.left;
    this.given = Math.max(0, Math.min(MAX_OF_RESOURCE, this.left));
    this.work.restart(this.given);
    return this.work;
  }
}
