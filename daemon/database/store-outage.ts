/** A store on a server that is away or refuses for a while. Unlike a file on a full disk, it comes back without a restart of anything here. */
import { Fault, type FaultOptions } from '../../src/kernel/fault.js';

/** Seconds after which another attempt makes sense: a standby takes over, or a connection is made, in about this time. */
const RETRY_SECS = 2;

export class StoreOutage extends Fault {
  /** @param options `data` replaces the time after which to try again, where waiting does not help */
  constructor(message: string, options: FaultOptions) {
    super('store_unavailable', message, { data: { retry_after: RETRY_SECS }, ...options });
  }
}
