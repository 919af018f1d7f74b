/** Recordings as operators read and search them, over a real store. */
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { gzipSync } from 'node:zlib';
import { decodeTime } from 'ulid';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { RecordedEvent } from '../../../daemon/core/audit-log.js';
import { TransactionalWriter } from '../../../daemon/core/unit-of-work.js';
import type { Recorder } from '../../../daemon/terminal/recordings/recorder.js';
import { recordingPath } from '../../../daemon/terminal/recordings/recording-files.js';
import type { TranscriptSearchQuery } from '../../../daemon/terminal/recordings/transcripts.js';
import {
  findTerminal,
  insertTerminal,
  type TerminalRow,
  updateTerminal,
} from '../../../daemon/terminal/session-store.js';
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

const dist = fileURLToPath(new URL('../../../dist/daemon/terminal/recordings/transcripts.js', import.meta.url));
const DAY = 86_400_000;

interface Session {
  readonly row: TerminalRow;
  readonly recorder: Recorder;
  /** Ends it. */
  close(): Promise<void>;
}

/** Threads run what is built, so what starts them does too. */
async function openBench({ days = 30, searchWithin = 15_000, beforeOpening = (_path: string) => {} } = {}) {
  const { Transcripts } = (await import(
    pathToFileURL(dist).href
  )) as typeof import('../../../daemon/terminal/recordings/transcripts.js');
  const { dataDir, recordings } = openRecordings();
  const { db } = await openStore();
  const events: RecordedEvent[] = [];
  const uow = new TransactionalWriter({
    db,
    clock: realClock,
    newId: newIds(),
    publish: (event) => events.push(event),
  });
  const logger = recordingLogger();
  const transcripts = new Transcripts({
    ...{ db, uow, dataDir, clock: realClock, ageTime: () => realClock.now(), logger, searchWithin },
    durableSize: (sessionId) => {
      // Asked when the file was found and is not open yet.
      beforeOpening(join(dataDir, recordingPath(sessionId, decodeTime(sessionId))));
      return recordings.durableSize(sessionId);
    },
    days: () => days,
  });
  onTestFinished(() => transcripts.stop());
  const start = async (output: string, more: Partial<TerminalRow> = {}): Promise<Session> => {
    const head = newHead();
    const told = newEvents();
    const recorder = await recordings.create(head, told);
    recorder.write('out', Buffer.from(output));
    await until('it is stored', () => told.durable === Buffer.byteLength(output));
    const row = rowOf(head, { transcript: recorder.path, ...more });
    await insertTerminal(db, row);
    const close = async () => {
      await recorder.close(0);
      await compressed(dataDir, recorder.path);
      const change = { status: 'closed', recording: 'complete', closed_at: more.closed_at ?? Date.now() } as const;
      await db.updateTable('terminal_sessions').set(change).where('session_id', '=', row.session_id).execute();
    };
    return { row, recorder, close };
  };
  const search = (query: Partial<TranscriptSearchQuery> & { readonly pattern: string }) =>
    transcripts.search(
      { limit: 100, signal: new AbortController().signal, readable: async () => () => true, ...query },
      ADA,
    );
  return { db, dataDir, events, logger, transcripts, start, search };
}

const rowOf = (head: ReturnType<typeof newHead>, more: Partial<TerminalRow>): TerminalRow => ({
  session_id: head.sessionId,
  node_id: head.nodeId,
  node_name: head.nodeName,
  operator_id: 'ada'.padEnd(32, '0'),
  operator: head.operator,
  kind: 'shell',
  user: 'root',
  shell: head.shell,
  command: null,
  ...{ cols: 80, rows: 24, term: 'xterm', status: 'active', reason: null, exit_code: null, exit_signal: null },
  opened_at: head.openedAt,
  closed_at: null,
  recording: 'on',
  transcript: null,
  transcript_sha256: null,
  output_bytes: 0,
  resume_hash: null,
  resume_operator_id: null,
  ...more,
});

