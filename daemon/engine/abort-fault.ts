/** Why a run ends early that somebody waits for. */
import { Fault } from '../../src/kernel/fault.js';

/** The Fault that the signal was aborted with; `cancelled` when it is none. */
export function abortFault({ reason }: AbortSignal): Fault {
  if (reason instanceof Fault) return reason;
  return new Fault('cancelled', 'the caller went away', { cause: reason });
}
