import { onTestFinished } from 'vitest';
import type { WebSocket } from 'ws';
import { dialOrchestrator } from '../../../src/agent/link/dial.js';
import { selfSignedEd25519 } from '../../../src/identity/certificate.js';
import { nodeIdOf } from '../../../src/identity/key-object.js';
import type { NodeId } from '../../../src/kernel/ids.js';
import { PROTOCOL_VERSION } from '../../../src/kernel/version.js';
import { orchestratorDecoder, UnknownMessage } from '../../../src/wire/codec.js';
import type { AgentMessageOf, OrchestratorMessage } from '../../../src/wire/messages.js';
import { type Identity, newIdentity } from '../../identity/keys.js';

export const HELLO: AgentMessageOf<'hello'> = {
  type: 'hello',
  protocol_version: PROTOCOL_VERSION,
  agent_version: '0.1.0',
  hostname: 'box',
  attributes: { platform: 'linux', arch: 'x86_64' },
};

export interface Closed {
  readonly code: number;
  readonly reason: string;
}

const decode = orchestratorDecoder();

/** An agent's end of a real link, which says what a test makes it say. */
export class TestAgent {
  readonly identity: Identity;
  readonly nodeId: NodeId;
  readonly socket: WebSocket;
  readonly received: OrchestratorMessage[] = [];
  readonly closed: Promise<Closed>;
  private readonly waiting: (() => void)[] = [];

  private constructor(socket: WebSocket, identity: Identity) {
    this.socket = socket;
    this.identity = identity;
    this.nodeId = nodeIdOf(identity.publicKey);
    socket.on('error', () => undefined);
    socket.on('message', (data) => {
      const message = decode(data.toString());
      if (message instanceof UnknownMessage)
        throw new Error(`the orchestrator sent an unknown message: ${data.toString()}`);
      this.received.push(message);
      for (const wake of this.waiting.splice(0)) wake();
    });
    this.closed = new Promise((resolve) => {
      socket.on('close', (code, reason) => resolve({ code, reason: reason.toString() }));
    });
    socket.resume();
  }

  static async dial(port: number, identity: Identity = newIdentity()): Promise<TestAgent> {
    const { privateKey } = identity;
    const { socket } = await dialOrchestrator({
      host: '127.0.0.1',
      port,
      privateKey,
      certificate: selfSignedEd25519(privateKey),
      verifyPeer: () => undefined,
      timeoutMs: 10_000,
    });
    onTestFinished(() => socket.terminate());
    return new TestAgent(socket, identity);
  }

  hello(more: Partial<AgentMessageOf<'hello'>> = {}): void {
    this.send({ ...HELLO, ...more });
  }

  /** Anything but text and bytes goes out as JSON. */
  send(message: unknown): void {
    this.socket.send(typeof message === 'string' || Buffer.isBuffer(message) ? message : JSON.stringify(message));
  }

  /** The message at this position, once it is there. */
  async message(position: number): Promise<OrchestratorMessage> {
    for (;;) {
      const message = this.received[position];
      if (message !== undefined) return message;
      await new Promise<void>((resolve) => this.waiting.push(resolve));
    }
  }

  /** Reads nothing any more, so it answers neither ping nor close: what a machine without power looks like. */
  die(): void {
    this.socket.pause();
  }
}
