import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type AuditKey, checkpointText, parseCheckpoint, signMark } from '../../daemon/audit/checkpoint.js';
import { newestCheckpoints, readAuditChain } from '../../daemon/core/audit-store.js';
import { ALL_RIGHTS } from '../../daemon/core/rights.js';
import type { AuditVerification } from '../../src/contract/audit.js';
import { auditOf, event, newAuditKey } from '../support/audit.js';
import { ManualClock, openStore, recordingLogger, temporaryDirectory } from '../support/database.js';
import { StoreLab } from '../support/store-lab.js';

const never = new AbortController().signal;

/** A log in a file that processes open one after the other, as an orchestrator that is stopped and started. */
function storedLog(key: AuditKey = newAuditKey()) {
  const file = join(temporaryDirectory(), 'orch.db');
  const clock = new ManualClock();
  const session = async <T>(work: (audit: ReturnType<typeof auditOf>) => Promise<T>, with_ = key): Promise<T> => {
    const store = await openStore({ file });
    const audit = auditOf(store, { key: with_, clock });
    await audit.checkpoints.start();
    const result = await work(audit);
    await audit.checkpoints.stop();
    await store.close();
    return result;
  };
  return {
    key,
    session,
    /** Some events, and the checkpoint that stands at the end of the session. */
    write: (count: number) =>
      session(({ emit }) => emit(...Array.from({ length: count }, (_, n) => event({ summary: `event ${n}` })))),
    verify: (since: string | null = null): Promise<AuditVerification> =>
      session(({ verification }) =>
        verification.run({ since: since === null ? null : parseCheckpoint(since), signal: never }),
      ),
    /** Changes the file while no process has it open. */
    tamper: (...statements: readonly string[]) => new StoreLab(file).tamper(...statements),
    file,
  };
}

/** Makes the chain fit again from an event on, as an attacker without the key could. */
async function rechain(file: string, from: number): Promise<void> {
  const { hashOf } = await import('../../daemon/core/audit-log.js');
  const lab = new StoreLab(file);
  // biome-ignore lint/suspicious/noExplicitAny: rows as they come
  const rows = lab.rows<any>(`select * from audit_events where seq >= ${from - 1} order by seq`);
  for (const [index, row] of rows.slice(1).entries()) row.hash = hashOf(row, rows[index].hash);
  lab.run(...rows.slice(1).map(({ hash, seq }) => `update audit_events set hash = '${hash}' where seq = ${seq}`));
}

