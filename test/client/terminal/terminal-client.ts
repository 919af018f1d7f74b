/** A connected client that remembers its calls. */
import { onTestFinished } from 'vitest';
import { connectTerminal } from '../../../src/client/terminal/terminal-connection.js';
import type {
  ConnectTerminalOptions,
  LinkState,
  TerminalEnd,
  TerminalSession,
} from '../../../src/client/terminal/terminal-session.js';
import type { Clock } from '../../../src/kernel/clock.js';
import type { ServerNote } from '../../../src/terminal/notes.js';
import { clientOf } from '../../support/client.js';
import { SESSION, type TerminalServer } from '../../support/terminal-server.js';

export interface Told {
  readonly session: TerminalSession;
  shown: Buffer;
  errors: Buffer;
  readonly snapshots: string[];
  /** Bytes that snapshots stood in for. */
  skipped: number;
  readonly states: LinkState[];
  readonly notes: ServerNote[];
  dropped: number;
  drains: number;
  end: TerminalEnd | null;
  /** Bytes that have not reached their destination while `isStalled`. */
  readonly stalled: (() => void)[];
  isStalled: boolean;
}

const clock: Pick<Clock, 'monotonic' | 'now'> = { monotonic: () => performance.now(), now: () => Date.now() };

export async function attach(server: TerminalServer, options: Partial<ConnectTerminalOptions> = {}): Promise<Told> {
  const api = clientOf(server.url, { pin: server.fingerprint, token: 'token' });
  const { ws_url } = await api.call('attachTerminal', { params: { session_id: SESSION }, body: { mode: 'write' } });
  const told: Omit<Told, 'session'> & { session: TerminalSession | null } = {
    session: null,
    shown: Buffer.alloc(0),
    errors: Buffer.alloc(0),
    snapshots: [],
    skipped: 0,
    states: [],
    notes: [],
    dropped: 0,
    drains: 0,
    end: null,
    stalled: [],
    isStalled: false,
  };
  const taken = (done: () => void) => (told.isStalled ? told.stalled.push(done) : done());
  const session = connectTerminal({
    api,
    sessionId: SESSION,
    wsUrl: ws_url,
    mode: 'write',
    clock,
    random: () => 0,
    queueInput: false,
    events: {
      output: (stream, bytes, done) => {
        if (stream === 'out') told.shown = Buffer.concat([told.shown, bytes]);
        else told.errors = Buffer.concat([told.errors, bytes]);
        taken(done);
      },
      snapshot: ({ bytes, skipped }, done) => {
        told.snapshots.push(bytes.toString());
        told.skipped += skipped;
        taken(done);
      },
      note: (note) => told.notes.push(note),
      state: (state) => told.states.push(state),
      drain: () => {
        told.drains += 1;
      },
      inputDropped: (bytes) => {
        told.dropped += bytes;
      },
      ended: (end) => {
        told.end = end;
      },
    },
    ...options,
  });
  onTestFinished(() => session.detach());
  return Object.assign(told, { session });
}
