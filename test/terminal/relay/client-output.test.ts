/** The output for an operator when a picture of the screen is due. */

import { describe, expect, it } from 'vitest';
import type { Picture, Screen } from '../../../daemon/terminal/emulator/screens.js';
import { ClientOutput } from '../../../daemon/terminal/session/client-side.js';
import { OutputRelay } from '../../../daemon/terminal/session/output-relay.js';
import { Backlog } from '../../../src/terminal/backlog.js';
import { type Frame, readFrame } from '../../../src/terminal/frames.js';
import { TERMINAL_LIMITS } from '../../../src/terminal/limits.js';
import { outputFrame } from '../../support/terminal-server.js';

/** One whose pictures end there, and come later. */
const slowScreen = (head: Picture['head']): Screen => ({
  parsed: 0,
  write: () => undefined,
  resize: () => undefined,
  picture: async () => ({ head, bytes: Buffer.from('the screen') }),
  close: () => undefined,
});

/** Frames that a client is sent whose picture has so many bytes, or cannot be had. */
async function sentWith(picture: Buffer | null): Promise<readonly Frame[]> {
  const backlog = new Backlog();
  backlog.append(Buffer.from('before'), 'out');
  const sent: Frame[] = [];
  const head = { cols: 80, rows: 24, offset: 6 };
  const output = new ClientOutput({
    backlog,
    send: (...parts) => sent.push(readFrame(Buffer.concat(parts))),
    picture: () =>
      picture === null ? Promise.reject(new Error('no emulator')) : Promise.resolve({ head, bytes: picture }),
    isSkippable: () => true,
    onFinished: () => undefined,
  });
  output.beginWithPicture();
  await new Promise(setImmediate);
  backlog.append(Buffer.from('after'), 'out');
  output.catchUp();
  return sent;
}

describe('a picture', () => {
  it('is sent, and the output goes on behind it', async () => {
    expect(await sentWith(Buffer.from('the screen'))).toMatchObject([
      { type: 'snapshot', bytes: Buffer.from('the screen') },
      { type: 'output', offset: 6, bytes: Buffer.from('after') },
    ]);
  });

  it.each([
    ['is larger than clients take', Buffer.alloc(TERMINAL_LIMITS.pictureFrame)],
    ['cannot be had', null],
  ])('that %s is left out, and the output goes on', async (_, picture) => {
    expect(await sentWith(picture)).toMatchObject([{ type: 'output', offset: 6, bytes: Buffer.from('after') }]);
  });

  it('that cannot be had leaves no gap: an empty one tells how much is left out', async () => {
    const backlog = new Backlog();
    const sent: Frame[] = [];
    const output = new ClientOutput({
      backlog,
      send: (...parts) => sent.push(readFrame(Buffer.concat(parts))),
      picture: () => null,
      isSkippable: () => true,
      onFinished: () => undefined,
    });
    output.beginAt(0);
    backlog.append(Buffer.alloc(2 * TERMINAL_LIMITS.viewerLag), 'out');
    output.catchUp();
    backlog.dropBefore(backlog.end - 4);
    const { length } = sent;
    const last = sent.at(-1);
    const taken = last?.type === 'output' ? last.offset + last.bytes.length : 0;
    output.acked(taken, taken);
    expect(sent.slice(length)).toMatchObject([
      { type: 'snapshot', head: { offset: backlog.end - 4 }, bytes: Buffer.alloc(0) },
      { type: 'output', offset: backlog.end - 4, bytes: Buffer.alloc(4) },
    ]);
  });

  it('that ends before the beginning of a character leaves no gap, however much comes before it is drawn', async () => {
    const relay = new OutputRelay({
      ...{ size: { cols: 80, rows: 24 }, start: 0, tail: [], recorder: null, isLossless: false },
      screen: slowScreen({ cols: 80, rows: 24, offset: 4 }),
    });
    const write = (bytes: Buffer) => {
      const offset = relay.received;
      relay.take({ type: 'output', stream: 'out', offset, bytes }, outputFrame('out', offset, bytes), 0);
    };
    const sent: Frame[] = [];
    const client = relay.add({
      send: (...parts) => sent.push(readFrame(Buffer.concat(parts))),
      isSkippable: () => true,
      onFinished: () => undefined,
    });
    write(Buffer.from('text€').subarray(0, 6));
    client.beginWithPicture();
    write(Buffer.from('€').subarray(2));
    for (let left = TERMINAL_LIMITS.floodBacklog; left > 0; left -= 64 * 1024) write(Buffer.alloc(64 * 1024, 'x'));
    await new Promise(setImmediate);
    expect(sent[0]).toMatchObject({ type: 'snapshot', head: { offset: 4 } });
    expect(sent[1]).toMatchObject({ type: 'output', offset: 4 });
    expect((sent[1] as Extract<Frame, { type: 'output' }>).bytes.toString()).toMatch(/^€x+$/);
  });
});

describe('output without a client', () => {
  it('is kept until a client has attached, and up to a limit from then on', () => {
    const relay = new OutputRelay({
      ...{ size: { cols: 80, rows: 24 }, start: 0, tail: [], recorder: null, isLossless: false, screen: null },
    });
    const flood = () => {
      for (let left = 2 * TERMINAL_LIMITS.floodBacklog; left > 0; left -= 64 * 1024) {
        const [offset, bytes] = [relay.received, Buffer.alloc(64 * 1024, 'x')];
        relay.take({ type: 'output', stream: 'out', offset, bytes }, outputFrame('out', offset, bytes), 0);
      }
    };
    flood();
    expect(relay.backlog.start).toBe(0);
    relay.remove(relay.add({ send: () => true, isSkippable: () => true, onFinished: () => undefined }));
    flood();
    expect(relay.received - relay.backlog.start).toBe(TERMINAL_LIMITS.floodBacklog);
    relay.shrinkWhenQuiet(60_000, 1_000);
    expect(relay.received - relay.backlog.start).toBe(TERMINAL_LIMITS.idleBacklog);
  });
});
