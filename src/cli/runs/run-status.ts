/** The statuses of a run as words for options, held equal to the contract by the compiler. */
import type { Operation } from '../../contract/operations.js';

const statuses = {
  queued: true,
  running: true,
  succeeded: true,
  failed: true,
  interrupted: true,
  cancelled: true,
} satisfies Readonly<Record<Operation['status'], true>>;

const isStatus = (word: string): word is Operation['status'] => Object.hasOwn(statuses, word);

export const RUN_STATUSES: readonly Operation['status'][] = Object.keys(statuses).filter(isStatus);
