/** Requests to an orchestrator that may be away. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Answer } from '../api/api-request.js';
import type { Call } from '../api/world.js';
import type { Fleet } from './fleet.js';
import type { Fate, Ledger } from './ledger.js';

export type Ask = (id: string, call: Call) => Promise<{ readonly fate: Fate; readonly answer: Answer | null }>;

/** Returns a function that sends a request; an answer that breaks the API's own document is a violation. */
export function askOf(fleet: Fleet, ledger: Ledger): Ask {
  return async (id, call) => {
    const { era } = ledger;
    try {
      const answer = await fleet.world.call(id, call);
      if (era !== ledger.era) return { fate: 'unknown', answer };
      return { fate: answer.status < 300 ? 'acknowledged' : 'refused', answer };
    } catch (error) {
      if (String(error).includes('broke the document')) ledger.violations.push(String(error));
      // The programs that are killed are away for a moment.
      await sleep(100);
      return { fate: 'unknown', answer: null };
    }
  };
}