describe('reading a recording', () => {
  it('gives it whole once it is over, and is in the audit log before the first byte', async () => {
    const { transcripts, start, events } = await openBench();
    const session = await start('some output\r\n');
    await session.close();
    const stream = await transcripts.open(session.row.session_id, ADA);
    expect(events).toMatchObject([
      {
        type: 'terminal.transcript_read',
        target: { id: session.row.session_id, type: 'session' },
        summary: "ada read the recording of ada's session on web-01",
      },
    ]);
    const text = bytesOfChunks(await all(stream)).toString();
    expect(text).toContain('"some output\\r\\n"');
    expect(text.trimEnd().split('\n').at(-1)).toContain('"h"');
  });

  it('finds it although it is compressed in just that moment', async () => {
    const compress = (path: string) => {
      if (!existsSync(path)) return;
      writeFileSync(`${path}.gz`, gzipSync(readFileSync(path)));
      rmSync(path);
    };
    const { transcripts, start, search, logger } = await openBench({ beforeOpening: compress });
    const [read, searched] = [await start('to be read'), await start('to be searched')];
    const stream = await transcripts.open(read.row.session_id, ADA);
    expect(bytesOfChunks(await all(stream)).toString()).toContain('to be read');
    expect(await search({ pattern: 'be searched' })).toMatchObject({
      searched: 2,
      matches: [{ session_id: searched.row.session_id }],
    });
    expect(logger.lines).toEqual([]);
  });

  it('gives what is stored of one that goes on', async () => {
    const { transcripts, start } = await openBench();
    const { row, recorder } = await start('stored');
    recorder.write('out', Buffer.from('not yet'));
    const text = bytesOfChunks(await all(await transcripts.open(row.session_id, ADA))).toString();
    expect(text).toContain('"stored"');
    expect(text).not.toContain('not yet');
    expect(text.trimEnd().split('\n').at(-1)).toContain('"h"');
  });

  it.skipIf(process.platform !== 'linux')('leaves no file open when it is not read (needs Linux)', async () => {
    const { transcripts, start } = await openBench();
    const [over, active] = [await start('some output'), await start('more')];
    await over.close();
    const openFiles = () => readdirSync('/proc/self/fd').length;
    const before = openFiles();
    for (const { row } of [over, active, over, active]) (await transcripts.open(row.session_id, ADA)).destroy();
    await until('the files are closed', () => openFiles() <= before);
  });

  it('says which sessions there are not, and which have none', async () => {
    const { db, transcripts, events } = await openBench();
    const off = rowOf(newHead(), { recording: 'off' });
    const lost = rowOf(newHead(), { transcript: 'transcripts/2026-01/gone.cast', recording: 'complete' });
    for (const row of [off, lost]) await insertTerminal(db, row);
    await expect(transcripts.open('nothing', ADA)).rejects.toMatchObject({ code: 'terminal_not_found' });
    await expect(transcripts.open(off.session_id, ADA)).rejects.toMatchObject({ code: 'transcript_not_found' });
    await expect(transcripts.open(lost.session_id, ADA)).rejects.toMatchObject({ code: 'transcript_not_found' });
    expect(events).toEqual([]);
  });
});

