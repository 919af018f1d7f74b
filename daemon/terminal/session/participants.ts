/** The clients attached to a session: how they attach, resume and leave, who holds the pen, and the notes they get. */

import { placeFrame } from '../../../src/terminal/frames.js';
import { InputGate } from '../../../src/terminal/late-input.js';
import { TERMINAL_CLOSE } from '../../../src/terminal/limits.js';
import type { ClientHello, ServerNote, TerminalMode } from '../../../src/terminal/notes.js';
import { type AttachDetails, operatorParty, type ResumeKey } from '../session-store.js';
import type { TerminalSocket } from '../terminal-socket.js';
import type { ClientGrant } from '../tickets.js';
import { AskBudget, type AttachedClient, type ClientFrames, noteFrame } from './client-side.js';
import { resumeHash } from './resume.js';
import { nodeLabel, type SessionCore } from './session-core.js';
import type { SessionEnding } from './session-lifecycle.js';

/** Maximum characters of an announcement. */
const LONGEST = 256;

export class Participants {
  private readonly clients = new Set<AttachedClient>();
  private current: AttachedClient | null = null;

  /** A copy, because sending may remove clients. */
  get all(): readonly AttachedClient[] {
    return [...this.clients];
  }

  get count(): number {
    return this.clients.size;
  }

  /** Client that types, resizes and paces the output; null without one. */
  get writer(): AttachedClient | null {
    return this.current;
  }

  get names(): { readonly writer: string | null; readonly viewers: string[] } {
    const viewers = this.all.filter((client) => client !== this.current);
    return {
      writer: this.current?.operator.username ?? null,
      viewers: viewers.map(({ operator }) => operator.username),
    };
  }

  find(socket: TerminalSocket): AttachedClient | undefined {
    return this.all.find((client) => client.socket === socket);
  }

  /** Adds a client. One in mode `write` takes the pen. */
  add(client: AttachedClient): void {
    this.clients.add(client);
    if (client.mode === 'write') this.setWriter(client);
  }

  /** Makes an attached client the writer; the writer before it becomes a viewer. */
  setWriter(client: AttachedClient): void {
    if (this.current !== null) this.current.mode = 'read';
    client.mode = 'write';
    this.current = client;
  }

  remove(client: AttachedClient): void {
    this.clients.delete(client);
    if (this.current === client) this.current = null;
  }

  broadcast(said: ServerNote): void {
    for (const { socket } of this.clients) socket.send(noteFrame(said));
  }

  /** Sends the note `people` to all clients except one. */
  announce(text: string, taken: number, except: AttachedClient | null): void {
    const { names } = this;
    for (const { socket, mode } of this.all.filter((client) => client !== except)) {
      socket.send(noteFrame({ kind: 'people', mode, taken, ...names, text: text.slice(0, LONGEST) }));
    }
  }

  /** Closes the sockets of the clients that the predicate selects. */
  close(code: number, reason: string, isMeant: (client: AttachedClient) => boolean = () => true): void {
    for (const client of this.all) if (isMeant(client)) client.socket.close(code, reason);
  }
}

/** A client that has redeemed a ticket. */
export interface JoinRequest {
  readonly socket: TerminalSocket;
  readonly grant: ClientGrant;
  readonly hello: ClientHello;
  readonly address: string | null;
}

interface AdmissionOptions {
  readonly core: SessionCore;
  readonly frames: ClientFrames;
  readonly ending: SessionEnding;
}

/** Attachment of a client, as it is stored. */
interface Attachment {
  readonly key: ResumeKey;
  readonly mode: TerminalMode;
  /** Details for the audit log; null for the attachment that belongs to the opening of the session. */
  readonly details: AttachDetails | null;
  /** True if the store has the key already. */
  readonly isStored: boolean;
}

/** Admits clients: new ones, and ones that resume with their output offset and their pen. */
export class Admission {
  private readonly core: SessionCore;
  private readonly options: AdmissionOptions;
  /** The latest attachment. Attachments run one by one, so that each sees the current holder of the pen. */
  private last: Promise<unknown> = Promise.resolve();

  constructor(options: AdmissionOptions) {
    this.core = options.core;
    this.options = options;
  }

