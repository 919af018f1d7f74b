/**
 * A backup over the control socket. The orchestrator answers the request with size and hash of the copy and then its
 * bytes. The command confirms that it has stored them, and gets the report once the audit log has the backup.
 */
import { once } from 'node:events';
import { createReadStream } from 'node:fs';
import type { Socket } from 'node:net';
import * as Type from 'typebox';
import { Fault } from '../src/kernel/fault.js';
import { closed } from '../src/kernel/schema.js';
import { validator } from '../src/kernel/validator.js';
import { askedSocket, resultOf } from './ask-orchestrator.js';
import { type BackupReport, BackupReportSchema } from './backup/backup-target.js';
import type { CallerFile, CopyFacts } from './backup/caller-file.js';
import { MAX_LINE } from './control-protocol.js';

const STORED = 'stored';
/** Milliseconds without progress after which a command counts as gone. */
const STALLED = 60_000;

const copyFacts = validator(closed({ bytes: Type.Integer({ minimum: 0 }), sha256: Type.String() }));
const reports = validator(BackupReportSchema);

/** Sends a copy to the command at the other end. Resolves when the command has stored it; rejects when it goes away. */
export async function sendCopy(socket: Socket, copy: string, { bytes, sha256 }: CopyFacts): Promise<void> {
  socket.setTimeout(STALLED, () => socket.destroy());
  socket.write(`${JSON.stringify({ ok: true, result: { bytes, sha256 } })}\n`);
  for await (const part of createReadStream(copy)) {
    if (!socket.writable) throw gone();
    if (!socket.write(part)) await drained(socket);
  }
  const said = await new SocketReader(socket).line();
  if (said !== STORED) throw gone();
  socket.setTimeout(0);
}

/** Resolves once the socket takes more, is closed or broken. */
async function drained(socket: Socket): Promise<void> {
  const wait = new AbortController();
  const { signal } = wait;
  await Promise.race([once(socket, 'drain', { signal }), once(socket, 'close', { signal })]).catch(() => undefined);
  // The listeners of the event that did not come would stay, and pile up.
  wait.abort();
}

const gone = (): Fault =>
  new Fault('cancelled', 'the command that asked for the backup is gone', { hint: 'run orch serve backup again' });

/**
 * Asks the running orchestrator for a backup, and writes it into the file, which gets its name at the end.
 * Throws as `askOrchestrator` and `CallerFile` do.
 */
export async function receiveBackup(dataDir: string, name: string, file: CallerFile): Promise<BackupReport> {
  const socket = await askedSocket(dataDir, { verb: 'backup', file: name, force: true, stream: true });
  try {
    const reader = new SocketReader(socket);
    const facts = resultOf(dataDir, await reader.line());
    if (!copyFacts.check(facts)) throw useless(dataDir);
    await file.take(reader.bytes(facts.bytes), facts);
    socket.write(`${STORED}\n`);
    const report = resultOf(dataDir, await reader.line());
    if (!reports.check(report)) throw useless(dataDir);
    file.putInPlace();
    return report;
  } finally {
    socket.destroy();
  }
}

const useless = (dataDir: string): Fault =>
  new Fault('protocol_violation', `the orchestrator on ${dataDir} answered nothing useful`);

/** Reads lines and counted bytes from a socket, one after the other. */
class SocketReader {
  private readonly parts: AsyncIterator<Buffer>;
  private rest: Buffer = Buffer.alloc(0);

  constructor(socket: Socket) {
    this.parts = socket.iterator({ destroyOnReturn: false });
  }

  /** Returns the next line without its end; the text so far at the end of the stream. */
  async line(): Promise<string> {
    for (;;) {
      const end = this.rest.indexOf(0x0a);
      if (end >= 0) {
        const line = this.rest.toString('utf8', 0, end);
        this.rest = this.rest.subarray(end + 1);
        return line;
      }
      const part = this.rest.length > MAX_LINE ? null : await this.next();
      if (part === null) return this.rest.toString();
      this.rest = Buffer.concat([this.rest, part]);
    }
  }

  /** Yields so many bytes; fewer when the stream ends before. */
  async *bytes(count: number): AsyncGenerator<Buffer> {
    for (let left = count; left > 0; ) {
      const part = this.rest.length > 0 ? this.rest : await this.next();
      if (part === null) return;
      this.rest = part.subarray(left);
      const taken = part.subarray(0, left);
      left -= taken.length;
      yield taken;
    }
  }

  private async next(): Promise<Buffer | null> {
    try {
      const { value, done } = await this.parts.next();
      return done === true ? null : value;
    } catch {
      // A broken connection is the end of the stream.
      return null;
    }
  }
}
