/** A way over TCP that takes its time, and can be held up: stands in front of a server on the loopback. */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';

export class SlowWay {
  /** Milliseconds each way. */
  delay: number;
  private readonly server: Server;
  private readonly sockets = new Set<Socket>();
  private held: (() => void)[] | null = null;

  private constructor(target: number, delay: number) {
    this.delay = delay;
    this.server = createServer((near) => {
      const far = connect(target, '127.0.0.1');
      this.join(near, far);
      this.join(far, near);
    });
  }

  static async to(target: number, delay: number): Promise<SlowWay> {
    const way = new SlowWay(target, delay);
    way.server.listen(0, '127.0.0.1');
    await once(way.server, 'listening');
    return way;
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  /** Nothing arrives until `release`. */
  hold(): void {
    this.held ??= [];
  }

  release(): void {
    const { held } = this;
    this.held = null;
    for (const work of held ?? []) work();
  }

  async close(): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    this.server.close();
    await once(this.server, 'close');
  }

  private join(from: Socket, to: Socket): void {
    this.sockets.add(from);
    from.setNoDelay(true);
    from.on('data', (bytes) => this.later(() => to.write(bytes)));
    from.on('end', () => this.later(() => to.end()));
    from.on('error', () => to.destroy());
    from.on('close', () => {
      this.sockets.delete(from);
      this.later(() => to.destroy());
    });
  }

  private later(work: () => void): void {
    const arrive = () => {
      if (this.held === null) work();
      else this.held.push(work);
    };
    setTimeout(arrive, this.delay);
  }
}
