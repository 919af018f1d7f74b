/** Screens in their thread, as it is built. */
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { Worker } from 'node:worker_threads';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { CreateScreensOptions, Picture, Screen } from '../../../daemon/terminal/emulator/screens.js';
import { silentLogger } from '../../../src/kernel/logger.js';
import { SecondTerminal } from './second-terminal.js';

const dist = fileURLToPath(new URL('../../../dist/daemon/terminal/emulator/', import.meta.url));

const MOST = { timeout: 20_000, interval: 10 };

/** The thread runs what is built, so its other side does too. */
async function start(options: Partial<CreateScreensOptions> = {}) {
  const url = pathToFileURL(`${dist}screens.js`).href;
  const { createScreens } = (await import(url)) as typeof import('../../../daemon/terminal/emulator/screens.js');
  const errors: string[] = [];
  const logger = { ...silentLogger, error: (message: string) => void errors.push(message) };
  const screens = createScreens({ logger, ...options });
  onTestFinished(() => screens.stop());
  const open = (offset = 0, cols = 80, rows = 24) => {
    const parsed: number[] = [];
    const screen = screens.open({ cols, rows, offset, onParsed: (to) => parsed.push(to) });
    return { screen, parsed };
  };
  return { screens, errors, open };
}

const textOf = (picture: Picture): string => {
  const { cols, rows } = picture.head;
  const shown = new SecondTerminal(cols, rows).write(picture.bytes).looks().rows.at(-1) ?? [];
  return shown.join('\n').trimEnd();
};

function workerOf(screens: object): Worker {
  const thread: unknown = Reflect.get(screens, 'thread');
  const worker: unknown = typeof thread === 'object' && thread !== null ? Reflect.get(thread, 'worker') : null;
  if (!(worker instanceof Worker)) throw new Error('there is no thread');
  return worker;
}

const hasThread = (screens: object): boolean => Reflect.get(screens, 'thread') !== null;

const flood = (screen: Screen, bytes: number): void => {
  const line = Buffer.from(`\x1b[3${bytes % 8}m${'flood '.repeat(10)}\r\n`.repeat(900));
  for (let sent = 0; sent < bytes; sent += line.length) screen.write(line);
};

describe('screens', () => {
  it('draw what was written before they were asked, under the offset of then', async () => {
    const { open } = await start();
    const { screen, parsed } = open(1_000);
    screen.write(Buffer.from('one\r\n'));
    const first = screen.picture();
    screen.write(Buffer.from('two\r\n'));
    screen.resize(40, 10);
    const second = screen.picture();
    screen.write(Buffer.from('three'));
    const third = screen.picture();
    expect((await first).head).toEqual({ cols: 80, rows: 24, offset: 1_005 });
    expect(textOf(await first)).toBe('one');
    expect((await second).head).toEqual({ cols: 40, rows: 10, offset: 1_010 });
    expect(textOf(await second)).toBe('one\ntwo');
    expect((await third).head.offset).toBe(1_015);
    expect(textOf(await third)).toBe('one\ntwo\nthree');
    expect(screen.parsed).toBe(1_015);
    expect(parsed.at(-1)).toBe(1_015);
  });

  it('leave the buffers alone that they are given', async () => {
    const { open } = await start();
    const { screen } = open();
    const bytes = Buffer.from('kept by another caller');
    screen.write(bytes);
    await screen.picture();
    expect(bytes.toString()).toBe('kept by another caller');
  });

  it('tell how far they have come without being asked, in few words', async () => {
    const { open } = await start();
    const { screen, parsed } = open();
    for (let at = 0; at < 10_000; at += 1) screen.write(Buffer.from('0123456789'));
    await vi.waitFor(() => expect(screen.parsed).toBe(100_000), MOST);
    expect(parsed.length).toBeLessThan(100);
    expect(parsed).toEqual([...parsed].sort((one, other) => one - other));
  });

  it('keep a size within what terminals may have', async () => {
    const { open } = await start();
    const { screen } = open(0, 65_535, 0);
    expect((await screen.picture()).head).toMatchObject({ cols: 1_000, rows: 1 });
    screen.resize(0, 65_535);
    expect((await screen.picture()).head).toMatchObject({ cols: 1, rows: 1_000 });
  });

  it('are drawn while another one is flooded', async () => {
    const { open } = await start();
    const { screen: flooded } = open();
    const { screen: quiet } = open();
    flood(flooded, 16 * 1024 * 1024);
    quiet.write(Buffer.from('still quick'));
    expect(textOf(await quiet.picture())).toBe('still quick');
    expect(flooded.parsed).toBeLessThan(8 * 1024 * 1024);
    await flooded.picture();
    expect(flooded.parsed).toBeGreaterThanOrEqual(16 * 1024 * 1024);
  });

  it('refuse a picture once they are closed, and forget the questions', async () => {
    const { open } = await start();
    const { screen } = open();
    const asked = screen.picture();
    screen.close();
    await expect(asked).rejects.toMatchObject({ code: 'internal' });
    await expect(screen.picture()).rejects.toMatchObject({ code: 'internal' });
    screen.write(Buffer.from('late'));
    screen.resize(10, 10);
    screen.close();
  });
});

