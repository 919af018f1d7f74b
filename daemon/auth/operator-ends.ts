/** Tells of the end of an operator: a week before it comes, and when it has come. */
import { toTimestamp } from '../../src/kernel/clock.js';
import type { Core } from '../core/core.js';
import { type DomainEvent, SYSTEM } from '../core/domain-event.js';
import type { Queryable } from '../database/schema.js';
import {
  isExpired,
  markEndTold,
  type OperatorRow,
  operatorsEnding,
  operatorsToldTooEarly,
  partyOfOperator,
  revokeUnusedTokens,
} from './operator-store.js';

/** Milliseconds before the end of an operator at which an event tells of it. */
const WARNED_MS = 7 * 86_400_000;
/** Values of `expiry_told`. */
const TOLD = { nothing: 0, soon: 1, over: 2 } as const;

/** Returns `expiry_told` of a new end, both times in Unix milliseconds: whoever gives an end that comes soon knows it. */
export const toldAtFirst = (expiresAt: number | null, now: number): number =>
  expiresAt !== null && expiresAt <= now + WARNED_MS ? TOLD.soon : TOLD.nothing;

/**
 * Emits `operator.expiring` and `operator.expired` for the operators for whom it was not done, and revokes the unused enrolment
 * tokens of the expired ones. Call it each minute: requests are refused from the end on, and the event ends what else is open. An
 * end that a wrong clock had taken for over is told again when it comes.
 */
export async function tellEnds({ db, uow, clock }: Pick<Core, 'clock' | 'db' | 'uow'>): Promise<void> {
  const now = clock.now();
  const early = (on: Queryable) => operatorsToldTooEarly(on, now, TOLD.over);
  const due = async (on: Queryable) => {
    const over = await operatorsEnding(on, now, TOLD.over);
    const soon = await operatorsEnding(on, now + WARNED_MS, TOLD.soon);
    return [...over, ...soon.filter((row) => !isExpired(row, now))];
  };
  if ((await due(db)).length === 0 && (await early(db)).length === 0) return;
  await uow.write(async (tx, emit) => {
    for (const { operator_id } of await early(tx)) await markEndTold(tx, operator_id, TOLD.soon);
    for (const row of await due(tx)) {
      const isOver = isExpired(row, now);
      await markEndTold(tx, row.operator_id, isOver ? TOLD.over : TOLD.soon);
      if (isOver) await revokeUnusedTokens(tx, now, row.operator_id);
      emit(endEvent(row, isOver));
    }
  });
}

function endEvent(row: OperatorRow, isOver: boolean): DomainEvent {
  const end = toTimestamp(row.expires_at ?? 0);
  return {
    type: isOver ? 'operator.expired' : 'operator.expiring',
    actor: SYSTEM,
    target: partyOfOperator(row),
    summary: isOver ? `the time of ${row.username} is over` : `the time of ${row.username} ends at ${end}`,
    metadata: { expires_at: end },
  };
}
