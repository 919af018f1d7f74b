/** Recordings of which the store knows nothing: after a restore, and after a crash. */

import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { putOperator } from '../../../daemon/auth/operator-store.js';
import type { RecordedEvent } from '../../../daemon/core/audit-log.js';
import { TransactionalWriter, type UnitOfWork } from '../../../daemon/core/unit-of-work.js';
import type { RecordingHead } from '../../../daemon/terminal/recordings/recording.js';
import { adoptStrayRecordings, type StrayOptions } from '../../../daemon/terminal/recordings/stray-recordings.js';
import { Transcripts } from '../../../daemon/terminal/recordings/transcripts.js';
import {
  findTerminal,
  insertTerminal,
  listTerminals,
  type TerminalRow,
} from '../../../daemon/terminal/session-store.js';
import type { Clock } from '../../../src/kernel/clock.js';
import { newIds, openStore, recordingLogger } from '../../support/database.js';
import { ADA } from '../../support/maintenance.js';
import { all, bytesOfChunks } from '../../support/recording-format.js';
import {
  compressed,
  newEvents,
  newHead,
  openRecordings,
  readPlain,
  realClock,
  until,
} from '../../support/recordings.js';

const DAY = 86_400_000;
const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');

async function openBench() {
  const { dataDir, recordings } = openRecordings();
  const { db } = await openStore();
  const events: RecordedEvent[] = [];
  const publish = (event: RecordedEvent) => void events.push(event);
  const uow = new TransactionalWriter({ db, clock: realClock, newId: newIds(), publish });
  const logger = recordingLogger();
  const common = { db, uow, clock: realClock, logger, dataDir };
  const start = (more: Partial<StrayOptions> = {}) =>
    adoptStrayRecordings({
      ...common,
      isActive: () => false,
      since: async () => 0,
      signal: new AbortController().signal,
      ...more,
    });
  const transcriptsAt = (clock: Clock) =>
    new Transcripts({ ...common, clock, ageTime: () => clock.now(), durableSize: () => null, days: () => 30 });
  const transcripts = transcriptsAt(realClock);
  const later = transcriptsAt({ ...realClock, now: () => Date.now() + 31 * DAY });
  /** Writes a recording; a null output leaves it as it is while a session is being opened. */
  const record = async (output: string | null, { isClosed = true, openedAt = Date.now() } = {}) => {
    const head = newHead({ openedAt });
    const told = newEvents();
    const recorder = await recordings.create(head, told);
    const { path } = recorder;
    if (output !== null) {
      recorder.write('out', Buffer.from(output));
      await until('it is stored', () => told.durable === output.length);
    }
    if (!isClosed) await recorder.release();
    else {
      await recorder.close(output === null ? null : 3);
      await compressed(dataDir, path);
    }
    return { head, path };
  };
  const names = () =>
    readdirSync(join(dataDir, 'transcripts'), { recursive: true }).filter((name) => name.includes('.'));
  return { db, dataDir, events, later, logger, names, record, start, transcripts, uow };
}

describe('a recording that the store does not know', () => {
  it('gets a row with what it tells of its session, and is read, kept and deleted like others', async () => {
    const { db, dataDir, events, later, logger, names, record, start, transcripts } = await openBench();
    const ada = { operator_id: 'ad'.padEnd(32, 'a'), username: 'ada', role: 'admin', public_key: 'a'.repeat(64) };
    await putOperator(db, { ...ada, added_at: 1, added_by: 'system', bootstrap: 0 });
    const old = await record('long ago\r\n', { openedAt: Date.now() - 2 * DAY });
    const cut = await record('and torn', { isClosed: false });
    writeFileSync(join(dataDir, cut.path), '[9,"o","never sto', { flag: 'a' });
    await start();
    const rows = await listTerminals(db, { readable: null, limit: 10, offset: 0 });
    expect(rows).toMatchObject([
      { session_id: cut.head.sessionId, recording: 'truncated', output_bytes: 8, operator_id: ada.operator_id },
      {
        session_id: old.head.sessionId,
        ...{ node_id: old.head.nodeId, node_name: 'web-01', operator: 'ada', kind: 'shell', shell: '/bin/bash' },
        ...{ status: 'interrupted', reason: 'store_restored', recording: 'complete', output_bytes: 10, exit_code: 3 },
        transcript_sha256: sha256(readPlain(dataDir, old.path)),
      },
    ]);
    expect(events.map(({ type, metadata }) => [type, metadata.session_id])).toEqual([
      ['terminal.transcript_found', old.head.sessionId],
      ['terminal.transcript_found', cut.head.sessionId],
    ]);
    expect(logger.lines).toMatchObject([{ level: 'warn', fields: { count: 2 } }]);
    const text = bytesOfChunks(await all(await transcripts.open(cut.head.sessionId, ADA)));
    expect(sha256(text)).toBe(rows[0]?.transcript_sha256);

    await start();
    expect(logger.lines).toHaveLength(1);
    expect(await transcripts.prune()).toBe(0);
    expect(await later.prune()).toBe(2);
    expect(names()).toEqual([]);
  });

  it('that is damaged gets one too, and is left as it is', async () => {
    const { db, dataDir, record, start } = await openBench();
    const { head, path } = await record('some output', { isClosed: false });
    const changed = readFileSync(join(dataDir, path), 'utf8').replace('some', 'same');
    writeFileSync(join(dataDir, path), changed);
    await start();
    const row = await findTerminal(db, head.sessionId);
    expect(row).toMatchObject({ recording: 'failed', transcript: path, transcript_sha256: null });
    expect(readFileSync(join(dataDir, path), 'utf8')).toBe(changed);
  });

  it('and is of a session that is being opened is left to it', async () => {
    const { db, record, start, names } = await openBench();
    const { head } = await record(null, { isClosed: false });
    await start({ isActive: (id) => id === head.sessionId });
    expect(await findTerminal(db, head.sessionId)).toBeNull();
    expect(names()).toHaveLength(1);
  });

  it('and is none at all is left alone', async () => {
    const { dataDir, logger, names, record, start } = await openBench();
    const { head, path } = await record('text', { isClosed: false });
    const other = path.replace(head.sessionId, newHead().sessionId);
    // Named after another session than it says.
    writeFileSync(join(dataDir, other), readFileSync(join(dataDir, path)));
    await start();
    expect(names()).toHaveLength(2);
    expect(logger.lines[0]).toMatchObject({ level: 'warn', fields: { file: other } });
  });
});