describe('a thread that breaks down', () => {
  it('holds no session up, refuses pictures, and is replaced for new screens', async () => {
    const { screens, open } = await start();
    const { screen, parsed } = open(500);
    const { screen: other, parsed: othersParsed } = open();
    await screen.picture();
    flood(screen, 1024 * 1024);
    const asked = screen.picture();
    const refused = expect(asked).rejects.toMatchObject({ code: 'internal' });
    await workerOf(screens).terminate();
    await refused;
    await vi.waitFor(() => expect(screen.parsed).toBeGreaterThanOrEqual(500 + 1024 * 1024), MOST);
    const before = screen.parsed;
    screen.write(Buffer.from('goes on'));
    other.write(Buffer.from('too'));
    await vi.waitFor(() => expect([parsed.at(-1), othersParsed.at(-1)]).toEqual([before + 7, 3]), MOST);
    await expect(other.picture()).rejects.toMatchObject({ code: 'internal' });

    const { screen: fresh } = open();
    fresh.write(Buffer.from('a new thread'));
    expect(textOf(await fresh.picture())).toBe('a new thread');
    screen.close();
    other.close();
  });

  it('may not fill more than its heap', async () => {
    const { open, errors } = await start({ heap: 16 });
    const many = Array.from({ length: 400 }, () => open(0, 200, 50));
    await vi.waitFor(() => expect(errors.join()).toContain('the terminal emulator failed'), MOST);
    const [{ screen, parsed }] = many as [(typeof many)[0]];
    screen.write(Buffer.from('goes on'));
    await vi.waitFor(() => expect(parsed.at(-1)).toBe(7), MOST);
  });
});

describe('the thread', () => {
  it('ends when there was no screen for a while, and starts again', async () => {
    const { screens, open } = await start({ idleAfter: 20 });
    expect(hasThread(screens)).toBe(false);
    const { screen } = open();
    await screen.picture();
    // Three times the pause after which an unused thread ends: nothing tells that it does not.
    await wait(60);
    expect(hasThread(screens)).toBe(true);
    screen.close();
    await vi.waitFor(() => expect(hasThread(screens)).toBe(false), MOST);
    const { screen: next } = open();
    next.write(Buffer.from('again'));
    expect(textOf(await next.picture())).toBe('again');
  });

  it('is gone after a stop, which may come twice and without a start', async () => {
    const { screens, open } = await start();
    await screens.stop();
    const { screen } = open();
    const asked = expect(screen.picture()).rejects.toMatchObject({ code: 'internal' });
    await screens.stop();
    await asked;
    expect(hasThread(screens)).toBe(false);
    await screens.stop();
  });
});
