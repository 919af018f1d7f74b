/** Recordings as files: made, gone on with, full, compressed. */
import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { toRaw } from '../../../src/terminal/recording/convert-cast.js';
import { scanCast } from '../../../src/terminal/recording/scan-cast.js';
import { recordingLogger, temporaryDirectory } from '../../support/database.js';
import { all, bytesOfChunks, inPieces, itemsOf, read } from '../../support/recording-format.js';
import { compressed, newEvents, newHead, openRecordings, readPlain, sha256, until } from '../../support/recordings.js';

const rawOf = async (file: Buffer) => bytesOfChunks(await all(toRaw(await read(file, 64 * 1024))));

describe('a recording', () => {
  it('holds every byte, is for the orchestrator alone, and is compressed when it is over', async () => {
    const { dataDir, recordings } = openRecordings();
    const events = newEvents();
    const recorder = await recordings.create(newHead(), events);
    const output = [Buffer.from('$ '), randomBytes(300_000), Buffer.from('naïve\r\n')];
    recorder.write('out', output[0] as Buffer);
    recorder.resize(100, 30);
    recorder.write('out', output[1] as Buffer);
    recorder.mark('bob joined to watch');
    recorder.write('out', output[2] as Buffer);
    const end = await recorder.close(3);
    expect(await recorder.close()).toBe(end);
    expect(end.state).toBe('complete');
    expect(events).toMatchObject({ durable: 300_010, stopped: null });
    await compressed(dataDir, recorder.path);

    const plain = readPlain(dataDir, recorder.path);
    expect((await rawOf(plain)).equals(Buffer.concat(output))).toBe(true);
    expect(end.sha256).toBe(sha256(plain));
    const scanned = await scanCast(inPieces(plain, 64 * 1024));
    expect(scanned).toMatchObject({ size: plain.length, fileSize: plain.length, offset: 300_010, cols: 100, rows: 30 });
    const kinds = (await itemsOf(plain)).flatMap((item) => (item.kind === 'output' ? [] : [item.kind]));
    expect(kinds).toEqual(['size', 'mark', 'exit']);
    const file = join(dataDir, `${recorder.path}.gz`);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(statSync(dirname(file)).mode & 0o777).toBe(0o700);
    expect(recorder.path).toMatch(/^transcripts\/\d{4}-\d\d\/[0-9A-Z]{26}\.cast$/);
  });

  it('has few of the sizes of a dragged window, and the last one', async () => {
    const { dataDir, recordings } = openRecordings();
    const recorder = await recordings.create(newHead(), newEvents());
    for (let cols = 20; cols < 220; cols += 1) recorder.resize(cols, 30);
    await recorder.close();
    const sizes = (await itemsOf(readPlain(dataDir, recorder.path))).filter(({ kind }) => kind === 'size');
    expect(sizes.length).toBeLessThan(20);
    expect(sizes.at(-1)).toMatchObject({ cols: 219, rows: 30 });
  });

  it('gathers single bytes', async () => {
    const { dataDir, recordings } = openRecordings();
    const recorder = await recordings.create(newHead(), newEvents());
    for (let key = 0; key < 2_000; key += 1) recorder.write('out', Buffer.from('x'));
    await recorder.close();
    const outputs = (await itemsOf(readPlain(dataDir, recorder.path))).filter(({ kind }) => kind === 'output');
    expect(outputs.length).toBeLessThan(20);
  });

  it('becomes durable by itself, a character that never ends too', async () => {
    const { recordings } = openRecordings();
    const events = newEvents();
    const recorder = await recordings.create(newHead(), events);
    recorder.write('out', Buffer.from([0x61, 0xe2, 0x82]));
    await until('the whole character is durable', () => events.durable >= 1);
    await until('its torn neighbour is', () => events.durable === 3 && recorder.durable === 3);
  });

  it('is not made over another one', async () => {
    const { recordings } = openRecordings();
    const head = newHead();
    await recordings.create(head, newEvents());
    await expect(recordings.create(head, newEvents())).rejects.toMatchObject({ code: 'recording_failed' });
  });

  it('is not made when the disk is too full', async () => {
    const { dataDir, recordings } = openRecordings({ minFreeBytes: 2 ** 60 });
    await expect(recordings.create(newHead(), newEvents())).rejects.toMatchObject({
      code: 'recording_failed',
      message: expect.stringMatching(/only \d+ MiB of .* are free/),
    });
    expect(readdirSync(dataDir)).toEqual([]);
  });

  it('ends at its limit with a mark, and the session may go on', async () => {
    const { dataDir, recordings } = openRecordings({ maxBytes: 200_000 });
    const events = newEvents();
    const recorder = await recordings.create(newHead(), events);
    for (let frame = 0; frame < 10; frame += 1) recorder.write('out', Buffer.alloc(60_000, 'a line\r\n'));
    await until('it has stopped', () => events.stopped !== null);
    expect(events.stopped).toMatchObject({ state: 'truncated' });
    expect(recorder.durable).toBe(600_000);
    recorder.write('out', Buffer.from('more'));
    const end = await recorder.close();
    const plain = readPlain(dataDir, recorder.path);
    expect(end).toEqual({ state: 'truncated', sha256: sha256(plain) });
    expect(plain.length).toBeLessThan(400_000);
    const items = await itemsOf(plain);
    expect(items.at(-1)).toMatchObject({ kind: 'mark', text: expect.stringContaining('has come to its limit') });
    const raw = await rawOf(plain);
    expect(raw.equals(Buffer.alloc(600_000, 'a line\r\n').subarray(0, raw.length))).toBe(true);
    await scanCast(inPieces(plain, 4096));
  });

  it('ends when the disk is full, with whole lines', async (context) => {
    const disk = tinyDisk();
    if ('reason' in disk) return context.skip(disk.reason);
    const { recordings } = openRecordings({ dataDir: disk.path });
    const events = newEvents();
    const recorder = await recordings.create(newHead(), events);
    for (let frame = 0; frame < 60 && events.stopped === null; frame += 1) {
      recorder.write('out', randomBytes(60_000));
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    await until('it has stopped', () => events.stopped !== null);
    expect(events.stopped).toEqual({ state: 'failed', reason: 'the disk is full' });
    const end = await recorder.close();
    expect(end.state).toBe('failed');
    const plain = readPlain(disk.path, recorder.path);
    expect(end.sha256).toBe(sha256(plain));
    expect(plain.at(-1)).toBe(10);
    expect((await rawOf(plain)).length).toBeGreaterThanOrEqual(events.durable);
  });

  it('holds nothing else than what was written, wherever a full disk cuts bytes that are no text', async (context) => {
    const disk = tinyDisk();
    if ('reason' in disk) return context.skip(disk.reason);
    const { recordings } = openRecordings({ dataDir: disk.path });
    const sessions = await Promise.all(
      Array.from({ length: 16 }, async () => {
        const events = newEvents();
        return { events, recorder: await recordings.create(newHead(), events), written: [] as Buffer[] };
      }),
    );
    for (let frame = 0; frame < 200 && sessions.some(({ events }) => events.stopped === null); frame += 1) {
      for (const { recorder, written } of sessions) {
        const bytes = randomBytes(3_000);
        recorder.write('out', bytes);
        written.push(bytes);
      }
      await new Promise((resolve) => setTimeout(resolve, 15));
    }
    for (const { events, recorder, written } of sessions) {
      await until('it has stopped', () => events.stopped !== null);
      await recorder.close();
      const raw = await rawOf(readPlain(disk.path, recorder.path));
      expect(raw.length).toBeGreaterThanOrEqual(events.durable);
      expect(raw.equals(Buffer.concat(written).subarray(0, raw.length))).toBe(true);
    }
  });
});

describe('a recording that goes on after a restart', () => {
  it('has lost nothing that was durable, whatever a crash left behind it', async () => {
    const { dataDir, recordings } = openRecordings();
    const head = newHead();
    const recorder = await recordings.create(head, newEvents());
    recorder.write('out', Buffer.from('before ö'));
    recorder.resize(120, 40);
    recorder.write('err', Buffer.from([0x21, 0xc3]));
    await recorder.release();
    const path = join(dataDir, recorder.path);
    const kept = readFileSync(path);
    writeFileSync(path, '[9,"o","never stored"]\n[9.5,"o","to', { flag: 'a' });

    const events = newEvents();
    const { recorder: again, tail, replay } = await recordings.recover(head, events);
    expect(readFileSync(path)).toEqual(kept);
    // The half of a character was never said to be stored, so it comes again.
    expect(again.durable).toBe(10);
    expect(tail).toEqual([
      { stream: 'out', offset: 0, bytes: Buffer.from('before ö') },
      { stream: 'err', offset: 9, bytes: Buffer.from('!') },
    ]);
    expect(await all(replay())).toEqual([
      { output: Buffer.from('before ö') },
      { cols: 120, rows: 40 },
      { output: Buffer.from('!') },
    ]);
    again.mark('relay restarted');
    again.write('err', Buffer.from([0xc3, 0xa4]));
    expect((await again.close(0)).state).toBe('complete');
    const plain = readPlain(dataDir, again.path);
    expect((await rawOf(plain)).toString()).toBe('before ö!ä');
    await scanCast(inPieces(plain));
    const times = plain
      .toString()
      .trimEnd()
      .split('\n')
      .slice(1)
      .map((line) => (JSON.parse(line) as [number])[0]);
    expect(times).toEqual([...times].sort((a, b) => a - b));
  });

  it.skipIf(process.platform !== 'linux')(
    'is read once, and what was newest in it is there byte for byte (needs Linux)',
    async () => {
      const { dataDir, recordings } = openRecordings();
      const head = newHead();
      const recorder = await recordings.create(head, newEvents());
      const output = randomBytes(4 * 1024 * 1024);
      for (let at = 0; at < output.length; at += 50_000) {
        recorder.write(at % 100_000 === 0 ? 'out' : 'err', output.subarray(at, at + 50_000));
      }
      await recorder.release();
      const { size } = statSync(join(dataDir, recorder.path));
      const readSoFar = () => Number(/^rchar: (\d+)$/m.exec(readFileSync('/proc/self/io', 'utf8'))?.[1]);
      const before = readSoFar();
      const { recorder: again, tail } = await recordings.recover(head, newEvents());
      expect(readSoFar() - before).toBeLessThan(1.5 * size);
      // The beginning of a character at its end may not have been stored.
      const newest = output.subarray(0, again.durable).subarray(-2 * 1024 * 1024);
      expect(again.durable).toBeGreaterThan(output.length - 4);
      expect(Buffer.concat(tail.map(({ bytes }) => bytes)).equals(newest)).toBe(true);
      for (const { offset, bytes, stream } of tail) {
        const last = offset + bytes.length - 1;
        expect(stream).toBe(Math.floor(last / 50_000) % 2 === 0 ? 'out' : 'err');
      }
    },
  );

  it('that was compressed already is plain again', async () => {
    const { dataDir, recordings } = openRecordings();
    const head = newHead();
    const recorder = await recordings.create(head, newEvents());
    recorder.write('out', Buffer.from('text'));
    await recorder.close();
    await compressed(dataDir, recorder.path);
    const { recorder: again } = await recordings.recover(head, newEvents());
    expect(again.durable).toBe(4);
    expect(readdirSync(dirname(join(dataDir, again.path)))).toEqual([`${head.sessionId}.cast`]);
  });

  it('that is damaged is refused, left as it is, and holds no other one up', async () => {
    const { dataDir, recordings } = openRecordings();
    const [bad, good, gone] = [newHead(), newHead(), newHead()];
    for (const head of [bad, good]) {
      const recorder = await recordings.create(head, newEvents());
      recorder.write('out', Buffer.from('some output'));
      await recorder.release();
    }
    const path = join(
      dataDir,
      'transcripts',
      new Date(bad.openedAt).toISOString().slice(0, 7),
      `${bad.sessionId}.cast`,
    );
    const changed = readFileSync(path, 'utf8').replace('some', 'same');
    writeFileSync(path, changed);
    await expect(recordings.recover(bad, newEvents())).rejects.toMatchObject({ code: 'transcript_invalid' });
    await expect(recordings.recover(gone, newEvents())).rejects.toMatchObject({ code: 'recording_failed' });
    expect(readFileSync(path, 'utf8')).toBe(changed);
    truncateSync(path, 20);
    await expect(recordings.recover(bad, newEvents())).rejects.toMatchObject({ code: 'transcript_invalid' });
    expect((await recordings.recover(good, newEvents())).recorder.durable).toBe(11);
  });

  it('leaves what is over to be compressed at the next start', async () => {
    const dataDir = temporaryDirectory();
    const first = openRecordings({ dataDir }).recordings;
    const [over, active] = [newHead(), newHead()];
    const paths = [];
    for (const head of [over, active]) {
      const recorder = await first.create(head, newEvents());
      recorder.write('out', Buffer.from('text'));
      await recorder.release();
      paths.push(recorder.path);
    }
    const [overPath = '', activePath = ''] = paths;
    writeFileSync(join(dataDir, `${overPath}.gz.tmp`), 'unfinished');
    const second = openRecordings({ dataDir }).recordings;
    await second.cleanUp((sessionId) => sessionId === active.sessionId);
    expect(readdirSync(dirname(join(dataDir, overPath))).sort()).toEqual(
      [`${over.sessionId}.cast.gz`, `${active.sessionId}.cast`].sort(),
    );
    expect((await rawOf(readPlain(dataDir, activePath))).toString()).toBe('text');
    expect((await rawOf(readPlain(dataDir, overPath))).toString()).toBe('text');
  });

  it('that is being compressed when others are tidied is compressed once', async () => {
    const logger = recordingLogger();
    const { dataDir, recordings } = openRecordings({ logger });
    const recorder = await recordings.create(newHead(), newEvents());
    for (let frame = 0; frame < 200; frame += 1) recorder.write('out', randomBytes(60_000));
    await recorder.close();
    const month = dirname(join(dataDir, recorder.path));
    await until('its compression has begun', () => readdirSync(month).some((name) => name.endsWith('.gz.tmp')));
    await recordings.cleanUp(() => false);
    expect(logger.lines).toEqual([]);
    expect(readdirSync(month)).toEqual([basename(`${recorder.path}.gz`)]);
  });

  it('does without the files that it cannot read at the next start, and waits for none', async () => {
    const dataDir = temporaryDirectory();
    const logger = recordingLogger();
    const { recordings } = openRecordings({ dataDir, logger });
    const month = join(dataDir, 'transcripts', '2026-01');
    mkdirSync(month, { recursive: true });
    spawnSync('mkfifo', [join(month, `${newHead().sessionId}.cast`)]);
    symlinkSync('loop', join(dataDir, 'transcripts', 'loop'));
    await recordings.cleanUp(() => false);
    expect(logger.lines.map(({ level }) => level).toSorted()).toEqual(['error', 'warn']);
    expect(readdirSync(month)).toHaveLength(1);
  });
});

/** A file system of 1 MiB. */
function tinyDisk(): { readonly path: string } | { readonly reason: string } {
  const path = temporaryDirectory();
  const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', path], { encoding: 'utf8' });
  if (mounted.status !== 0) {
    const reason = `a tmpfs cannot be mounted here: ${mounted.error?.message ?? mounted.stderr.trim()}`;
    console.log(`skipped: ${reason}`);
    return { reason };
  }
  onTestFinished(() => void spawnSync('umount', ['-l', path]));
  return { path };
}
