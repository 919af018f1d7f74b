/** Tells the audit log of sockets that were turned away, but not as often as somebody without a ticket can try. */
import type { Clock } from '../../src/kernel/clock.js';
import { messageOf } from '../../src/kernel/fault.js';
import type { NodeId } from '../../src/kernel/ids.js';
import type { Logger } from '../../src/kernel/logger.js';
import { SYSTEM } from '../core/domain-event.js';
import { operatorParty, type SessionBook } from './session-book.js';
import type { Grant } from './tickets.js';

export interface RefusalsOptions {
  readonly book: SessionBook;
  readonly clock: Pick<Clock, 'monotonic'>;
  readonly logger: Logger;
}

export interface RefusedSocket {
  readonly reason: string;
  readonly address: string | null;
  /** Where it wanted to; null when that is nothing we know. */
  readonly sessionId: string | null;
  /** Whose ticket it was; null when nobody's. */
  readonly grant: Grant | null;
  /** The agent whose key was proved; null for an operator's socket. */
  readonly nodeId: NodeId | null;
}

/** Between two events of one address that nobody stands behind, in milliseconds, and how many addresses are remembered. */
const EVERY = 60_000;
const MOST = 1_000;

export class Refusals {
  private readonly options: RefusalsOptions;
  private readonly told = new Map<string, number>();

  constructor(options: RefusalsOptions) {
    this.options = options;
  }

  tell({ reason, address, sessionId, grant, nodeId }: RefusedSocket): void {
    const { book, logger } = this.options;
    logger.warn('a socket of a terminal was refused', { session_id: sessionId, address, reason });
    if (!this.passes(`${grant?.sessionId ?? ''} ${address}`)) return;
    const about = nodeId ?? grant?.nodeId ?? null;
    const by =
      nodeId !== null
        ? ({ id: nodeId, name: nodeId, type: 'agent' } as const)
        : grant?.for === 'client'
          ? operatorParty(grant.operator)
          : SYSTEM;
    const facts = { id: grant?.sessionId ?? null, nodeId: (about ?? 'unknown') as NodeId, nodeName: null };
    book.refused(facts, { reason, by, address }).catch((error: unknown) => {
      logger.error('a refusal was not recorded', { reason: messageOf(error) });
    });
  }

  private passes(key: string): boolean {
    const now = this.options.clock.monotonic();
    const last = this.told.get(key);
    if (last !== undefined && now - last < EVERY) return false;
    this.told.delete(key);
    this.told.set(key, now);
    for (const oldest of this.told.keys()) {
      if (this.told.size <= MOST) break;
      this.told.delete(oldest);
    }
    return true;
  }
}
