/** The thread that records: what it is given at once, when the disk is slow, and when it breaks down. */
import { randomBytes } from 'node:crypto';
import { appendFileSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Recorder } from '../../../daemon/terminal/recordings/recorder.js';
import { toRaw } from '../../../src/terminal/recording/convert-cast.js';
import { all, bytesOfChunks, read } from '../../support/recording-format.js';
import { newEvents, newHead, openRecordings, readPlain, sha256, until } from '../../support/recordings.js';

const MEBIBYTE = 2 ** 20;

const rawOf = async (file: Buffer) => bytesOfChunks(await all(toRaw(await read(file, 64 * 1024))));

/** Ends the thread as a mistake in it would. */
async function breakThread(recorder: Recorder): Promise<void> {
  const { thread } = Reflect.get(recorder, 'options') as { readonly thread: object };
  const worker: unknown = Reflect.get(thread, 'worker');
  if (!(worker instanceof Worker)) throw new Error('there is no thread');
  await worker.terminate();
}

describe('a thread that records', () => {
  it('is given more at once than it has memory for, in many recordings, and mixes nothing up', async () => {
    const { dataDir, recordings } = openRecordings();
    const sessions = await Promise.all(
      [1, 2, 3].map(async (_, number) => ({
        recorder: await recordings.create(newHead(), newEvents()),
        written: [] as Buffer[],
        number,
      })),
    );
    const bytes = randomBytes(MEBIBYTE);
    for (let piece = 0; piece < 120; piece += 1) {
      for (const { recorder, written, number } of sessions) {
        const start = (piece * 7_919 + number) % 900_000;
        const output = bytes.subarray(start, start + ((piece * 331) % 70_000));
        recorder.write('out', output);
        written.push(output);
      }
    }
    for (const { recorder, written } of sessions) {
      expect((await recorder.close(0)).state).toBe('complete');
      expect((await rawOf(readPlain(dataDir, recorder.path))).equals(Buffer.concat(written))).toBe(true);
    }
  });

  it('does not keep the buffers that it is given', async () => {
    const { dataDir, recordings } = openRecordings();
    const recorder = await recordings.create(newHead(), newEvents());
    const bytes = Buffer.from('as it was\r\n'.repeat(20_000));
    const before = Buffer.from(bytes);
    recorder.write('out', bytes);
    bytes.fill('x');
    await recorder.close();
    expect((await rawOf(readPlain(dataDir, recorder.path))).equals(before)).toBe(true);
  });

  it('takes no more memory than the output that is not stored yet, for as long as it flows', async () => {
    const { recordings } = openRecordings({ maxBytes: 2 ** 31 });
    const events = newEvents();
    const recorder = await recordings.create(newHead(), events);
    const bytes = Buffer.from(`${'a line of text that is recorded'.repeat(3)}\r\n`.repeat(160));
    let written = 0;
    let most = 0;
    const flow = async (until: number) => {
      while (written < until) {
        // As the relay credits it.
        while (written - recorder.durable > 4 * MEBIBYTE) await new Promise((resolve) => setTimeout(resolve, 1));
        recorder.write('out', bytes);
        written += bytes.length;
        most = Math.max(most, process.memoryUsage.rss());
      }
    };
    await flow(30 * MEBIBYTE);
    const before = most;
    await flow(230 * MEBIBYTE);
    expect(most - before).toBeLessThan(64 * MEBIBYTE);
  });

  it('ends when it has had nothing to do for a while, and starts again', async () => {
    const { dataDir, recordings } = openRecordings({ idleAfter: 10 });
    for (let round = 0; round < 2; round += 1) {
      const recorder = await recordings.create(newHead(), newEvents());
      const { thread } = Reflect.get(recorder, 'options') as { readonly thread: object };
      recorder.write('out', Buffer.from('text'));
      await recorder.close();
      expect((await rawOf(readPlain(dataDir, recorder.path))).toString()).toBe('text');
      await until('the thread has ended', () => Reflect.get(thread, 'hasEnded') === true);
    }
  });
});

it('a thread ends, too, when the last that was asked of it could not be done', async () => {
  const { recordings } = openRecordings({ idleAfter: 100 });
  const head = newHead();
  const recorder = await recordings.create(head, newEvents());
  const { thread } = Reflect.get(recorder, 'options') as { readonly thread: object };
  await recorder.release();
  await expect(recordings.create(head, newEvents())).rejects.toMatchObject({ code: 'recording_failed' });
  await until('the thread has ended', () => Reflect.get(thread, 'hasEnded') === true);
});