describe('searching recordings', () => {
  it('finds lines as people saw them, in the newest sessions first', async () => {
    const { start, search, events } = await openBench();
    const older = await start('$ make\r\n\x1b[31mERROR\x1b[0m: disk full\r\n50%\r100% error again\r\n');
    await older.close();
    const newer = await start('no error here\r\n', { operator: 'bob', node_id: 'cd'.padEnd(32, '0') });
    const found = await search({ pattern: 'error', ignore_case: true });
    expect(found).toMatchObject({ searched: 2, truncated: false });
    expect(found.matches.map(({ session_id, line }) => [session_id, line])).toEqual([
      [newer.row.session_id, 'no error here'],
      [older.row.session_id, 'ERROR: disk full'],
      [older.row.session_id, '100% error again'],
    ]);
    expect(found.matches[0]).toMatchObject({ operator: 'bob', node_name: 'web-01', at: expect.any(Number) });
    expect(events).toMatchObject([
      {
        type: 'terminal.transcript_read',
        summary: 'ada searched 2 recordings of terminals for "error"',
        metadata: { recordings: 2, matches: 3, pattern: 'error' },
      },
    ]);
    expect((await search({ pattern: 'error', operator: 'bob' })).matches).toHaveLength(1);
    expect((await search({ pattern: 'error', node: older.row.node_id })).matches).toHaveLength(1);
    expect((await search({ pattern: '.', since: Math.floor(Date.now() / 1000) + 60 })).searched).toBe(0);
    expect(await search({ pattern: '.', limit: 2 })).toMatchObject({ truncated: true, matches: [{}, {}] });
  });

  it('refuses what is no regular expression', async () => {
    const { search } = await openBench();
    await expect(search({ pattern: '(' })).rejects.toMatchObject({ code: 'invalid_query' });
  });

  it('passes over a recording that is damaged', async () => {
    const { dataDir, start, search, logger } = await openBench();
    const good = await start('needle\r\n');
    const bad = await start('needle\r\n');
    await bad.close();
    writeFileSync(join(dataDir, `${bad.recorder.path}.gz`), Buffer.from([0x1f, 0x8b, 8, 0, 1, 2, 3]));
    const found = await search({ pattern: 'needle' });
    expect(found.matches.map(({ session_id }) => session_id)).toEqual([good.row.session_id]);
    expect(found.altered).toEqual([bad.row.session_id]);
    expect(logger.lines).toMatchObject([{ level: 'warn', fields: { session_id: bad.row.session_id } }]);
  });

  it('tells nothing of recordings that may no longer be read when it has ended', async () => {
    const { dataDir, start, search } = await openBench();
    const [good, bad] = [await start('needle\r\n'), await start('needle\r\n')];
    await bad.close();
    writeFileSync(join(dataDir, `${bad.recorder.path}.gz`), Buffer.from([0x1f, 0x8b, 8, 0, 1, 2, 3]));
    let asked = 0;
    const readable = async () => {
      asked += 1;
      return asked === 1 ? () => true : () => false;
    };
    expect(await search({ pattern: 'needle', readable })).toMatchObject({ matches: [], altered: [] });
    expect(asked).toBe(2);
    await good.close();
  });

  it('says which ones are not what the store has of them', async () => {
    const { db, dataDir, start, search, events } = await openBench();
    const output = 'a needle\r\nanother needle\r\n';
    const sessions = [await start(output), await start(output), await start('hay\r\n'), await start(output)];
    const [fits, altered, hay, active] = sessions.map(({ row }) => row.session_id);
    for (const { row, close, recorder } of sessions.slice(0, 3)) {
      await close();
      const sha256 = createHash('sha256').update(readPlain(dataDir, recorder.path)).digest('hex');
      await updateTerminal(db, row.session_id, { transcript_sha256: sha256 });
    }
    const change = (path: string, from: string, to: string) => {
      const text = readPlain(dataDir, path).toString().replace(from, to);
      writeFileSync(join(dataDir, `${path}.gz`), gzipSync(text));
    };
    change(sessions[1]?.recorder.path ?? '', 'another', 'no other');
    change(sessions[2]?.recorder.path ?? '', 'hay', 'hoy');
    const found = await search({ pattern: 'needle' });
    expect(found).toMatchObject({ searched: 4, altered: [hay, altered], truncated: false });
    expect(found.matches.map(({ session_id }) => session_id)).toEqual([active, active, altered, altered, fits, fits]);
    expect(events.at(-1)?.metadata).toMatchObject({ altered: [hay, altered] });
    // The rest, which the search does not reach, is read all the same.
    expect(await search({ pattern: 'needle', limit: 3 })).toMatchObject({
      matches: [{}, {}, {}],
      altered: [hay, altered],
    });
    expect(await search({ pattern: 'needle', limit: 2 })).toMatchObject({ altered: [] });
  });

  it('ends a pattern that takes for ever, and keeps what was found before', async () => {
    const { start, search } = await openBench({ searchWithin: 5_000 });
    await start(`${'a'.repeat(60)}b\r\n`);
    const newest = await start('aa\r\n');
    const found = await search({ pattern: '^(a+)+$' });
    expect(found).toMatchObject({ truncated: true, matches: [{ session_id: newest.row.session_id, line: 'aa' }] });
    // The next one has a thread of its own.
    expect((await search({ pattern: '^aa$' })).matches).toHaveLength(1);
  });

  it('ends when whoever asked is gone', async () => {
    const { start, search } = await openBench();
    await start(`${'a'.repeat(60)}b\r\n`);
    const leaving = new AbortController();
    setTimeout(() => leaving.abort(new Error('gone')), 200);
    await expect(search({ pattern: '^(a+)+$', signal: leaving.signal })).rejects.toThrow('gone');
  });
});

describe('recordings that were kept long enough', () => {
  it('are deleted, and the sessions say so', async () => {
    const { db, dataDir, transcripts, start, events } = await openBench({ days: 7 });
    const old = await start('old', { closed_at: Date.now() - 8 * DAY });
    const recent = await start('recent', { closed_at: Date.now() - 6 * DAY });
    const active = await start('active');
    for (const session of [old, recent]) await session.close();
    expect(await transcripts.prune()).toBe(1);
    expect(await transcripts.prune()).toBe(0);
    expect(await findTerminal(db, old.row.session_id)).toMatchObject({ recording: 'pruned' });
    expect(await findTerminal(db, recent.row.session_id)).toMatchObject({ recording: 'complete' });
    expect(await findTerminal(db, active.row.session_id)).toMatchObject({ recording: 'on' });
    const [month = ''] = readdirSync(join(dataDir, 'transcripts'));
    expect(readdirSync(join(dataDir, 'transcripts', month))).toHaveLength(2);
    expect(events).toMatchObject([{ type: 'terminal.transcripts_pruned', metadata: { deleted: 1 } }]);
    await expect(transcripts.open(old.row.session_id, ADA)).rejects.toMatchObject({
      code: 'transcript_not_found',
      message: expect.stringContaining('retention.transcripts_days'),
    });
  });
});
