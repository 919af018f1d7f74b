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
  /** UDP port of agents that wait for discovery. */
  port: DISCOVERY_PORT,
  /** IPv6 multicast group of all nodes of a link. */
  group: 'ff02::1',
  /** Maximum bytes of a packet. */
  maxBytes: 512,
} as const;

export interface Announcement {
  /** Key of the orchestrator; its form is checked, not its validity as a key. */
  readonly publicKey: PublicKeyHex;
  /** Name or address; IPv6 without brackets and zone. */
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

/** True when a packet can name the host. */
export const isDiscoveryHost = (host: string): boolean => new RegExp(HOST_PATTERN).test(host);

/** Returns the signed bytes. No part can hold a line end. */
export const signedBytes = ({ publicKey, host, port, timestamp }: Announcement): Buffer =>
  Buffer.from([DOMAIN, publicKey, host, port, timestamp].join('\n'));

/** Encodes a packet, which exceeds `DISCOVERY.maxBytes` if the host name is very long. */
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

/** Creates a decoder that returns null for everything that `encodePacket` cannot produce; it does not verify the signature. */
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
