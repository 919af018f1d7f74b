/** What an operator is sent when a picture of the screen is due. */
import { describe, expect, it } from 'vitest';
import { ClientOutput } from '../../../daemon/terminal/session/client-output.js';
import { Backlog } from '../../../src/terminal/backlog.js';
import { type Frame, readFrame } from '../../../src/terminal/frames.js';
import { TERMINAL_LIMITS } from '../../../src/terminal/limits.js';

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
});
