/** The network, as discovery needs it. */
import type { InterfaceAddress } from './route-of-packet.js';

/** The networks of this machine. */
export interface DiscoveryNetwork {
  interfaces(): readonly InterfaceAddress[];
  broadcast(route: { readonly from: string; readonly host: string; readonly port: number }): Promise<PacketChannel>;
  /** Opens a channel to one host. Rejects for a host that is unknown, unreachable or not a single machine. */
  unicast(target: DiscoveryTarget): Promise<PacketChannel>;
}

/** An open channel for packets; the caller must `close` it. */
export interface PacketChannel {
  /** Local address from which packets are sent. */
  readonly from: string;
  send(packet: Uint8Array): Promise<void>;
  close(): void;
}

/** Address of the agent that a discovery packet is for. */
export interface DiscoveryTarget {
  readonly host: string;
  readonly port: number;
}