describe('a thread that breaks down', () => {
  it('has failed the recordings in it, whose files hold all that was stored in whole lines', async () => {
    const { dataDir, recordings } = openRecordings();
    const events = newEvents();
    const recorder = await recordings.create(newHead(), events);
    const written = Buffer.concat([Buffer.alloc(3_000_000, 'a line\r\n'), randomBytes(500_000)]);
    recorder.write('out', written);
    await until('some of it is stored', () => events.durable > 0);
    await breakThread(recorder);
    await until('it is reported', () => events.stopped !== null);
    expect(events.stopped).toEqual({ state: 'failed', reason: 'the recording thread has failed' });
    expect(recorder.isRecording).toBe(false);
    expect(recorder.durable).toBe(written.length);
    recorder.write('out', Buffer.from('more'));
    expect(recorder.readBack()).toBeNull();

    const end = await recorder.close(0);
    const plain = readPlain(dataDir, recorder.path);
    expect(end).toEqual({ state: 'failed', sha256: sha256(plain) });
    const lines = plain.toString().split('\n');
    expect(lines.pop()).toBe('');
    for (const line of lines) JSON.parse(line);
    expect(JSON.parse(lines.at(-1) as string)).toEqual([
      expect.any(Number),
      'm',
      'recording stopped: the recording thread has failed',
    ]);
    const raw = await rawOf(plain);
    expect(raw.length).toBeGreaterThanOrEqual(events.durable);
    expect(raw.equals(written.subarray(0, raw.length))).toBe(true);
  });

  it('keeps no caller waiting that makes, ends or releases a recording, and another thread takes its place', async () => {
    const { dataDir, recordings } = openRecordings();
    const [first, second] = await Promise.all([1, 2].map(() => recordings.create(newHead(), newEvents())));
    if (first === undefined || second === undefined) throw new Error('there are two');
    first.write('out', Buffer.from('one'));
    second.write('out', Buffer.from('two'));
    const broken = breakThread(first);
    const making = recordings.create(newHead(), newEvents());
    const ends = [first.close(0), second.release()];
    await expect(making).rejects.toMatchObject({ code: 'recording_failed' });
    expect(await ends[0]).toMatchObject({ state: 'failed', sha256: expect.any(String) });
    await ends[1];
    await broken;

    const recorder = await recordings.create(newHead(), newEvents());
    recorder.write('out', Buffer.from('three'));
    expect((await recorder.close(0)).state).toBe('complete');
    expect((await rawOf(readPlain(dataDir, recorder.path))).toString()).toBe('three');
  });

  it('leaves no text that stands for bytes which are not there', async () => {
    const { dataDir, recordings } = openRecordings();
    const events = newEvents();
    const recorder = await recordings.create(newHead(), events);
    recorder.write('out', Buffer.from('stored'));
    await until('it is stored', () => events.durable > 0);
    // As a write that did not come to its end.
    appendFileSync(join(dataDir, recorder.path), `${JSON.stringify([1.5, 'o', 'bin\ufffd'])}\n[1.5,"b","Ymlu`);
    await breakThread(recorder);
    await until('it is reported', () => events.stopped !== null);
    await recorder.close();
    expect((await rawOf(readPlain(dataDir, recorder.path))).toString()).toBe('stored');
  });

  it('leaves a recording that the next orchestrator goes on with', async () => {
    const dataDir = openRecordings().dataDir;
    const { recordings } = openRecordings({ dataDir });
    const head = newHead();
    const events = newEvents();
    const recorder = await recordings.create(head, events);
    const written = Buffer.alloc(2_500_000, 'stored in any case\r\n');
    recorder.write('out', written);
    await until('some of it is stored', () => events.durable > 0);
    await breakThread(recorder);
    await until('it is reported', () => events.stopped !== null);
    await recorder.release();
    const after = openRecordings({ dataDir }).recordings;
    const { recorder: again } = await after.recover(head, newEvents());
    onTestFinished(() => again.release());
    expect(again.durable).toBeGreaterThanOrEqual(events.durable);
    again.write('out', written.subarray(again.durable));
    await again.release();
    expect((await rawOf(readFileSync(join(dataDir, again.path)))).equals(written)).toBe(true);
  });
});
