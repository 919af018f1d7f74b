/** Tickets that open a socket: random, good once and for a short time, kept as hashes in memory alone. */
import { createHash } from 'node:crypto';
import type { Clock } from '../../src/kernel/clock.js';
import type { NodeId } from '../../src/kernel/ids.js';
import { TERMINAL_LIMITS } from '../../src/terminal/limits.js';
import type { TerminalMode } from '../../src/terminal/notes.js';

/** Who attaches. */
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
  /** It may take the pen from whoever holds it. */
  readonly take: boolean;
  /** With which the one who has opened the session comes back: it is in the store already. Null for everybody else. */
  readonly firstSecret: string | null;
}

export interface AgentGrant {
  readonly for: 'agent';
  readonly sessionId: string;
  readonly nodeId: NodeId;
}

export type Grant = ClientGrant | AgentGrant;

/** What a ticket is worth; `grant` tells whose it was when it is known but not good any more. */
export type Redeemed =
  | { readonly ok: true; readonly grant: Grant }
  | { readonly ok: false; readonly why: 'unknown' | 'used' | 'expired'; readonly grant: Grant | null };

export interface TicketsOptions {
  readonly clock: Pick<Clock, 'monotonic'>;
  readonly randomBytes: (count: number) => Buffer;
}

interface Issued {
  readonly grant: Grant;
  readonly until: number;
  used: boolean;
}

/** An agent that asks for one after the other gets no more than so many for a session; the oldest is good no more then. */
const PER_SESSION = 8;
/** Used ones are remembered for so many lives, so that a second use is known for what it is. */
const REMEMBERED = 10;

export class Tickets {
  private readonly options: TicketsOptions;
  private readonly issued = new Map<string, Issued>();
  /** Those of agents, as hashes, by session. */
  private readonly ofAgents = new Map<string, string[]>();

  constructor(options: TicketsOptions) {
    this.options = options;
  }

  issue(grant: Grant): string {
    const ticket = this.options.randomBytes(32).toString('base64url');
    const hash = hashOf(ticket);
    this.issued.set(hash, { grant, until: this.now() + TERMINAL_LIMITS.ticketLife, used: false });
    if (grant.for === 'agent') this.bound(grant.sessionId, hash);
    return ticket;
  }

  /** The first call with a ticket uses it up. */
  redeem(ticket: string): Redeemed {
    const issued = this.issued.get(hashOf(ticket));
    if (issued === undefined) return { ok: false, why: 'unknown', grant: null };
    const { grant, until, used } = issued;
    if (used) return { ok: false, why: 'used', grant };
    if (this.now() >= until) return { ok: false, why: 'expired', grant };
    issued.used = true;
    return { ok: true, grant };
  }

  /** Those that the predicate names are good no more. */
  revoke(isRevoked: (grant: Grant) => boolean): void {
    for (const [hash, { grant }] of this.issued) if (isRevoked(grant)) this.issued.delete(hash);
  }

  /** Forgets what is long over; to be called now and then. */
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
/** Looking up the hash takes no time that tells of the ticket. */
const hashOf = (ticket: string): string => createHash('sha256').update(DOMAIN).update(ticket).digest('hex');
