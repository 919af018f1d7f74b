/** How operators come to a session and leave it: anew, or as the same client with its place in the output and its pen. */
import { placeFrame } from '../../../src/terminal/frames.js';
import { InputGate } from '../../../src/terminal/late-input.js';
import { TERMINAL_CLOSE } from '../../../src/terminal/limits.js';
import type { ClientHello, TerminalMode } from '../../../src/terminal/notes.js';
import { operatorParty, type ResumeKey } from '../session-book.js';
import type { AttachDetails } from '../session-events.js';
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

/** What the store keeps of an operator who begins to write or to watch. */
interface Attachment {
  readonly key: ResumeKey;
  readonly mode: TerminalMode;
  /** For the audit log; null for the attachment that belongs to the opening of the session. */
  readonly details: AttachDetails | null;
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

  /** Gives a viewer the pen while no other client holds it; otherwise tells the writer of the wish. */
  askPen(client: ClientEnd): Promise<void> {
    return this.inTurn(async () => {
      const { writer } = this.core.people;
      if (writer === null) await this.takeFreePen(client);
      else writer.socket.send(noteFrame({ kind: 'pen_wanted', by: client.operator.username }));
    });
  }

  private async takeFreePen(client: ClientEnd): Promise<void> {
    const { course, input, pace, people, relay, watch } = this.core;
    const { operator, address, output, socket } = client;
    const isHere = (): boolean => socket.isOpen && people.find(socket) === client && !course.isOver;
    if (!isHere()) return;
    const key = { hash: client.secretHash, operatorId: operator.operator_id };
    const by = operatorParty(operator);
    const details = { mode: 'write', takenFrom: null, isUpgrade: true, by, address };
    try {
      await this.keep({ key, mode: 'write', details, isStored: false });
    } catch (error) {
      const why = 'the pen is free, but the orchestrator cannot store who takes it: ask again later';
      socket.send(noteFrame({ kind: 'people', mode: 'read', taken: input.taken, ...people.names, text: why }));
      throw error;
    }
    // One that left meanwhile comes back as the writer.
    if (!isHere()) return;
    people.givePen(client);
    watch.tookPen();
    relay.setWriter(output);
    const text = `${operator.username} took the pen`;
    const own = 'the pen was free, so you type now';
    socket.send(noteFrame({ kind: 'people', mode: 'write', taken: input.end, ...people.names, text: own }));
    this.announce(text, client);
    relay.mark(text);
    pace();
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
    const attached = { mode, takenFrom, isUpgrade: false, by: operatorParty(operator), address };
    const details = isFirst && grant.mode === 'write' ? null : attached;
    await this.keep({ key, mode, details, isStored: stored !== null });
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
  private async keep({ key, mode, details, isStored }: Attachment): Promise<void> {
    const { book, facts, keys } = this.core;
    const { pen } = keys;
    if (mode === 'write') keys.givePen(key);
    if (isStored) return;
    try {
      // Before the secret is given out, so that it is good after a crash too.
      await book.attached(facts, mode === 'write' ? key : null, details);
    } catch (error) {
      keys.givePen(pen);
      throw error;
    }
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
