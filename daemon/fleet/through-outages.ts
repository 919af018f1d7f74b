/** Work of an agent's connection that outlasts an outage of the store, so that the connection need not end. */
import { setTimeout as sleep } from 'node:timers/promises';
import { StoreOutage } from '../database/store-outage.js';

const RETRY_MS = 300;

/**
 * Runs `work` again while the store is unavailable, and returns its result. Throws the last error once `isOver` returns true, and any
 * other error at once. `work` must leave nothing behind when it fails.
 */
export async function throughOutages<T>(work: () => Promise<T>, isOver: () => boolean): Promise<T> {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof StoreOutage) || isOver()) throw error;
    }
    await sleep(RETRY_MS, undefined, { ref: false });
  }
}
