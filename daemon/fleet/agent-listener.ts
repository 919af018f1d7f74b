/**
 * The agent port: accepts TLS connections of the link, whose peers prove an Ed25519 key, for WebSocket upgrades; and a few connections
 * of visitors, which speak plain HTTPS, for the downloads of machines that are installed or upgraded.
 */
import { constants, type KeyObject } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server, type ServerOptions } from 'node:https';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { TLSSocket } from 'node:tls';
import { WebSocketServer } from 'ws';
import { selfSignedEd25519 } from '../../src/identity/certificate.js';
import { nodeIdOf } from '../../src/identity/key-object.js';
import { peerEd25519Key } from '../../src/identity/proof-of-key.js';
import { Fault } from '../../src/kernel/fault.js';
import type { NodeId, PublicKeyHex } from '../../src/kernel/ids.js';
import { hostNetworkOf } from '../../src/kernel/ip-network.js';
import type { Service } from '../../src/kernel/service.js';
import { CLOSE, LINK_ALPN, LINK_LIMITS, LINK_PATH } from '../../src/wire/limits.js';
import type { Core } from '../core/core.js';
import type { AgentPeer } from './agent-peer.js';
import { limitFrames } from './frame-limit.js';
import type { Visitor } from './install-endpoint.js';
import { type ListenAddress, listen } from './listen.js';

/** A second WebSocket endpoint for proved agents, besides the link. */
interface SharedPortEndpoint {
  readonly path: string;
  /** Subprotocol that the agent must request. */
  readonly protocol: string;
  /** Maximum frame size in bytes. */
  readonly maxPayload: number;
  /** Returns true when the agent may use the endpoint; for others the path does not exist. */
  expects(nodeId: NodeId): boolean;
  /** Takes over the connection; called in the tick of the upgrade. */
  accept(peer: Omit<AgentPeer, 'limit' | 'transport'> & { readonly connection: Duplex }): void;
}

/** An endpoint with the server of its WebSockets. */
interface Side {
  readonly endpoint: SharedPortEndpoint;
  readonly server: WebSocketServer;
}

/** Answers the requests of visitors. */
interface VisitorEndpoint {
  answer(request: IncomingMessage, response: ServerResponse, visitor: Visitor): Promise<void>;
}

/** Timeouts in milliseconds. */
interface ListenerTimeouts {
  readonly handshake: number;
  readonly headers: number;
  readonly request: number;
  /** Interval at which the two timeouts above are checked. */
  readonly check: number;
  /** Timeout for the peers' answers to a close when the listener stops. */
  readonly stop: number;
}

export interface AgentListenerOptions extends Pick<Core, 'logger'> {
  readonly host: string;
  /** TCP port; 0 chooses a free one. */
  readonly port: number;
  readonly privateKey: KeyObject;
  /** Called in the tick of the upgrade, so that listeners attached here miss nothing. */
  readonly onConnection: (peer: AgentPeer) => void;
  /** Endpoints beside the link, such as that of terminals. */
  readonly endpoints?: readonly SharedPortEndpoint[];
  /** Without it, every peer must speak the link. */
  readonly visitors?: VisitorEndpoint;
  /** Keys that were checked for weakness when they were stored; loaded at the start [default: none]. */
  readonly checkedKeys?: { load(): Promise<void>; has(key: PublicKeyHex): boolean };
  readonly timeouts?: Partial<ListenerTimeouts>;
  /** Maximum connections of all kinds; further ones are closed at once. */
  readonly maxConnections?: number;
}

const TIMEOUTS: ListenerTimeouts = { handshake: 10_000, headers: 10_000, request: 30_000, check: 2_000, stop: 2_000 };
/** Room for the agents, and for some that reconnect before their old connection is known to be dead. */
const MAX_CONNECTIONS = 22_000;
/** Maximum connections of visitors that have not shown a right to download, in all and of one network. */
const MAX_VISITORS = { all: 64, network: 16 } as const;
/** Protocol that HTTP clients offer. */
const HTTP_ALPN = 'http/1.1';

