import type { Transaction } from 'kysely';
import type { Emit, UnitOfWork } from '../../../daemon/core/unit-of-work.js';
import type { Database } from '../../../daemon/database/schema.js';

/** The real writer, whose callers learn of a commit, or get their turn, as late as a test wants. */
export class SteeredWriter implements UnitOfWork {
  private readonly inner: UnitOfWork;
  private readonly before: Promise<void>[] = [];
  private readonly after: Promise<void>[] = [];
  /** How many units have been committed. */
  commits = 0;

  constructor(inner: UnitOfWork) {
    this.inner = inner;
  }

  /** The next unit waits before it begins; returns what lets it go on. */
  holdNext(): () => void {
    return gate(this.before);
  }

  /** The caller of the next unit is kept waiting although it has committed; returns what lets it go on. */
  delayNext(): () => void {
    return gate(this.after);
  }

  async write<T>(work: (tx: Transaction<Database>, emit: Emit) => Promise<T>): Promise<T> {
    const [before, after] = [this.before.shift(), this.after.shift()];
    await before;
    const result = await this.inner.write(work);
    this.commits += 1;
    await after;
    return result;
  }
}

function gate(gates: Promise<void>[]): () => void {
  let open: () => void = () => undefined;
  gates.push(
    new Promise((resolve) => {
      open = resolve;
    }),
  );
  return () => open();
}
