/** How operators come to a session and leave it: anew, or as the same client with its place in the output and its pen. */
import { placeFrame } from '../../../src/terminal/frames.js';
import { InputGate } from '../../../src/terminal/input-gate.js';
import { TERMINAL_CLOSE } from '../../../src/terminal/limits.js';
import type { ClientHello, TerminalMode } from '../../../src/terminal/notes.js';
import { operatorParty, type ResumeKey } from '../session-book.js';
import type { TerminalSocket } from '../terminal-socket.js';
import type { ClientGrant } from '../tickets.js';
import { AskBudget } from './ask-budget.js';
import type { ClientEnd } from './client-end.js';
import type { ClientFrames } from './client-frames.js';
import { noteFrame } from './people.js';
import { resumeHash } from './resume-keys.js';
import type { SessionCore } from './session-core.js';
import type { SessionEnding } from './session-ending.js';
import { nodeLabel } from './session-facts.js';

/** Somebody who has come with a ticket. */
export interface Arrival {
  readonly socket: TerminalSocket;
  readonly grant: ClientGrant;
  readonly hello: ClientHello;
  readonly address: string | null;
}

export interface JoiningOptions {
  readonly core: SessionCore;
  readonly frames: ClientFrames;
  readonly ending: SessionEnding;
}

/** What is stored of somebody who attaches anew. */
interface Attachment {
  readonly key: ResumeKey;
  readonly mode: TerminalMode;
  readonly takenFrom: string | null;
  readonly isFirst: boolean;
  /** The store has the key already. */
  readonly isStored: boolean;
}

export class Joining {
  private readonly core: SessionCore;
  private readonly options: JoiningOptions;
  /** Of whoever attached last: one after the other, so that each takes the pen from whoever really has it. */
  private last: Promise<unknown> = Promise.resolve();

  constructor(options: JoiningOptions) {
    this.core = options.core;
    this.options = options;
  }

  /** Serves somebody who attaches, or comes back. */
  async join(arrival: Arrival): Promise<void> {
    const { socket, grant, hello, address } = arrival;
    const { book, facts, keys } = this.core;
    const { operator } = grant;
    if (!socket.isOpen) return;
    if (!this.options.ending.isServing(operator.operator_id)) return leave(socket);
    const { resume } = hello;
    const owner = resume === null ? null : keys.ownerOf(resume.secret);
    if (resume === null || owner === null) return this.inTurn(() => this.joinAnew(arrival));
    if (owner === operator.operator_id) return this.joinAgain(arrival, resume);
    socket.close(TERMINAL_CLOSE.revoked, 'this session was resumed with the secret of somebody else');
    const reason = 'the resume secret of another operator';
    await book.refused(facts, { reason, by: operatorParty(operator), address });
  }

  /** The pen goes with it. */
  left(socket: TerminalSocket): void {
    const client = this.core.people.find(socket);
    if (client === undefined) return;
    this.remove(client);
    this.announce(`${client.operator.username} left`, null);
    this.update();
  }

  private inTurn(work: () => Promise<void>): Promise<void> {
    const turn = this.last.then(work);
    this.last = turn.catch(() => undefined);
    return turn;
  }

  private async joinAnew(arrival: Arrival): Promise<void> {
    const { input, keys, people, relay } = this.core;
    const { socket, grant, address } = arrival;
    const { operator } = grant;
    const { username } = operator;
    if (!socket.isOpen) return;
    if (!this.options.ending.isServing(operator.operator_id)) return leave(socket);
    const mode = this.modeFor(grant);
    const isFirst = relay.isFresh && keys.pen === null && operator.operator_id === this.core.facts.operatorId;
    // Nobody has written yet, so the store has what it was opened with.
    const stored = isFirst && mode === 'write' ? grant.firstSecret : null;
    const secret = stored ?? keys.issue(operator.operator_id);
    const key = { hash: resumeHash(secret), operatorId: operator.operator_id };
    const takenFrom = mode === 'write' ? (people.writer?.operator.username ?? null) : null;
    await this.keep(arrival, { key, mode, takenFrom, isFirst, isStored: stored !== null });
    if (!this.options.ending.isServing(operator.operator_id)) return leave(socket);
    // The log says that the pen was taken: it was, also by one who has gone by now.
    if (!socket.isOpen && mode === 'read') return;
    const client = this.add({ socket, operator, address, secretHash: key.hash, mode });
    this.welcome(client, secret, mode === 'write' ? input.end : input.taken);
    this.begin(client, isFirst ? 0 : null);
    const joined = `${username} joined to ${mode === 'write' ? 'write' : 'watch'}`;
    const text = takenFrom === null ? joined : `${username} took the pen`;
    this.announce(text, client);
    if (!isFirst) relay.mark(text);
    this.update();
    if (!socket.isOpen) this.left(socket);
  }