export class AgentListener implements Service {
  readonly name = 'agent listener';
  private readonly options: AgentListenerOptions;
  private readonly timeouts: ListenerTimeouts;
  private readonly keys = new WeakMap<Duplex, PublicKeyHex>();
  private readonly sockets = new Set<Duplex>();
  /** Visitors whose request has not come yet. */
  private readonly awaited = new WeakMap<Duplex, Visitor>();
  /** Networks of the visitors that have not shown a right to download. */
  private readonly unproved = new Map<Duplex, string>();
  private readonly websockets = new WebSocketServer({
    noServer: true,
    perMessageDeflate: false,
    maxPayload: LINK_LIMITS.agentFrame,
  });
  private readonly sides: readonly Side[];
  private server: Server | undefined;
  private listening: ListenAddress | undefined;

  constructor(options: AgentListenerOptions) {
    this.options = options;
    this.timeouts = { ...TIMEOUTS, ...options.timeouts };
    this.sides = (options.endpoints ?? []).map((endpoint) => ({
      endpoint,
      server: new WebSocketServer({
        noServer: true,
        perMessageDeflate: false,
        maxPayload: endpoint.maxPayload,
        handleProtocols: (offered) => offered.has(endpoint.protocol) && endpoint.protocol,
      }),
    }));
  }

  /** Starts listening. Throws `port_in_use`, or `invalid_config` for an unusable address. */
  async start(): Promise<void> {
    await this.options.checkedKeys?.load();
    const server = createServer(this.serverOptions(), (request, response) => this.answer(request, response));
    server.maxConnections = this.options.maxConnections ?? MAX_CONNECTIONS;
    server.on('connection', (socket) => this.track(socket));
    // Runs before the HTTP server's own listener, so that an unproved peer is closed before any byte is read.
    server.prependListener('secureConnection', (socket) => this.prove(socket));
    server.on('upgrade', (request, socket, head) => this.upgrade(request, socket, head));
    this.listening = await listen(server, { host: this.options.host, port: this.options.port, setting: 'agent_port' });
    this.server = server;
  }

  /** Returns the address it listens on. Throws `internal` before `start`. */
  address(): ListenAddress {
    if (!this.listening) throw new Fault('internal', 'the agent listener has not been started');
    return this.listening;
  }

  /** Stops accepting connections, closes the open ones, and destroys those that miss the timeout. */
  async stop(): Promise<void> {
    const { server } = this;
    this.server = undefined;
    if (!server) return;
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    for (const { clients } of [this.websockets, ...this.sides.map(({ server: side }) => side)]) {
      for (const socket of clients) socket.close(CLOSE.goingAway, 'the orchestrator stops');
    }
    server.closeAllConnections();
    const deadline = setTimeout(() => {
      for (const socket of this.sockets) socket.destroy();
    }, this.timeouts.stop);
    await closed;
    clearTimeout(deadline);
  }

  private serverOptions(): ServerOptions {
    const { privateKey } = this.options;
    return {
      key: privateKey.export({ type: 'pkcs8', format: 'pem' }),
      cert: selfSignedEd25519(privateKey).certPem,
      requestCert: true,
      // CAs are not consulted: the proved key alone decides what the peer may do.
      rejectUnauthorized: false,
      minVersion: 'TLSv1.3',
      sigalgs: 'ed25519',
      // A resumed session would carry its first owner's certificate, whichever peer presents it.
      secureOptions: constants.SSL_OP_NO_TICKET,
      ALPNProtocols: this.options.visitors === undefined ? [LINK_ALPN] : [LINK_ALPN, HTTP_ALPN],
      handshakeTimeout: this.timeouts.handshake,
      headersTimeout: this.timeouts.headers,
      requestTimeout: this.timeouts.request,
      connectionsCheckingInterval: this.timeouts.check,
      noDelay: true,
    };
  }

