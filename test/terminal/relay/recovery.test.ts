/** Sessions whose recording, or whose screen, cannot be taken up again after a restart. */
import { renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { Recordings, Recovered } from '../../../daemon/terminal/recordings/recorder.js';
import { FakeClient, Room, type RoomOptions } from '../../support/relay.js';
import { until } from '../../support/until.js';

/** A session with some output on the disk; its recording is gone when the orchestrator comes back. */
async function withoutRecording(rules: RoomOptions['rules']) {
  const room = await Room.start({ rules: { ...rules } });
  const { id, url } = await room.openShell();
  const writer = await FakeClient.open(url);
  const { secret } = await writer.welcomed();
  const session = await room.agent.attached(id);
  room.agent.write(id, 'before the restart');
  await until(() => session.forgotten > 0, 'it is recorded');
  const { transcript_path: path } = await room.get(id);
  await room.stop();
  rmSync(join(room.directory, path));
  await room.begin();
  return { room, id, secret, session, received: writer.received };
}

describe('a recording that cannot be gone on with', () => {
  it('ends a session that has to be recorded, and its agent is notified', async () => {
    const { room, id, session } = await withoutRecording({ record: 'required' });
    await until(async () => (await room.get(id)).status !== 'active', 'it has ended');
    expect(await room.get(id)).toMatchObject({
      status: 'closed',
      reason: 'recording_failed',
      recording: 'failed',
      transcript_path: null,
    });
    room.agent.list();
    await until(() => session.isClosed, 'the agent ends it');
    await room.told('terminal.closed');
  });

  it('is done without where the settings allow that', async () => {
    const { room, id, secret, received } = await withoutRecording({ record: 'best_effort' });
    room.agent.list();
    await room.agent.attached(id);
    const back = await room.attach(id, { mode: 'read' }, { resume: { secret, received } });
    expect(await back.welcomed()).toMatchObject({ mode: 'write', recorded: false });
    room.agent.write(id, 'after the restart');
    await back.shows('after the restart');
    expect(await room.get(id)).toMatchObject({ status: 'active', recording: 'failed', transcript_path: null });
  });
});

describe('a screen that cannot be drawn again', () => {
  it('costs no recording: the session goes on without pictures', async () => {
    let directory = '';
    const unreadable = (real: Recordings): Recordings => ({
      create: (...given) => real.create(...given),
      locate: (path) => real.locate(path),
      recover: async (...given) => {
        const recovered = await real.recover(...given);
        return { ...recovered, replay: () => replayAway(recovered, join(directory, recovered.recorder.path)) };
      },
    });
    const room = await Room.start({ rules: { record: 'required' }, recordings: unreadable });
    ({ directory } = room);
    const { id, url } = await room.openShell();
    const writer = await FakeClient.open(url);
    const { secret } = await writer.welcomed();
    const session = await room.agent.attached(id);
    room.agent.write(id, 'before the restart; ');
    await until(() => session.forgotten > 0, 'it is recorded');
    await room.stop();
    await room.begin();
    room.agent.list();
    await room.agent.attached(id);
    const back = await room.attach(id, { mode: 'read' }, { resume: { secret, received: 0 } });
    expect(await back.welcomed()).toMatchObject({ mode: 'write', recorded: true });
    room.agent.write(id, 'after it');
    await back.shows('before the restart; after it');
    const viewer = await room.attach(id, { mode: 'read' }, { as: 'admin' });
    await viewer.shows('after it');
    expect(viewer.pictures).toEqual([]);
    room.agent.end(id);
    await back.ended();
    expect(await room.get(id)).toMatchObject({ status: 'closed', reason: 'exited', recording: 'complete' });
    const { text } = await room.call('GET', `/terminal/session/${id}/transcript`);
    expect(text).toContain('before the restart; ');
    expect(text).toContain('after it');
    await until(async () => (await room.get(id)).transcript_path.endsWith('.cast.gz'), 'it is compressed');
  });
});

type Piece = ReturnType<Recovered['replay']> extends AsyncIterable<infer Item> ? Item : never;

/** The replay of a file that is elsewhere for as long as it is wanted. */
async function* replayAway(recovered: Recovered, path: string): AsyncGenerator<Piece> {
  renameSync(path, `${path}.away`);
  try {
    yield* recovered.replay();
  } finally {
    renameSync(`${path}.away`, path);
  }
}
