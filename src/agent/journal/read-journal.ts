/** Reads the file of a journal, and says so when it cannot be trusted. */
import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Fault, messageOf, systemCodeOf } from '../../kernel/fault.js';
import { frameOf, readFrames, salvageFrames } from './frames.js';
import { type JournalRecord, JournalState } from './journal-state.js';

export const VERSION = 1;

/** The file in a data directory. */
export const journalFile = (directory: string): string => join(directory, 'journal');

export interface JournalContent {
  readonly state: JournalState;
  /** Bytes up to the end of the last whole frame; 0 when the file is new or was not finished being made. */
  readonly length: number;
  /** Bytes of the file. */
  readonly size: number;
}

/** Throws `journal_corrupt` when more than the very end of it is damaged; a missing file is an empty journal. */
export function readJournal(file: string): JournalContent {
  const data = bytesOf(file);
  const { lists, length, damagedAt } = readFrames(data);
  if (damagedAt !== null) throw corrupt(file, `is damaged at byte ${damagedAt}, before its end`, damagedAt);
  if (lists.length === 0 && data.length > longestFirstFrame()) throw corrupt(file, 'does not begin like a journal', 0);
  const state = new JournalState();
  for (const record of lists.flat()) state.absorb(asRecord(record, file));
  return { state, length, size: data.length };
}

/** Records that are true whatever was lost before them. */
const LASTING: ReadonlySet<JournalRecord['t']> = new Set(['journal', 'key', 'owe', 'notes', 'ack']);

/**
 * What a damaged journal proves: everything before the damage, and of the rest what does not build on what was lost. An apply
 * whose end is not proven is left out, because its results may have gaps; the orchestrator notes it as interrupted.
 */
export function salvageJournal(file: string): JournalState {
  const state = new JournalState();
  const { lists, proven } = salvageFrames(bytesOrNone(file));
  for (const [at, records] of lists.entries()) {
    for (const record of records.map((one) => asRecord(one, file))) {
      if (at < proven || LASTING.has(record.t)) state.absorb(record);
      else if (record.t === 'accepted') state.absorb({ ...record, t: 'journal', version: VERSION });
    }
  }
  for (const run of state.runs) if (run.end === null) state.absorb({ t: 'ack', run: run.id });
  return state;
}

function bytesOrNone(file: string): Buffer {
  try {
    return bytesOf(file);
  } catch {
    return Buffer.alloc(0);
  }
}

/** What `orch agent status` tells about a journal; the agent may be writing to it meanwhile. */
export interface JournalCounts {
  /** Applies whose results the orchestrator has not acknowledged. */
  readonly unacknowledged: number;
  /** Of these, the ones that have not ended. */
  readonly running: number;
  /** Triggers that the next apply has to answer. */
  readonly owed: number;
  readonly bytes: number;
}

/** Throws `journal_corrupt`. */
export function inspectJournal(directory: string): JournalCounts {
  const { state, size } = readJournal(journalFile(directory));
  const running = state.runs.filter(({ end }) => end === null).length;
  return { unacknowledged: state.runs.length, running, owed: state.owed.length, bytes: size };
}

function bytesOf(file: string): Buffer {
  try {
    const descriptor = openSync(file, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0));
    try {
      if (!fstatSync(descriptor).isFile()) throw corrupt(file, 'is not a regular file', 0);
      return readFileSync(descriptor);
    } finally {
      closeSync(descriptor);
    }
  } catch (error) {
    if (systemCodeOf(error) === 'ENOENT') return Buffer.alloc(0);
    if (error instanceof Fault) throw error;
    throw new Fault('data_dir_invalid', `cannot read the journal ${file}: ${messageOf(error)}`, { cause: error });
  }
}

/** The records were written by this program or an older one; a newer one may write what this one would misread. */
function asRecord(record: unknown, file: string): JournalRecord {
  const value = record as JournalRecord;
  if (value.t === 'journal' && value.version > VERSION) {
    throw new Fault('journal_corrupt', `the journal ${file} was written by a newer version of orch`, {
      hint: 'install that version again, or move the file away: results of past applies that were not delivered are lost then',
    });
  }
  return value;
}

/** A file that is shorter was cut off while it was made, before anything was accepted. */
const longestFirstFrame = (): number => {
  const largest = Number.MAX_SAFE_INTEGER;
  return frameOf([{ t: 'journal', version: VERSION, epoch: largest, generation: largest }]).length;
};

const corrupt = (file: string, why: string, offset: number): Fault =>
  new Fault('journal_corrupt', `the journal ${file} ${why}`, {
    hint: 'check the disk; at its next start the agent keeps the file aside and goes on with what the rest of it proves',
    data: { file, offset },
  });
