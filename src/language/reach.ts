/** Which agents the parts of a module can meet: the logic behind ties, gaps and doubled resources. */
import { compatible, impliedClause, implies } from './clause.js';
import { type AttributeClause, PLATFORMS } from './schema.js';

/** Bounds the comparisons of one module, which grow with the square of what looks alike. */
export class Budget {
  #left: number;

  constructor(comparisons: number) {
    this.#left = comparisons;
  }

  spend(count: number): void {
    this.#left -= count;
  }

  get exhausted(): boolean {
    return this.#left <= 0;
  }
}

/** The comparisons that one module may cost; a tenth of a second's worth. */
export const COMPARISONS = 1_000_000;

export interface Reach {
  /** The clauses of `supports`, with what they imply; one that matches everything when there is none. */
  readonly supports: readonly AttributeClause[];
  readonly budget: Budget;
}

export const reachOf = (supports: readonly AttributeClause[], budget: Budget): Reach => ({
  supports: supports.length === 0 ? [{}] : supports.map(impliedClause),
  budget,
});

/** A choice within a resource: what it wants, and the choices that win over it where they match too. */
export interface Choice {
  readonly when: AttributeClause;
  readonly rivals: readonly AttributeClause[];
}

/** The choices of one list of variants; clauses with more keys win. */
export function choicesAmong(clauses: readonly AttributeClause[]): readonly Choice[] {
  const rivals = new Map<number, readonly AttributeClause[]>();
  return clauses.map((when) => {
    const size = sizeOf(when);
    const stronger = rivals.get(size) ?? clauses.filter((other) => sizeOf(other) > size);
    rivals.set(size, stronger);
    return { when: impliedClause(when), rivals: stronger };
  });
}

const sizeOf = (clause: AttributeClause): number => Object.keys(clause).length;

/** True when some supported agent can get both choices. Everything is compared in pairs, so pairs decide. */
export function canMeet(a: Choice, b: Choice, { supports, budget }: Reach): boolean {
  budget.spend(1);
  if (!compatible(a.when, b.when)) return false;
  return supports.some((clause) => {
    if (budget.exhausted) return false;
    budget.spend(1 + a.rivals.length + b.rivals.length);
    if (!compatible(a.when, clause) || !compatible(b.when, clause)) return false;
    const agents = { ...clause, ...a.when, ...b.when };
    return ![...a.rivals, ...b.rivals].some((rival) => implies(agents, rival));
  });
}

/** The first supports clause of which some agents match no variant; -1 when there is none. */
export function findGap(clauses: readonly AttributeClause[], { supports, budget }: Reach): number {
  return supports.findIndex((clause) => {
    if (budget.exhausted) return false;
    const platforms = clause.platform === undefined ? PLATFORMS : [clause.platform];
    return platforms.some((platform) => {
      budget.spend(clauses.length);
      const agents = { ...clause, platform };
      return !clauses.some((when) => implies(agents, when));
    });
  });
}
