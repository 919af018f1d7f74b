/**
 * Decides which discovery packets the agent follows. A packet only says where to dial: the handshake there has to prove the
 * same key. So the times in packets are not held against the clock of this machine, which may be wrong on a new one; they
 * only have to grow, so that an old packet does not lead back to where the orchestrator was.
 */
import { verifySignature } from '../../identity/signature.js';
import type { Clock } from '../../kernel/clock.js';
import type { PublicKeyHex } from '../../kernel/ids.js';
import { type Announcement, type PacketDecoder, packetDecoder, signedBytes } from '../../wire/discovery-packet.js';

export interface PacketJudgeOptions {
  readonly clock: Clock;
  /** The only key that is followed, as of now; null while none is pinned and none was given. */
  readonly pinned: () => PublicKeyHex | null;
  /** Follow whatever key comes first. */
  readonly trustOnFirstUse: boolean;
}

/** `key` is the one that the packet names, proved or not. */
export interface Refusal {
  readonly refused: string;
  readonly key: PublicKeyHex | null;
}

export type Verdict = { readonly follow: Announcement } | Refusal;

/** Milliseconds between two packets that are followed. */
const PAUSE = 10_000;
/** So long an earlier packet's time counts, in milliseconds: a clock that was set back must not silence an orchestrator. */
const MEMORY = 600_000;

interface Followed {
  readonly key: PublicKeyHex;
  readonly timestamp: number;
  /** By the monotonic clock. */
  readonly at: number;
}

export class PacketJudge {
  private readonly options: PacketJudgeOptions;
  private readonly decode: PacketDecoder = packetDecoder();
  private last: Followed | null = null;

  constructor(options: PacketJudgeOptions) {
    this.options = options;
  }

  /** Why a packet is not followed, whatever its signature; null when that decides. Costs next to nothing. */
  screen(bytes: Uint8Array): Refusal | null {
    const packet = this.decode(bytes);
    if (packet === null) return { refused: 'it is no discovery packet', key: null };
    const { publicKey: key, timestamp } = packet;
    const refused = this.refusalOf(key) ?? this.untimely(key, timestamp, this.options.clock.monotonic());
    return refused === null ? null : { refused, key };
  }

  judge(bytes: Uint8Array): Verdict {
    const refusal = this.screen(bytes);
    const packet = this.decode(bytes);
    if (refusal !== null) return refusal;
    if (packet === null) return { refused: 'it is no discovery packet', key: null };
    const { publicKey: key, signature, timestamp } = packet;
    const now = this.options.clock.monotonic();
    if (!verifySignature(key, signedBytes(packet), signature)) return { refused: 'its signature is wrong', key };
    this.last = { key, timestamp, at: now };
    return { follow: packet };
  }

  private refusalOf(key: PublicKeyHex): string | null {
    const pinned = this.options.pinned();
    if (pinned === null) return this.options.trustOnFirstUse ? null : 'no key of an orchestrator is known here';
    return key === pinned ? null : 'it is of another orchestrator than the expected one';
  }

  private untimely(key: PublicKeyHex, timestamp: number, now: number): string | null {
    const { last } = this;
    if (last === null) return null;
    if (now - last.at < PAUSE) return 'another one was followed within the last ten seconds';
    const isKnown = last.key === key && now - last.at < MEMORY;
    return isKnown && timestamp <= last.timestamp ? 'it is not newer than the last one' : null;
  }
}