  private modeFor({ mode, take }: ClientGrant): TerminalMode {
    const { course, people } = this.core;
    const isPenFree = people.writer === null || take;
    return mode === 'write' && isPenFree && !course.isOver ? 'write' : 'read';
  }

  /** From here on nobody else comes back with the pen; unless that cannot be stored: then all is as it was. */
  private async keep(arrival: Arrival, given: Attachment): Promise<void> {
    const { keys } = this.core;
    const { pen } = keys;
    if (given.mode === 'write') keys.givePen(given.key);
    if (given.isStored) return;
    try {
      await this.store(arrival, given);
    } catch (error) {
      keys.givePen(pen);
      throw error;
    }
  }

  /** Before the secret is given out, so that it is good after a crash too. */
  private async store({ grant, address }: Arrival, given: Attachment): Promise<void> {
    const { book, facts } = this.core;
    const { key, mode, takenFrom, isFirst } = given;
    const details = { mode, takenFrom, by: operatorParty(grant.operator), address };
    const isOpening = isFirst && grant.mode === 'write';
    await book.attached(facts, mode === 'write' ? key : null, isOpening ? null : details);
  }

  /** The same client as before, with its place in the output and the pen if nobody else has it. */
  private joinAgain(
    { socket, grant, address }: Arrival,
    { secret, received }: { readonly secret: string; readonly received: number },
  ): void {
    const hash = resumeHash(secret);
    const { agent, input, keys, people, relay } = this.core;
    const { operator } = grant;
    for (const other of people.all) {
      if (other.secretHash !== hash) continue;
      this.remove(other);
      other.socket.close(TERMINAL_CLOSE.replaced, 'the same client has come back');
    }
    const hasPen = keys.pen?.hash === hash && people.writer === null;
    const client = this.add({ socket, operator, address, secretHash: hash, mode: hasPen ? 'write' : 'read' });
    this.welcome(client, secret, input.taken);
    const produced = Math.max(relay.received, agent.hello?.produced ?? 0);
    this.begin(client, received <= produced ? received : null);
    this.announce(`${operator.username} is back`, client);
    this.update();
  }

  private add(given: Omit<ClientEnd, 'output' | 'asks' | 'gate'>): ClientEnd {
    const { clock, people, relay, watch } = this.core;
    const output = relay.add({
      send: (...parts) => given.socket.send(...parts),
      isSkippable: () => client !== people.writer,
      onFinished: () => this.options.ending.served(client),
    });
    const client: ClientEnd = { ...given, output, gate: new InputGate(), asks: new AskBudget(clock.monotonic()) };
    people.add(client);
    if (client.mode === 'write') {
      watch.tookPen();
      relay.setWriter(output);
    }
    return client;
  }

  private remove(client: ClientEnd): void {
    const { people, relay, watch } = this.core;
    people.remove(client);
    relay.remove(client.output);
    watch.left();
  }

  private welcome({ mode, socket }: ClientEnd, secret: string, taken: number): void {
    const { agent, course, facts, input, people, recording } = this.core;
    socket.send(
      noteFrame({
        kind: 'welcome',
        session_id: facts.id,
        node_name: nodeLabel(facts),
        mode,
        taken,
        secret,
        recorded: recording.state === 'on',
        ...people.names,
      }),
    );
    socket.send(placeFrame(input.end));
    if (!agent.isHere && !course.isOver) socket.send(noteFrame({ kind: 'agent_link', connected: false }));
  }

  /** @param offset from where it wants the output; null for how things are now */
  private begin(client: ClientEnd, offset: number | null): void {
    const { ending, frames } = this.options;
    const { output, socket } = client;
    const { backlog, hasScreen } = this.core.relay;
    if (offset !== null && offset >= backlog.start) output.beginAt(offset);
    else if (hasScreen) output.beginWithPicture();
    else output.beginAt(backlog.start);
    // While its end is being stored, that goes before telling of it.
    if (ending.isStored) output.finish();
    socket.listen((frame, data) => frames.take(client, frame, data));
  }

  private announce(text: string, except: ClientEnd | null): void {
    const { input, people } = this.core;
    people.announce(text, input.taken, except);
  }

  /** Who is here has changed: the state and what the agent may send follow. */
  private update(): void {
    const { course, pace, people } = this.core;
    const { state } = course;
    const attached = people.count > 0;
    if (state.phase === 'active' && state.attached !== attached) {
      course.take({ type: attached ? 'attached' : 'detached' });
    }
    if (course.isOver) this.options.ending.leaveWhenServed();
    else pace();
  }
}

const leave = (socket: TerminalSocket): void => socket.close(TERMINAL_CLOSE.unknown, 'the session is over');
