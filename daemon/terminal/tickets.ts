/** Tickets that open a socket: random, valid once and briefly, kept only as hashes in memory. */

import { createHash } from 'node:crypto';
import type { Clock } from '../../src/kernel/clock.js';
import type { NodeId } from '../../src/kernel/ids.js';
import { TERMINAL_LIMITS } from '../../src/terminal/limits.js';
import type { TerminalMode } from '../../src/terminal/notes.js';
import type { Core } from '../core/core.js';

/** The operator who attaches. */
export interface Attacher {
  readonly operator_id: string;
  readonly username: string;
}

export interface ClientGrant {
  readonly for: 'client';
  readonly sessionId: string;
  readonly nodeId: NodeId;
  readonly operator: Attacher;
  readonly mode: TerminalMode;
  /** True if the client may take the pen from another writer. */
  readonly take: boolean;
  /** Resume secret of the opener, whose hash is already stored. Null for all other clients. */
  readonly firstSecret: string | null;
}

export interface AgentGrant {
  readonly for: 'agent';
  readonly sessionId: string;
  readonly nodeId: NodeId;
}

export type Grant = ClientGrant | AgentGrant;

/** The members of a grant that tickets need. */
interface AnyGrant {
  readonly for: 'client' | 'agent';
  readonly sessionId: string;
}

/** Result of redeeming a ticket. `grant` is set for a known ticket that is used or expired. */
type Redeemed<G> =
  | { readonly ok: true; readonly grant: G }
  | { readonly ok: false; readonly why: 'unknown' | 'used' | 'expired'; readonly grant: G | null };

interface TicketsOptions extends Pick<Core, 'randomBytes'> {
  readonly clock: Pick<Clock, 'monotonic'>;
}

interface Issued<G> {
  readonly grant: G;
  readonly until: number;
  used: boolean;
}

/** Maximum valid tickets of an agent for a session; a new one invalidates the oldest. */
const PER_SESSION = 8;
/** Ticket lifetimes for which a used ticket is remembered, so that a second use is recognised. */
const REMEMBERED = 10;

/** @typeParam G what a ticket permits */
export class Tickets<G extends AnyGrant = Grant> {
  private readonly options: TicketsOptions;
  private readonly issued = new Map<string, Issued<G>>();
  /** Hashes of agents' tickets by session. */
  private readonly ofAgents = new Map<string, string[]>();

  constructor(options: TicketsOptions) {
    this.options = options;
  }

  issue(grant: G): string {
    const ticket = this.options.randomBytes(32).toString('base64url');
    const hash = hashOf(ticket);
    this.issued.set(hash, { grant, until: this.now() + TERMINAL_LIMITS.ticketLife, used: false });
    if (grant.for === 'agent') this.bound(grant.sessionId, hash);
    return ticket;
  }

  /** Redeems a ticket, which only the first call can. */
  redeem(ticket: string): Redeemed<G> {
    const issued = this.issued.get(hashOf(ticket));
    if (issued === undefined) return { ok: false, why: 'unknown', grant: null };
    const { grant, until, used } = issued;
    if (used) return { ok: false, why: 'used', grant };
    if (this.now() >= until) return { ok: false, why: 'expired', grant };
    issued.used = true;
    return { ok: true, grant };
  }

  /** Invalidates the tickets that the predicate selects. */
  revoke(isRevoked: (grant: G) => boolean): void {
    for (const [hash, { grant }] of this.issued) if (isRevoked(grant)) this.issued.delete(hash);
  }

  /** Forgets old tickets; call it periodically. */
  prune(): void {
    const now = this.now();
    for (const [hash, { until }] of this.issued) {
      if (now >= until + TERMINAL_LIMITS.ticketLife * REMEMBERED) this.issued.delete(hash);
    }
    for (const [sessionId, hashes] of this.ofAgents) {
      if (!hashes.some((hash) => this.issued.has(hash))) this.ofAgents.delete(sessionId);
    }
  }

  private bound(sessionId: string, hash: string): void {
    const hashes = [...(this.ofAgents.get(sessionId) ?? []), hash];
    if (hashes.length > PER_SESSION) this.issued.delete(hashes.shift() ?? '');
    this.ofAgents.set(sessionId, hashes);
  }

  private now(): number {
    return this.options.clock.monotonic();
  }
}

const DOMAIN = 'orch-terminal-ticket-v1';
/** Hashes a ticket, so that the lookup time reveals nothing about it. */
const hashOf = (ticket: string): string => createHash('sha256').update(DOMAIN).update(ticket).digest('hex');