describe('the verification of an audit log', () => {
  it('tells what was checked, and gives a checkpoint of the last event', async () => {
    const log = storedLog();
    await log.write(10);
    await log.write(5);
    const first = await log.verify();
    expect(first).toMatchObject({
      intact: true,
      events: 15,
      first_seq: 1,
      last_seq: 15,
      checkpoints: 1,
      pruned: null,
      checkpoint: { epoch: 1, seq: 15 },
      public_key: log.key.publicKey,
      since: null,
      problem: null,
    });
    const text = first.checkpoint?.text ?? '';
    expect(text).toMatch(/^orch-checkpoint-v1\.1\.15\.\d+\.[0-9a-f]{64}\.[0-9a-f]{64}\.[\w-]{86}$/);
    await log.write(300);
    expect(await log.verify(text)).toMatchObject({ intact: true, since: { seq: 15, found: 'confirmed' } });
  });

  it('of a log without events finds nothing to check', async () => {
    expect(await storedLog().verify()).toMatchObject({
      intact: true,
      events: 0,
      first_seq: null,
      last_seq: null,
      checkpoint: null,
    });
  });

  it('reads a checkpoint from its text and back, and refuses everything else', () => {
    const key = newAuditKey();
    const mark = signMark(key, {
      kind: 'checkpoint',
      epoch: 2,
      seq: 77,
      hash: 'ab'.repeat(32),
      time: 1_700_000_000_000,
    });
    const text = checkpointText(mark);
    expect(parseCheckpoint(`${text}\n`)).toEqual(mark);
    for (const bad of ['', 'x', text.slice(1), `${text}x`, text.replace('.77.', '.0.'), text.toUpperCase()]) {
      expect(parseCheckpoint(bad), bad).toBeNull();
    }
  });

  it.each([
    ['altered', "update audit_events set summary = 'nothing' where seq = 4", 4],
    ['missing', 'delete from audit_events where seq = 4', 4],
    ['missing', 'delete from audit_events where seq < 3', 1],
    [
      'out_of_order',
      'update audit_events set seq = 100 where seq = 4; update audit_events set seq = 4 where seq = 7; ' +
        'update audit_events set seq = 7 where seq = 100',
      4,
    ],
    ['cut', 'delete from audit_events where seq > 7', 8],
    ['bad_signature', `update audit_marks set public_key = '${'0'.repeat(64)}'`, 10],
    ['bad_signature', "update audit_marks set time = time + 1 where kind = 'checkpoint'", 10],
    ['rewritten', `update audit_marks set hash = '${'0'.repeat(64)}'`, 10],
  ] as const)('names the first event that is %s', async (what, statement, seq) => {
    const log = storedLog();
    await log.write(10);
    log.tamper(statement);
    const store = await openStore({ file: log.file });
    const { verification } = auditOf(store, { key: log.key });
    const report = await verification.run({ since: null, signal: never });
    const expected = what === 'rewritten' ? 'bad_signature' : what;
    expect(report).toMatchObject({ intact: false, problem: { what: expected, seq } });
    expect(report.problem?.detail).toContain(String(what === 'cut' ? 7 : seq));
  });

  it('finds a cut tail although the orchestrator went on writing', async () => {
    const log = storedLog();
    await log.write(10);
    log.tamper('delete from audit_events where seq > 7');
    await log.write(5);
    const report = await log.verify();
    expect(report).toMatchObject({ events: 7, problem: { what: 'missing', seq: 8 } });
  });

  it('finds a log that was rewritten without the key', async () => {
    const log = storedLog();
    await log.write(300);
    await log.write(300);
    log.tamper("update audit_events set actor_name = 'somebody else' where seq = 400");
    await rechain(log.file, 400);
    const { problem } = await log.verify();
    expect(problem).toMatchObject({ what: 'rewritten', seq: 600 });
    expect(problem?.detail).toContain('after 300');
  });

  it('needs a checkpoint from elsewhere when the checkpoints were removed as well', async () => {
    const log = storedLog();
    await log.write(10);
    const kept = (await log.verify()).checkpoint?.text ?? '';
    log.tamper('delete from audit_events where seq > 7', 'delete from audit_marks');
    expect((await log.verify()).intact).toBe(true);
    expect(await log.verify(kept)).toMatchObject({
      intact: false,
      since: { seq: 10, found: 'not_confirmed' },
      problem: { what: 'cut', seq: 8 },
    });
    await log.write(5);
    expect(await log.verify(kept)).toMatchObject({ events: 0, problem: { what: 'rewritten', seq: 10 } });
  });

  it('tells of a checkpoint that another key has signed, or that was changed', async () => {
    const [log, other] = [storedLog(), storedLog()];
    await log.write(3);
    await other.write(3);
    const foreign = (await other.verify()).checkpoint?.text ?? '';
    const report = await log.verify(foreign);
    expect(report).toMatchObject({ intact: false, events: 3, problem: { what: 'bad_signature', seq: 3 } });
    expect(report.problem?.detail).toContain(other.key.publicKey);
    const own = (await log.verify()).checkpoint?.text ?? '';
    const changed = own.replace(/\.3\./, '.2.');
    expect((await log.verify(changed)).problem?.detail).toContain('its text was changed');
  });

  it('lets other work run all the time, however long the log is', async () => {
    const audit = auditOf(await openStore());
    for (let n = 0; n < 50; n += 1) await audit.emit(...Array.from({ length: 2000 }, () => event()));
    let rounds = 0;
    let running = true;
    const count = () => {
      rounds += 1;
      if (running) setImmediate(count);
    };
    setImmediate(count);
    const report = await audit.verification.run({ since: null, signal: never });
    running = false;
    expect(report).toMatchObject({ intact: true, events: 100_000 });
    expect(rounds).toBeGreaterThanOrEqual(500);
  });

  it('ends when its last caller has gone, and lets the next one begin', async () => {
    const audit = auditOf(await openStore());
    await audit.emit(...Array.from({ length: 1000 }, () => event()));
    const gone = audit.verification.run({ since: null, signal: AbortSignal.abort(new Error('gone')) });
    await expect(gone).rejects.toThrow('gone');
    expect((await audit.verification.run({ since: null, signal: never })).events).toBe(1000);
  });

  it('goes on while events are written and pruned', async () => {
    const audit = auditOf(await openStore());
    await audit.emit(...Array.from({ length: 5000 }, () => event()));
    audit.clock.advance(1000);
    await audit.emit(event());
    const context = {
      actor: { id: 'a', name: 'ada', type: 'operator' as const },
      rights: ALL_RIGHTS,
      requestId: 'r',
      address: null,
    };
    const [report, deleted] = await Promise.all([
      audit.verification.run({ since: null, signal: never }),
      audit.pruning.prune(audit.clock.now(), context, never),
      audit.emit(event()),
    ]);
    expect(deleted).toBe(5000);
    expect(report).toMatchObject({ intact: true, problem: null });
    expect(await audit.verification.run({ since: null, signal: never })).toMatchObject({
      intact: true,
      first_seq: 5001,
      pruned: { seq: 5000 },
    });
  });
});

