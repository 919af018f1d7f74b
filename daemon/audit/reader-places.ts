/** Places of readers that follow the audit log: a cap of each operator and network, and room that is kept for admins. */
import { Fault } from '../../src/kernel/fault.js';
import { hostNetworkOf } from '../../src/kernel/ip-network.js';

/** Maximum readers at the same time. */
export const READER_LIMITS = {
  all: 256,
  /** Those of one operator. */
  operator: 32,
  /** Those of one network that are no admins; an IPv6 address counts as its /64. */
  network: 128,
  /** Places that only admins take. */
  admins: 32,
} as const;

export interface Reader {
  readonly operatorId: string;
  readonly isAdmin: boolean;
  /** IP address; null when it is unknown. */
  readonly address: string | null;
}

export class ReaderPlaces {
  private readonly readers = new Set<Partial<Reader>>();

  /**
   * Takes a place, and returns a function that gives it back. Throws `rate_limited` when none is free for the reader.
   * @param reader without an operator it counts only among all
   */
  take(reader: Partial<Reader>): () => void {
    const full = this.fullFor(reader);
    if (full !== null) throw tooMany(full);
    const taken = { ...reader };
    this.readers.add(taken);
    return () => {
      this.readers.delete(taken);
    };
  }

  /** Returns which readers have taken all places that the reader may have; null when one is free. */
  private fullFor({ operatorId, isAdmin, address }: Partial<Reader>): string | null {
    const { all, operator, network, admins } = READER_LIMITS;
    const taken = [...this.readers];
    const own = taken.filter((one) => one.operatorId === operatorId).length;
    if (operatorId !== undefined && own >= operator) return `${operator} readers of your operator`;
    if (taken.length >= all) return `${all} readers`;
    if (operatorId === undefined || isAdmin) return null;
    const others = taken.filter((one) => !one.isAdmin);
    if (others.length >= all - admins) return `${all - admins} readers that are no admins`;
    const place = networkOf(address);
    const ofNetwork = others.filter((one) => networkOf(one.address) === place).length;
    return ofNetwork >= network ? `${network} readers of your network` : null;
  }
}

const networkOf = (address: string | null | undefined): string =>
  address == null ? 'unknown' : hostNetworkOf(address);

const tooMany = (readers: string): Fault =>
  new Fault('rate_limited', `${readers} follow the audit log already`, {
    hint: 'end one of them, or ask for pages with GET /audit',
    data: { retry_after: 10 },
  });
