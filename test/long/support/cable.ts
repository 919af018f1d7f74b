/** Carries TCP connections to a port of this machine, and can cut them or let them fall silent without a word to either end. */
import { connect, createServer, type Server, type Socket } from 'node:net';

interface Pair {
  readonly near: Socket;
  readonly far: Socket;
  isSilent: boolean;
}

export class Cable {
  readonly port: number;
  /** How many connections there were. */
  connections = 0;
  private readonly server: Server;
  private readonly pairs = new Set<Pair>();

  private constructor(server: Server, port: number) {
    this.server = server;
    this.port = port;
  }

  static async open(target: number): Promise<Cable> {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const address = server.address();
    if (address === null || typeof address === 'string') throw new Error('the cable has no port');
    const cable = new Cable(server, address.port);
    server.on('connection', (near) => cable.join(near, target));
    return cable;
  }

  /** From now on nothing goes through the connections that there are, and neither end learns of the other's. New ones work. */
  silence(): void {
    for (const pair of this.pairs) {
      pair.isSilent = true;
      pair.near.unpipe(pair.far).pause();
      pair.far.unpipe(pair.near).pause();
    }
  }

  cut(): void {
    for (const { near, far } of this.pairs) {
      near.destroy();
      far.destroy();
    }
    this.pairs.clear();
  }

  close(): void {
    this.cut();
    this.server.close();
  }

  private join(near: Socket, target: number): void {
    this.connections += 1;
    const far = connect(target, '127.0.0.1');
    const pair: Pair = { near, far, isSilent: false };
    this.pairs.add(pair);
    for (const end of [near, far]) {
      end.setNoDelay(true);
      end.on('error', () => undefined);
      end.on('close', () => {
        if (pair.isSilent) return;
        this.pairs.delete(pair);
        near.destroy();
        far.destroy();
      });
    }
    near.pipe(far);
    far.pipe(near);
  }
}
