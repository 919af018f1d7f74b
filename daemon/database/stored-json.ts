/** JSON texts that the store holds. */
import { Fault } from '../../src/kernel/fault.js';

/**
 * Parses a text of the store. Throws `store_unavailable` for one that is not JSON: the program writes no such text, so the
 * record is damaged. The database's own check does not see a lost page of a long text.
 */
export function storedJson<T>(text: string): T {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw damagedRecord(cause);
  }
}

/** Returns the fault of a record that is not JSON. Its message does not quote the record, which may be private. */
export const damagedRecord = (cause: unknown): Fault =>
  new Fault('store_unavailable', 'a record in the store is damaged', {
    hint: 'put a backup in its place: orch serve restore FILE',
    cause,
  });
