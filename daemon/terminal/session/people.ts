/** The operators who are attached to a session, who of them holds the pen, and what they are told. */
import { jsonFrame } from '../../../src/terminal/frames.js';
import type { ServerNote } from '../../../src/terminal/notes.js';
import type { TerminalSocket } from '../terminal-socket.js';
import type { ClientEnd } from './client-end.js';

/** Most characters of a text that is told. */
const LONGEST = 256;

export class People {
  private readonly clients = new Set<ClientEnd>();
  private pen: ClientEnd | null = null;

  /** A copy: telling people may lose some. */
  get all(): readonly ClientEnd[] {
    return [...this.clients];
  }

  get count(): number {
    return this.clients.size;
  }

  /** Who types, resizes and paces the output; null when nobody does. */
  get writer(): ClientEnd | null {
    return this.pen;
  }

  get names(): { readonly writer: string | null; readonly viewers: string[] } {
    const viewers = this.all.filter((client) => client !== this.pen);
    return {
      writer: this.pen?.operator.username ?? null,
      viewers: viewers.map(({ operator }) => operator.username),
    };
  }

  find(socket: TerminalSocket): ClientEnd | undefined {
    return this.all.find((client) => client.socket === socket);
  }

  /** One whose mode is to write takes the pen from whoever holds it. */
  add(client: ClientEnd): void {
    this.clients.add(client);
    if (client.mode === 'write') this.givePen(client);
  }

  /** Makes an attached client the writer; the writer before it becomes a viewer. */
  givePen(client: ClientEnd): void {
    if (this.pen !== null) this.pen.mode = 'read';
    client.mode = 'write';
    this.pen = client;
  }

  remove(client: ClientEnd): void {
    this.clients.delete(client);
    if (this.pen === client) this.pen = null;
  }

  tell(said: ServerNote): void {
    for (const { socket } of this.clients) socket.send(noteFrame(said));
  }

  /** Tells everybody but one who is here now. @param taken see the note `people` */
  announce(text: string, taken: number, except: ClientEnd | null): void {
    const { names } = this;
    for (const { socket, mode } of this.all.filter((client) => client !== except)) {
      socket.send(noteFrame({ kind: 'people', mode, taken, ...names, text: text.slice(0, LONGEST) }));
    }
  }

  /** Closes the sockets of those that the predicate names. */
  close(code: number, reason: string, isMeant: (client: ClientEnd) => boolean = () => true): void {
    for (const client of this.all) if (isMeant(client)) client.socket.close(code, reason);
  }
}

export const noteFrame = (said: ServerNote): Buffer => jsonFrame('note', said);
