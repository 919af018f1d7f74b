/**
 * Server of `control.sock`: requests that only the owner of the data directory may make of the running orchestrator.
 */
import { chmodSync, rmSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { isFault, messageOf } from '../src/kernel/fault.js';
import type { PublicKeyHex } from '../src/kernel/ids.js';
import type { Service } from '../src/kernel/service.js';
import { validator } from '../src/kernel/validator.js';
import { Backups, type Deliver } from './backup/backups.js';
import { sealInThread } from './backup/seal-copy.js';
import {
  CONTROL_SOCKET,
  CONTROL_VERBS,
  type ControlAnswer,
  type ControlRequest,
  type ControlRequestOf,
  ControlRequestSchema,
  type ControlVerb,
  MAX_LINE,
} from './control-protocol.js';
import type { ClockWatch } from './core/clock-watch.js';
import type { Core } from './core/core.js';
import type { OpenDatabase } from './database/database.js';
import type { Secrets } from './secrets/secrets.js';
import { sendCopy } from './streamed-backup.js';

/** Handler of each verb; its result is returned as JSON. */
type ControlVerbs = {
  readonly [V in ControlVerb]: (request: ControlRequestOf<V>) => Promise<Readonly<Record<string, unknown>>>;
};

interface ControlServerOptions extends Pick<Core, 'logger'> {
  readonly path: string;
  readonly verbs: ControlVerbs;
  /** Makes a backup and has `deliver` store it; returns the report. */
  readonly streamBackup?: (file: string, deliver: Deliver) => Promise<Readonly<Record<string, unknown>>>;
}

/** Creates the control server of the data directory, with all its verbs. */
export function createControlServer(
  core: Core,
  parts: {
    readonly store: OpenDatabase;
    readonly publicKey: PublicKeyHex;
    readonly secrets: Secrets;
    readonly clockWatch: ClockWatch;
  },
): ControlServer {
  const { store, publicKey, secrets, clockWatch } = parts;
  const dataDir = core.settings().data_dir;
  const backups = new Backups({ ...core, dataDir, store, publicKey, seal: sealInThread });
  return new ControlServer({
    path: join(dataDir, CONTROL_SOCKET),
    logger: core.logger,
    streamBackup: async (file, deliver) => ({ ...(await backups.deliver(file, deliver)) }),
    verbs: {
      'rotate-secrets-key': async () => ({ ...(await secrets.rotation.rotate()) }),
      backup: async (target) => ({ ...(await backups.make(target)) }),
      clock: async ({ accept }) => ({ ...(accept ? await clockWatch.accept() : clockWatch.report()) }),
    },
  });
}

/** Milliseconds in which a connection must send its request. */
const PATIENCE = 10_000;

const request = validator(ControlRequestSchema);

export class ControlServer implements Service {
  readonly name = 'control socket';
  private readonly options: ControlServerOptions;
  private readonly sockets = new Set<Socket>();
  private server: Server | null = null;

  constructor(options: ControlServerOptions) {
    this.options = options;
  }

  /**
   * Listens on the socket. The orchestrator runs without it where it cannot be created, for example when the path is
   * too long.
   */
  async start(): Promise<void> {
    const { path, logger } = this.options;
    // A stale socket of a crashed process. The lock of the data directory excludes another running orchestrator.
    rmSync(path, { force: true });
    const server = createServer((socket) => this.accept(socket));
    try {
      await listen(server, path);
      chmodSync(path, 0o600);
      this.server = server;
    } catch (error) {
      server.close();
      logger.warn('the control socket cannot be made', { path, reason: messageOf(error) });
    }
  }

  async stop(): Promise<void> {
    const { server } = this;
    if (server === null) return;
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    for (const socket of this.sockets) socket.destroy();
    await closed;
  }

  private accept(socket: Socket): void {
    this.sockets.add(socket);
    let text = '';
    socket.setTimeout(PATIENCE, () => socket.destroy());
    socket.on('error', () => socket.destroy());
    socket.on('close', () => this.sockets.delete(socket));
    socket.on('data', (chunk: Buffer) => {
      // A request is a single line, and the next one comes after an answer to it.
      text += chunk.toString();
      const end = text.indexOf('\n');
      if (end < 0 && text.length <= MAX_LINE) return;
      socket.removeAllListeners('data');
      socket.setTimeout(0);
      socket.pause();
      void this.answer(socket, end < 0 ? '' : text.slice(0, end)).then((answer) =>
        socket.end(`${JSON.stringify(answer)}\n`),
      );
    });
  }

  private async answer(socket: Socket, line: string): Promise<ControlAnswer> {
    const asked = parse(line);
    if (!request.check(asked)) {
      const message = `this orchestrator does not understand the request; it knows ${CONTROL_VERBS.join(', ')}`;
      return { ok: false, error: { code: 'bad_request', message, hint: 'use the orch of the same version' } };
    }
    try {
      return { ok: true, result: { ...(await this.perform(socket, asked)) } };
    } catch (error) {
      this.options.logger.error('a control request failed', { verb: asked.verb, reason: messageOf(error) });
      const { code, message, hint } = isFault(error)
        ? error
        : { code: 'internal', message: 'the orchestrator failed; see its log', hint: undefined };
      return { ok: false, error: { code, message, hint: hint ?? null } };
    }
  }

  private perform(socket: Socket, asked: ControlRequest): Promise<Readonly<Record<string, unknown>>> {
    const { verbs, streamBackup } = this.options;
    switch (asked.verb) {
      case 'backup':
        if (asked.stream !== true || streamBackup === undefined) return verbs.backup(asked);
        return streamBackup(asked.file, (copy, sealed) => sendCopy(socket, copy, sealed));
      case 'clock':
        return verbs.clock(asked);
      case 'rotate-secrets-key':
        return verbs['rotate-secrets-key'](asked);
    }
  }
}

function listen(server: Server, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(path, () => {
      server.off('error', reject);
      resolve();
    });
  });
}

function parse(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return null;
  }
}
