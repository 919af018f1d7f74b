/** A store on a server that is away or refuses for a while. Unlike a file on a full disk, it comes back without a restart of anything here. */
import { Fault, type FaultOptions } from '../../src/kernel/fault.js';

export class StoreOutage extends Fault {
  constructor(message: string, options: FaultOptions) {
    super('store_unavailable', message, options);
  }
}
