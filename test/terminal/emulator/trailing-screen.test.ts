/** Screens that fall behind their output and read it back from a real recording, beside ones that were shown all of it. */
import { randomBytes } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { expect, it, onTestFinished } from 'vitest';
import type { Screen } from '../../../daemon/terminal/emulator/screens.js';
import type { Recorder } from '../../../daemon/terminal/recordings/recorder.js';
import { TrailingScreen } from '../../../daemon/terminal/session/trailing-screen.js';
import { silentLogger } from '../../../src/kernel/logger.js';
import { newEvents, newHead, openRecordings, until } from '../../support/recordings.js';

const built = pathToFileURL(
  fileURLToPath(new URL('../../../dist/daemon/terminal/emulator/screens.js', import.meta.url)),
).href;

async function open(maxBytes = 2 ** 28) {
  const { createScreens } = (await import(built)) as typeof import('../../../daemon/terminal/emulator/screens.js');
  const screens = createScreens({ logger: silentLogger });
  onTestFinished(() => screens.stop());
  const { recordings } = openRecordings({ maxBytes });
  const recorder = await recordings.create(newHead(), newEvents());
  const options = { cols: 80, rows: 24, offset: 0, onParsed: () => undefined };
  const whole = screens.open(options);
  const trailing = new TrailingScreen({ screen: screens.open(options), recorder, offset: 0 });
  return { whole, trailing, recorder };
}

/** Colours, wide and combining characters, bytes that are no text, characters torn by the pieces. */
function* flood(bytes: number): Generator<Buffer> {
  const text = Buffer.from(`\x1b[3${bytes % 8}mzażółć 漢字 e\u0301 👩‍👩‍👧 \ufffd${'flood '.repeat(9)}\r\n`.repeat(90));
  for (let sent = 0; sent < bytes; sent += 8_000) {
    const noise = Buffer.from(randomBytes(24).map((byte) => (byte < 0x20 || byte === 0x9b ? 0xff : byte)));
    yield text.subarray(sent % 7, 7_900 + (sent % 101));
    yield Buffer.concat([noise, Buffer.from(`\r\n\x1b[${sent % 24};${sent % 80}H`)]);
  }
}

/** As the relay does it: the recording first. */
const show = ({ whole, trailing, recorder }: Shown, bytes: Buffer): void => {
  recorder.write('out', bytes);
  trailing.write(bytes);
  whole.write(bytes);
};

const resize = ({ whole, trailing, recorder }: Shown, cols: number, rows: number): void => {
  trailing.resize(cols, rows);
  whole.resize(cols, rows);
  recorder.resize(cols, rows);
};

interface Shown {
  readonly whole: Screen;
  readonly trailing: TrailingScreen;
  readonly recorder: Recorder;
}

async function expectEqualPictures({ whole, trailing }: Shown): Promise<void> {
  const [picture, other] = await Promise.all([trailing.picture(), whole.picture()]);
  expect(picture.head).toEqual(other.head);
  expect(picture.bytes.equals(other.bytes)).toBe(true);
}

it('shows the same as one that was shown all of it, sizes included', async () => {
  const shown = await open();
  let count = 0;
  for (const bytes of flood(6_000_000)) {
    show(shown, bytes);
    count += 1;
    if (count % 400 === 0) resize(shown, 60 + (count % 41), 20 + (count % 13));
    if (count % 200 === 0) await wait(1);
  }
  await expectEqualPictures(shown);
  show(shown, Buffer.from('\x1b[2J\x1b[Hafter'));
  await expectEqualPictures(shown);
});

it('does not hold a flood back, except while a client waits for the picture', async () => {
  const shown = await open();
  let written = 0;
  for (const bytes of flood(4_000_000)) {
    show(shown, bytes);
    written += bytes.length;
  }
  expect(shown.trailing.parsed).toBe(written);
  const picture = shown.trailing.picture();
  expect(shown.trailing.parsed).toBeLessThan(written);
  expect((await picture).head.offset).toBe(written);
});

it('catches up by itself when less comes', async () => {
  const { trailing, ...rest } = await open();
  for (const bytes of flood(3_000_000)) show({ trailing, ...rest }, bytes);
  await until('it has caught up', () => Reflect.get(trailing, 'recorded') === null);
  await expectEqualPictures({ trailing, ...rest });
});

it('misses nothing when the recording comes to its limit meanwhile', async () => {
  const shown = await open(3_000_000);
  for (const bytes of flood(5_000_000)) show(shown, bytes);
  await until('its recording has ended', () => !shown.recorder.isRecording);
  await expectEqualPictures(shown);
});

it('shows the rest when the session ends and its recording is closed', async () => {
  const shown = await open();
  for (const bytes of flood(3_000_000)) show(shown, bytes);
  await shown.recorder.close(0);
  await expectEqualPictures(shown);
});
