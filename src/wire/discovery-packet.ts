/**
 * The discovery packet: one UDP datagram in which an orchestrator says where its agent port is, signed with its key. It
 * is JSON with the members in a fixed order, so that each announcement has one spelling.
 */
import * as Type from 'typebox';
import type { PublicKeyHex } from '../kernel/ids.js';
import { DISCOVERY_PORT } from '../kernel/ports.js';
import { closed } from '../kernel/schema.js';
import { validator } from '../kernel/validator.js';

export const DISCOVERY = {
  /** UDP port of agents that wait to be found. */
  port: DISCOVERY_PORT,
  /** All nodes of a link, for IPv6. */
  group: 'ff02::1',
  /** Bytes; a larger datagram is no packet. */
  maxBytes: 512,
} as const;

export interface Announcement {
  /** Of the orchestrator. Its form is known, not whether it is fit for use. */
  readonly publicKey: PublicKeyHex;
  /** Name or address, IPv6 without brackets and zone. */
  readonly host: string;
  readonly port: number;
  /** Unix milliseconds by the clock of the orchestrator. */
  readonly timestamp: number;
}

export interface SignedAnnouncement extends Announcement {
  /** Ed25519 over `signedBytes`, in hex. */
  readonly signature: string;
}

const HOST_PATTERN = '^[A-Za-z0-9._:-]{1,253}$';
const DOMAIN = 'orch-discovery-v1';

const packetSchema = closed({
  magic: Type.Literal('orch-discovery'),
  version: Type.Literal(1),
  public_key: Type.String({ pattern: '^[0-9a-f]{64}$' }),
  host: Type.String({ pattern: HOST_PATTERN }),
  port: Type.Integer({ minimum: 1, maximum: 65_535 }),
  timestamp: Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }),
  signature: Type.String({ pattern: '^[0-9a-f]{128}$' }),
});

/** Whether a packet can name that host. */
export const isDiscoveryHost = (host: string): boolean => new RegExp(HOST_PATTERN).test(host);

/** What the signature is over. No part can hold a line end. */
export const signedBytes = ({ publicKey, host, port, timestamp }: Announcement): Buffer =>
  Buffer.from([DOMAIN, publicKey, host, port, timestamp].join('\n'));

/** May be larger than `DISCOVERY.maxBytes` when the host's name is very long. */
export const encodePacket = ({ publicKey, host, port, timestamp, signature }: SignedAnnouncement): Buffer =>
  Buffer.from(
    JSON.stringify({
      magic: 'orch-discovery',
      version: 1,
      public_key: publicKey,
      host,
      port,
      timestamp,
      signature,
    }),
  );

export type PacketDecoder = (bytes: Uint8Array) => SignedAnnouncement | null;

/** A decoder that gives null for whatever is not exactly what `encodePacket` makes; the signature is not verified. */
export function packetDecoder(): PacketDecoder {
  const packet = validator(packetSchema);
  return (bytes) => {
    if (bytes.length > DISCOVERY.maxBytes) return null;
    const value = parse(bytes);
    if (!packet.check(value)) return null;
    const { public_key: publicKey, host, port, timestamp, signature } = value;
    const signed = { publicKey: publicKey as PublicKeyHex, host, port, timestamp, signature };
    return encodePacket(signed).equals(bytes) ? signed : null;
  };
}

function parse(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(bytes).toString('latin1'));
  } catch {
    return null;
  }
}