  private track(socket: Duplex): void {
    this.sockets.add(socket);
    socket.once('close', () => this.sockets.delete(socket));
  }

  private prove(socket: TLSSocket): void {
    // Handles errors of the socket from here on, also between its successive owners.
    socket.on('error', () => socket.destroy());
    const { checkedKeys } = this.options;
    const wasChecked = (key: PublicKeyHex) => checkedKeys?.has(key) === true;
    const key = socket.alpnProtocol === LINK_ALPN ? peerEd25519Key(socket, wasChecked) : null;
    if (key) {
      this.keys.set(socket, key);
      return;
    }
    if (socket.alpnProtocol !== LINK_ALPN && this.admitVisitor(socket, wasChecked)) return;
    this.options.logger.debug('a peer on the agent port proved no key', { address: addressOf(socket) });
    socket.destroy();
  }

  /** Returns false when the peer must be closed. */
  private admitVisitor(socket: TLSSocket, wasChecked: (key: PublicKeyHex) => boolean): boolean {
    const remoteAddress = addressOf(socket);
    if (this.options.visitors === undefined || remoteAddress === undefined || !this.server) return false;
    const network = hostNetworkOf(remoteAddress);
    // The longest silent visitor makes room: an honest one shows its right at once, so strangers cannot keep others out.
    const ofNetwork = [...this.unproved].filter(([, one]) => one === network).map(([visitor]) => visitor);
    if (ofNetwork.length >= MAX_VISITORS.network) ofNetwork[0]?.destroy();
    else if (this.unproved.size >= MAX_VISITORS.all) this.unproved.keys().next().value?.destroy();
    const key = peerEd25519Key(socket, wasChecked);
    const proved = () => void this.unproved.delete(socket);
    this.unproved.set(socket, network);
    socket.once('close', proved);
    this.awaited.set(socket, { nodeId: key === null ? null : nodeIdOf(key), remoteAddress, proved });
    return true;
  }

  /** Answers a plain request. A connection of the link has none, and a visitor has one. */
  private answer(request: IncomingMessage, response: ServerResponse): void {
    const { socket } = request;
    const visitor = this.awaited.get(socket);
    this.awaited.delete(socket);
    if (visitor === undefined || this.options.visitors === undefined) {
      response.writeHead(404, { Connection: 'close', 'Content-Length': 0 }).end();
      return;
    }
    void this.options.visitors.answer(request, response, visitor);
  }

  private upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    const publicKey = this.keys.get(socket);
    const remoteAddress = addressOf(request.socket);
    if (!publicKey || !remoteAddress || !this.server) {
      socket.destroy();
      return;
    }
    const nodeId = nodeIdOf(publicKey);
    const side = this.sides.find(({ endpoint }) => request.url === endpoint.path && endpoint.expects(nodeId));
    if (side !== undefined) {
      const { endpoint } = side;
      side.server.handleUpgrade(request, socket, head, (opened) => {
        opened.on('error', () => undefined);
        if (opened.protocol !== endpoint.protocol) return opened.terminate();
        endpoint.accept({ socket: opened, connection: socket, publicKey, nodeId, remoteAddress });
      });
      return;
    }
    if (request.url !== LINK_PATH) {
      socket.end(NOT_FOUND, () => socket.destroy());
      return;
    }
    this.websockets.handleUpgrade(request, socket, head, (link) => {
      // Without a listener one peer's error would end the process; the close event follows.
      link.on('error', () => undefined);
      const limit = limitFrames(socket, link);
      this.options.onConnection({ socket: link, transport: socket, publicKey, nodeId, remoteAddress, limit });
    });
  }
}

const NOT_FOUND = 'HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n';

/** Returns the peer's address, with an IPv4-mapped prefix removed; undefined when the connection is already gone. */
const addressOf = (socket: Socket): string | undefined => socket.remoteAddress?.replace(/^::ffff:(?=[\d.]+$)/, '');
