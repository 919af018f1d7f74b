/** Sessions of commands behind a fake API: the frames are real, the programs are the test's. */
import { type WebSocket, WebSocketServer } from 'ws';
import { API_BASE } from '../../../src/contract/contract.js';
import { TERMINAL_LIMITS, TERMINAL_SUBPROTOCOL } from '../../../src/terminal/limits.js';
import { ScriptedSession } from '../../support/terminal-server.js';
import type { Answers, FakeApi, Reply } from './fake-api.js';
import { ulid } from './world.js';

export interface ExecRequest {
  readonly command: readonly string[];
  readonly timeout_secs: number | null;
  readonly stdin: boolean;
}

export interface Started extends ExecRequest {
  readonly nodeId: string;
  readonly session: ScriptedSession;
}

/** What runs on an agent: called when the session is opened, before anybody is connected. A reply refuses it. */
export type Program = (started: Started) => Reply | undefined;

export class FakeTerminals {
  /** In the order in which they were opened. */
  readonly started: Started[] = [];
  /** Most at the same time. */
  busiest = 0;
  private readonly program: Program;
  private readonly sockets = new WebSocketServer({
    noServer: true,
    perMessageDeflate: false,
    maxPayload: TERMINAL_LIMITS.frame,
    handleProtocols: (protocols) => (protocols.has(TERMINAL_SUBPROTOCOL) ? TERMINAL_SUBPROTOCOL : false),
  });

  constructor(api: FakeApi, program: Program) {
    this.program = program;
    api.server.removeAllListeners('upgrade');
    api.server.on('upgrade', (request, socket, head) => {
      const index = Number(/stream\?ticket=(\d+)$/.exec(request.url ?? '')?.[1]);
      this.sockets.handleUpgrade(request, socket, head, (ws: WebSocket) => this.started[index]?.session.accept(ws));
    });
  }

  /** By the node's ID. */
  on(nodeId: string): Started | undefined {
    return this.started.find((one) => one.nodeId === nodeId);
  }

  readonly answers: Answers = {
    execOnAgent: ({ params, body, headers }) => {
      const given = body as Partial<ExecRequest>;
      const session = new ScriptedSession();
      const started: Started = {
        nodeId: params.node_id ?? '',
        session,
        command: given.command ?? [],
        timeout_secs: given.timeout_secs ?? null,
        stdin: given.stdin ?? false,
      };
      const refused = this.program(started);
      if (refused !== undefined) return refused;
      const index = this.started.push(started) - 1;
      this.busiest = Math.max(this.busiest, this.started.filter((one) => !one.session.over).length);
      const session_id = ulid(index);
      const ws_url = `ws://${headers.host}${API_BASE}/terminal/session/${session_id}/stream?ticket=${index}`;
      return { body: { session_id, ws_url } };
    },
  };

  stop(): void {
    for (const socket of this.sockets.clients) socket.terminate();
  }
}

/** A program that prints that, and ends. */
export const prints =
  (out: string | Buffer, { err = '', code = 0 }: { readonly err?: string; readonly code?: number } = {}): Program =>
  ({ session }) => {
    session.print(out);
    if (err !== '') session.print(err, 'err');
    session.end({ code });
    return undefined;
  };
