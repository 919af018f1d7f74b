/** A way over TCP to PostgreSQL that can lose what passes it: the request of a commit, its answer, or everything. */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';

/** The loss: the next commit before the server gets it, or the server's answer to it. */
export type Loss = 'request' | 'answer';

/** A commit as the library sends it: a simple query, or a statement that is parsed first. */
const COMMIT = /\0commit\0|Q\0\0\0\x0bcommit\0/;

/** A statement as the library sends it: prepared before or now, or a simple query. */
const STATEMENT = /^[PBQ]/;

export class CuttingWay {
  private readonly server: Server;
  private readonly sockets = new Set<Socket>();
  private loss: Loss | null = null;
  /** The statement to lose; null once it is lost. */
  private statement: { left: number; readonly loss: Loss } | null = null;
  private isSilent = false;
  /** True while no answer passes. */
  private isDeaf = false;
  /** True while new connections are refused. */
  closed = false;

  private constructor(target: number) {
    this.server = createServer((near) => {
      if (this.closed) near.destroy();
      else this.join(near, connect(target, '127.0.0.1'));
    });
  }

  static async to(target: number): Promise<CuttingWay> {
    const way = new CuttingWay(target);
    way.server.listen(0, '127.0.0.1');
    await once(way.server, 'listening');
    return way;
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  /** Loses the next commit, and the connection with it. */
  loseCommit(loss: Loss): void {
    this.loss = loss;
  }

  /** Loses a later statement, and all connections with it. @param number 1 for the next one */
  loseStatement(number: number, loss: Loss): void {
    this.statement = { left: number, loss };
  }

  /** Loses no statement. Returns true if one was lost since `loseStatement`. */
  keepStatements(): boolean {
    const isLost = this.statement === null;
    this.statement = null;
    return isLost;
  }

  /** Cuts all connections. */
  cut(): void {
    for (const socket of this.sockets) socket.destroy();
  }

  /** Lets nothing through in either direction until `false`, without closing anything. */
  set silent(isSilent: boolean) {
    this.isSilent = isSilent;
    for (const socket of this.sockets) {
      if (isSilent) socket.pause();
      else socket.resume();
    }
  }

  async close(): Promise<void> {
    this.cut();
    this.server.close();
    await once(this.server, 'close');
  }

  /** Returns what becomes of these bytes when the statement to lose is in them, else null. */
  private lossOf(bytes: Buffer): Loss | null {
    const { statement } = this;
    if (statement === null || !STATEMENT.test(bytes.toString('latin1'))) return null;
    statement.left -= 1;
    if (statement.left > 0) return null;
    this.statement = null;
    return statement.loss;
  }

  private lose(far: Socket, bytes: Buffer, loss: Loss): void {
    if (loss === 'request') {
      this.cut();
      return;
    }
    this.isDeaf = true;
    far.write(bytes);
    far.once('data', () => {
      this.isDeaf = false;
      this.cut();
    });
  }

  private join(near: Socket, far: Socket): void {
    let answers = true;
    near.on('data', (bytes) => {
      const loss = this.lossOf(bytes) ?? this.loss;
      if (loss !== null && this.loss === null) return void this.lose(far, bytes, loss);
      if (loss === null || !COMMIT.test(bytes.toString('latin1'))) return void far.write(bytes);
      this.loss = null;
      if (loss === 'request') return void near.destroy();
      answers = false;
      far.write(bytes);
      // The server commits and answers; the answer is lost.
      far.once('data', () => near.destroy());
    });
    far.on('data', (bytes) => {
      if (answers && !this.isDeaf) near.write(bytes);
    });
    for (const [socket, other] of [
      [near, far],
      [far, near],
    ] as const) {
      this.sockets.add(socket);
      socket.setNoDelay(true);
      if (this.isSilent) socket.pause();
      socket.on('error', () => other.destroy());
      socket.on('close', () => {
        this.sockets.delete(socket);
        other.destroy();
      });
    }
  }
}