  /** Serves a client that attaches or resumes. */
  async join(request: JoinRequest): Promise<void> {
    const { socket, grant, hello, address } = request;
    const { store, facts, keys } = this.core;
    const { operator } = grant;
    // A writer who comes back may have lost the right to type since.
    const mayType = hello.resume !== null && (await this.core.mayType(operator.operator_id));
    if (!socket.isOpen) return;
    if (!this.options.ending.isServing(operator.operator_id)) return leave(socket);
    const { resume } = hello;
    const owner = resume === null ? null : keys.ownerOf(resume.secret);
    if (resume === null || owner === null) return this.enqueue(() => this.attach(request));
    if (owner === operator.operator_id) return this.resume(request, resume, mayType);
    socket.close(TERMINAL_CLOSE.revoked, 'this session was resumed with the secret of another operator');
    const reason = 'the resume secret of another operator';
    await store.refused(facts, { reason, by: operatorParty(operator), address });
  }

  /** Removes the client of a socket that has closed, and frees its pen. */
  left(socket: TerminalSocket): void {
    const client = this.core.participants.find(socket);
    if (client === undefined) return;
    this.remove(client);
    this.announce(`${client.operator.username} left`, null);
    this.update();
  }

  /** Gives a viewer the pen when it is free; else forwards the request to the writer. */
  askPen(client: AttachedClient): Promise<void> {
    return this.enqueue(async () => {
      const { writer } = this.core.participants;
      if (writer === null) await this.becomeWriter(client);
      else writer.socket.send(noteFrame({ kind: 'pen_wanted', by: client.operator.username }));
    });
  }

  private async becomeWriter(client: AttachedClient): Promise<void> {
    const { lifecycle, input, mayType, pace, participants, relay, clocks } = this.core;
    const { operator, address, output, socket } = client;
    const isAttached = (): boolean => socket.isOpen && participants.find(socket) === client && !lifecycle.hasEnded;
    if (!isAttached()) return;
    const refuse = (text: string) =>
      socket.send(noteFrame({ kind: 'people', mode: 'read', taken: input.taken, ...participants.names, text }));
    if (!(await mayType(operator.operator_id))) return refuse('the pen is free, but you may only watch this session');
    const key = { hash: client.secretHash, operatorId: operator.operator_id };
    const by = operatorParty(operator);
    const details = { mode: 'write', takenFrom: null, isUpgrade: true, by, address };
    try {
      await this.storeAttachment({ key, mode: 'write', details, isStored: false });
    } catch (error) {
      refuse('the pen is free, but the orchestrator cannot store who takes it: ask again later');
      throw error;
    }
    // A client that left meanwhile resumes as the writer.
    if (!isAttached()) return;
    participants.setWriter(client);
    clocks.restartIdle();
    relay.setWriter(output);
    const text = `${operator.username} took the pen`;
    const own = 'the pen was free, so you type now';
    socket.send(noteFrame({ kind: 'people', mode: 'write', taken: input.end, ...participants.names, text: own }));
    this.announce(text, client);
    relay.mark(text);
    pace();
  }

  private enqueue(work: () => Promise<void>): Promise<void> {
    const turn = this.last.then(work);
    this.last = turn.catch(() => undefined);
    return turn;
  }

  private async attach(request: JoinRequest): Promise<void> {
    const { input, keys, participants, relay } = this.core;
    const { socket, grant, address } = request;
    const { operator } = grant;
    const { username } = operator;
    if (!socket.isOpen) return;
    if (!this.options.ending.isServing(operator.operator_id)) return leave(socket);
    const mode = this.modeFor(grant);
    const isFirst = relay.isFresh && keys.writer === null && operator.operator_id === this.core.facts.operatorId;
    // Without a writer so far, the store has the key of the opener.
    const stored = isFirst && mode === 'write' ? grant.firstSecret : null;
    const secret = stored ?? keys.issue(operator.operator_id);
    const key = { hash: resumeHash(secret), operatorId: operator.operator_id };
    const takenFrom = mode === 'write' ? (participants.writer?.operator.username ?? null) : null;
    const attached = { mode, takenFrom, isUpgrade: false, by: operatorParty(operator), address };
    const details = isFirst && grant.mode === 'write' ? null : attached;
    await this.storeAttachment({ key, mode, details, isStored: stored !== null });
    if (!this.options.ending.isServing(operator.operator_id)) return leave(socket);
    // The audit log says that the pen was taken, so a writer is added although it has gone.
    if (!socket.isOpen && mode === 'read') return;
    const client = this.add({ socket, operator, address, secretHash: key.hash, mode });
    this.sendWelcome(client, secret, mode === 'write' ? input.end : input.taken);
    this.begin(client, isFirst ? 0 : null);
    const joined = `${username} joined to ${mode === 'write' ? 'write' : 'watch'}`;
    const text = takenFrom === null ? joined : `${username} took the pen`;
    this.announce(text, client);
    if (!isFirst) relay.mark(text);
    this.update();
    if (!socket.isOpen) this.left(socket);
  }

