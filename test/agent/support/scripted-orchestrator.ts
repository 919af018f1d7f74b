/** The orchestrator's end of a link, which says what a test makes it say. */
import type { WebSocket } from 'ws';
import type { RunHead } from '../../../src/agent/engine/run-engine.js';
import { agentDecoder, UnknownMessage } from '../../../src/wire/codec.js';
import type { AgentMessage, AgentMessageOf, OrchestratorMessage } from '../../../src/wire/messages.js';
import { cutRun, type RunContent } from '../../../src/wire/parts.js';

const decode = agentDecoder();

export class ScriptedOrchestrator {
  readonly socket: WebSocket;
  /** Everything that the agent said, each held against the protocol. */
  readonly heard: AgentMessage[] = [];
  readonly closed: Promise<{ readonly code: number; readonly reason: string }>;
  private waiting: (() => void)[] = [];

  constructor(socket: WebSocket) {
    this.socket = socket;
    socket.on('message', (data) => {
      const message = decode(data.toString());
      if (message instanceof UnknownMessage) throw new Error(`the agent sent a message of unknown type: ${data}`);
      this.heard.push(message);
      for (const wake of this.waiting.splice(0)) wake();
    });
    socket.on('error', () => undefined);
    this.closed = new Promise((resolve) => {
      socket.on('close', (code, reason) => resolve({ code, reason: reason.toString() }));
    });
  }

  say(...messages: readonly OrchestratorMessage[]): void {
    for (const message of messages) this.socket.send(JSON.stringify(message));
  }

  status(status: 'pending' | 'approved', name: string | null = null): void {
    this.say({ type: 'status', status, protocol_version: 1, name });
  }

  /** Sends a run in parts of about that many bytes. */
  run(
    { type: _, resources: __, removals: ___, parts: ____, ...head }: RunHead,
    content: RunContent,
    partSize = 2_000,
  ): void {
    this.say(...cutRun(head, content, partSize));
  }

  async until<T>(find: () => T | undefined): Promise<T> {
    for (;;) {
      const found = find();
      if (found !== undefined) return found;
      await new Promise<void>((resolve) => this.waiting.push(resolve));
    }
  }

  /** The next message of a type, counted from the first. */
  next<T extends AgentMessage['type']>(type: T, number = 1): Promise<AgentMessageOf<T>> {
    const isWanted = (message: AgentMessage): message is AgentMessageOf<T> => message.type === type;
    return this.until(() => this.heard.filter(isWanted)[number - 1]);
  }

  /** Approves the agent once it has said hello; resolves with its inventory. */
  async approve(): Promise<AgentMessageOf<'inventory'>> {
    await this.next('hello');
    this.status('approved', 'web-01');
    return this.next('inventory');
  }
}
