/** A backup that is sent to the command that asked for it, over a real socket. */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { expect, it, onTestFinished } from 'vitest';
import { sendCopy } from '../../daemon/streamed-backup.js';
import { temporaryDirectory } from '../support/database.js';
import { withoutRuntimeWarnings } from '../support/runtime-warnings.js';

/** More than the socket takes at once, many times over. */
const BYTES = 8_000_000;

async function sockets(): Promise<{ readonly here: Socket; readonly there: Socket }> {
  const server = createServer();
  onTestFinished(() => void server.close());
  const path = join(temporaryDirectory(), 'socket');
  await new Promise<void>((resolve) => server.listen(path, resolve));
  const accepted = once(server, 'connection');
  const there = connect(path);
  const [here] = await accepted;
  onTestFinished(() => {
    here.destroy();
    there.destroy();
  });
  return { here, there };
}

function aCopy(): { readonly copy: string; readonly content: Buffer } {
  const copy = join(temporaryDirectory(), 'copy');
  const content = randomBytes(BYTES);
  writeFileSync(copy, content);
  return { copy, content };
}

it('arrives whole in many parts, and keeps no listener of each', async () => {
  const { here, there } = await sockets();
  const { copy, content } = aCopy();
  const facts = { bytes: BYTES, sha256: 'a hash' };
  const head = `${JSON.stringify({ ok: true, result: facts })}\n`;
  await withoutRuntimeWarnings(async () => {
    const sent = sendCopy(here, copy, facts);
    const parts: Buffer[] = [];
    // Nothing is read before the socket is full.
    while (parts.reduce((size, part) => size + part.length, 0) < head.length + BYTES) {
      const isFull = here.writableNeedDrain || here.bytesWritten === head.length + BYTES;
      const part = isFull ? there.read() : null;
      if (part !== null) parts.push(part);
      await setImmediate();
    }
    there.write('stored\n');
    await sent;
    expect(Buffer.concat(parts).equals(Buffer.concat([Buffer.from(head), content]))).toBe(true);
  });
  expect(here.listenerCount('drain')).toBe(0);
});

it('ends with a fault when the command goes away before it has all', async () => {
  const { here, there } = await sockets();
  here.on('error', () => undefined);
  const sent = sendCopy(here, aCopy().copy, { bytes: BYTES, sha256: 'a hash' });
  await once(there, 'readable');
  there.destroy();
  await expect(sent).rejects.toMatchObject({ code: 'cancelled' });
});