describe('what only looks like a recording', () => {
  it('is left alone, and nothing waits for it', async () => {
    const { dataDir, events, logger, names, record, start } = await openBench();
    const { head, path } = await record('text', { isClosed: false });
    const [fifo, link, directory] = [newHead(), newHead(), newHead()].map(({ sessionId }) =>
      join(dataDir, path.replace(head.sessionId, sessionId)),
    ) as [string, string, string];
    spawnSync('mkfifo', [fifo]);
    symlinkSync('/dev/zero', link);
    mkdirSync(directory);
    await start();
    expect(events.map(({ metadata }) => metadata.session_id)).toEqual([head.sessionId]);
    expect(logger.lines).toHaveLength(4);
    expect(names()).toHaveLength(4);
  });
});

describe('a recording whose times are none', () => {
  it.each([1e300, -1, 9e12])('gets a row with times that can be shown: %d', async (timestamp) => {
    const { db, dataDir, record, start } = await openBench();
    const { head, path } = await record('text', { isClosed: false });
    const text = readFileSync(join(dataDir, path), 'utf8').replace(/"timestamp":\d+/, `"timestamp":${timestamp}`);
    writeFileSync(join(dataDir, path), text);
    await start();
    const row = await findTerminal(db, head.sessionId);
    for (const at of [row?.opened_at, row?.closed_at]) expect(Math.abs((at ?? 0) - Date.now())).toBeLessThan(DAY);
  });
});

describe('when the orchestrator is to stop', () => {
  it('is left to the next start', async () => {
    const { db, names, record, start, uow } = await openBench();
    const { head } = await record('text', { isClosed: false });
    const stopping = new AbortController();
    const stoppedMeanwhile: UnitOfWork = {
      write: async (work) => {
        stopping.abort();
        return await uow.write(work);
      },
    };
    await record('text', { isClosed: false });
    await start({ uow: stoppedMeanwhile, signal: stopping.signal });
    expect(await listTerminals(db, { readable: null, limit: 10, offset: 0 })).toHaveLength(1);
    expect(names()).toHaveLength(2);
    await start();
    expect(await listTerminals(db, { readable: null, limit: 10, offset: 0 })).toHaveLength(2);
    expect(await findTerminal(db, head.sessionId)).toMatchObject({ recording: 'truncated' });
  });
});

describe('an empty recording', () => {
  it('without a row is deleted, whole, compressed or torn; one with a row stays', async () => {
    const { db, dataDir, logger, names, record, start } = await openBench();
    const known = await record(null, { isClosed: false });
    await insertTerminal(db, rowOf(known));
    const plain = await record(null, { isClosed: false });
    await record(null);
    const whole = readFileSync(join(dataDir, plain.path));
    for (const length of [0, 20, whole.indexOf(10) + 30]) {
      const { sessionId } = newHead();
      writeFileSync(join(dataDir, plain.path.replace(plain.head.sessionId, sessionId)), whole.subarray(0, length));
    }
    expect(names()).toHaveLength(6);
    await start();
    expect(names()).toEqual([known.path.replace('transcripts/', '')]);
    expect(logger.lines.map(({ level }) => level)).toEqual(Array(5).fill('info'));
    expect(await listTerminals(db, { readable: null, limit: 10, offset: 0 })).toHaveLength(1);
  });

  it('that the store from before a restore may know is kept', async () => {
    const { db, dataDir, names, record, start } = await openBench();
    const { head } = await record(null, { openedAt: Date.now() - DAY });
    const torn = `${newHead().sessionId}.cast`;
    const month = readdirSync(join(dataDir, 'transcripts'))[0] as string;
    const path = join(dataDir, 'transcripts', month, torn);
    writeFileSync(path, '{"version":');
    utimesSync(path, new Date(Date.now() - DAY), new Date(Date.now() - DAY));
    await start({ since: async () => Date.now() - 1000 });
    expect(await findTerminal(db, head.sessionId)).toMatchObject({ recording: 'complete', output_bytes: 0 });
    expect(names()).toHaveLength(2);
  });
});

/** A row as the opening of a session stores it. */
function rowOf({ head, path }: { readonly head: RecordingHead; readonly path: string }): TerminalRow {
  const { sessionId, openedAt, cols, rows, term, shell, nodeId, nodeName, operator } = head;
  return {
    ...{ session_id: sessionId, node_id: nodeId, node_name: nodeName, operator_id: 'a'.repeat(32), operator },
    ...{ kind: 'shell', user: 'root', shell, command: null, cols, rows, term, status: 'active', reason: null },
    ...{ exit_code: null, exit_signal: null, opened_at: openedAt, closed_at: null, recording: 'on', transcript: path },
    ...{ transcript_sha256: null, output_bytes: 0, resume_hash: null, resume_operator_id: null },
  };
}