  private modeFor({ mode, take }: ClientGrant): TerminalMode {
    const { lifecycle, participants } = this.core;
    const isPenFree = participants.writer === null || take;
    return mode === 'write' && isPenFree && !lifecycle.hasEnded ? 'write' : 'read';
  }

  /** Stores an attachment. A new writer invalidates the resume key of the last one, unless storing fails. */
  private async storeAttachment({ key, mode, details, isStored }: Attachment): Promise<void> {
    const { store, facts, keys } = this.core;
    const { writer } = keys;
    if (mode === 'write') keys.setWriter(key);
    if (isStored) return;
    try {
      // Stored before the secret is sent, so that it is valid after a crash.
      await store.attached(facts, mode === 'write' ? key : null, details);
    } catch (error) {
      keys.setWriter(writer);
      throw error;
    }
  }

  /** Resumes a client at its output offset, with the pen if it is still free. */
  private resume(
    { socket, grant, address }: JoinRequest,
    { secret, received }: { readonly secret: string; readonly received: number },
    mayType: boolean,
  ): void {
    const hash = resumeHash(secret);
    const { agent, input, keys, participants, relay } = this.core;
    const { operator } = grant;
    for (const other of participants.all) {
      if (other.secretHash !== hash) continue;
      this.remove(other);
      other.socket.close(TERMINAL_CLOSE.replaced, 'the same client has come back');
    }
    const hasPen = mayType && keys.writer?.hash === hash && participants.writer === null;
    const client = this.add({ socket, operator, address, secretHash: hash, mode: hasPen ? 'write' : 'read' });
    this.sendWelcome(client, secret, input.taken);
    const produced = Math.max(relay.received, agent.hello?.produced ?? 0);
    this.begin(client, received <= produced ? received : null);
    this.announce(`${operator.username} is back`, client);
    this.update();
  }

  private add(given: Omit<AttachedClient, 'output' | 'asks' | 'gate'>): AttachedClient {
    const { clock, participants, relay, clocks } = this.core;
    const output = relay.add({
      send: (...parts) => given.socket.send(...parts),
      isSkippable: () => client !== participants.writer,
      onFinished: () => this.options.ending.served(client),
    });
    const client: AttachedClient = { ...given, output, gate: new InputGate(), asks: new AskBudget(clock.monotonic()) };
    participants.add(client);
    if (client.mode === 'write') {
      clocks.restartIdle();
      relay.setWriter(output);
    }
    return client;
  }

  private remove(client: AttachedClient): void {
    const { participants, relay, clocks } = this.core;
    participants.remove(client);
    relay.remove(client.output);
    clocks.restartDetached();
  }

  private sendWelcome({ mode, socket }: AttachedClient, secret: string, taken: number): void {
    const { agent, lifecycle, facts, input, participants, recording } = this.core;
    socket.send(
      noteFrame({
        kind: 'welcome',
        session_id: facts.id,
        node_name: nodeLabel(facts),
        mode,
        taken,
        secret,
        recorded: recording.state === 'on',
        ...participants.names,
      }),
    );
    socket.send(placeFrame(input.end));
    if (!agent.isConnected && !lifecycle.hasEnded) socket.send(noteFrame({ kind: 'agent_link', connected: false }));
  }

  /** Starts the output of a client. @param offset first wanted byte; null for the current screen */
  private begin(client: AttachedClient, offset: number | null): void {
    const { ending, frames } = this.options;
    const { output, socket } = client;
    const { backlog, hasScreen } = this.core.relay;
    if (offset !== null && offset >= backlog.start) output.beginAt(offset);
    else if (hasScreen) output.beginWithPicture();
    else output.beginAt(backlog.start);
    // While the end is being stored, it is not announced yet.
    if (ending.isStored) output.finish();
    socket.listen((frame, data) => frames.take(client, frame, data));
  }

  private announce(text: string, except: AttachedClient | null): void {
    const { input, participants } = this.core;
    participants.announce(text, input.taken, except);
  }

  /** Updates the lifecycle and the agent's credit after a change of participants. */
  private update(): void {
    const { lifecycle, pace, participants } = this.core;
    const { state } = lifecycle;
    const attached = participants.count > 0;
    if (state.phase === 'active' && state.attached !== attached) {
      lifecycle.take({ type: attached ? 'attached' : 'detached' });
    }
    if (lifecycle.hasEnded) this.options.ending.finishWhenDelivered();
    else pace();
  }
}

const leave = (socket: TerminalSocket): void => socket.close(TERMINAL_CLOSE.unknown, 'the session is over');