describe('checkpoints', () => {
  it('are made after 256 events, and thinned out to that distance', async () => {
    const audit = auditOf(await openStore());
    await audit.checkpoints.start();
    for (let n = 0; n < 1030; n += 1) await audit.emit(event());
    await audit.checkpoints.stop();
    const seqs = (await newestCheckpoints(audit.db, 100)).map(({ seq }) => seq).reverse();
    expect(seqs.length).toBeGreaterThanOrEqual(4);
    for (const [index, seq] of seqs.slice(1, -1).entries())
      expect(seq - (seqs[index] ?? 0)).toBeGreaterThanOrEqual(256);
    expect(seqs.at(-1)).toBe(1030);
  });

  it('are made at the stop and do not pile up in a log that hardly grows', async () => {
    const log = storedLog();
    for (let n = 0; n < 5; n += 1) await log.write(1);
    await log.session(async ({ db }) => {
      expect((await newestCheckpoints(db, 100)).map(({ seq }) => seq)).toEqual([5]);
    });
  });

  it('are made anew with another key, and the log tells of it', async () => {
    const log = storedLog();
    await log.write(3);
    const kept = (await log.verify()).checkpoint?.text ?? '';
    const next = newAuditKey();
    const report = await log.session(async ({ db, verification }) => {
      const [last] = (await readAuditChain(db, 0, 100)).slice(-1);
      expect(last).toMatchObject({ event_type: 'audit.key_changed', severity: 'critical' });
      expect(JSON.parse(last?.metadata_json ?? '')).toMatchObject({
        former: log.key.publicKey,
        public_key: next.publicKey,
        seq: 3,
      });
      return verification.run({ since: parseCheckpoint(kept), signal: never });
    }, next);
    expect(report).toMatchObject({ events: 4, problem: { what: 'bad_signature' } });
    expect(report.problem?.detail).toContain('audit.key_changed');
  });

  it('that a new key finds untrue stay to be found', async () => {
    const log = storedLog();
    await log.write(3);
    log.tamper("update audit_events set summary = 'x' where seq = 2");
    await rechain(log.file, 2);
    const next = newAuditKey();
    for (let start = 0; start < 2; start += 1) {
      const [report, rows] = await log.session(
        async ({ verification, db }) => [
          await verification.run({ since: null, signal: never }),
          await readAuditChain(db, 0, 100),
        ],
        next,
      );
      expect(report).toMatchObject({ intact: false, problem: { what: 'bad_signature', seq: 3 } });
      expect(rows.filter(({ event_type }) => event_type === 'audit.key_changed')).toHaveLength(1);
    }
  });

  it('of another key do not cover a pruning that was never ordered', async () => {
    const log = storedLog();
    await log.write(10);
    const [row] = await log.session(({ db }) => readAuditChain(db, 3, 1));
    const forged = signMark(newAuditKey(), { kind: 'cut', epoch: 1, seq: 4, hash: row?.hash ?? '', time: 1 });
    const values = `'cut', 4, 1, '${forged.hash}', 1, '${forged.publicKey}', '${forged.signature}'`;
    log.tamper('delete from audit_events where seq <= 4', `insert into audit_marks values (${values})`);
    expect(await log.verify()).toMatchObject({ intact: false, problem: { what: 'bad_signature', seq: 4 } });
  });

  it('look at the start at what was written since, and the log of the orchestrator tells', async () => {
    const log = storedLog();
    await log.write(3);
    log.tamper('delete from audit_events where seq = 3');
    const logger = recordingLogger();
    const { checkpoints } = auditOf(await openStore({ file: log.file }), { key: log.key, logger });
    await checkpoints.start();
    await checkpoints.stop();
    expect(logger.lines).toMatchObject([{ level: 'error', fields: { event: 3, what: 'missing' } }]);
  });
});
