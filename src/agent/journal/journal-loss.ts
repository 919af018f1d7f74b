/**
 * A journal that was damaged or is gone: the agent goes on with what the rest of it proves, keeps the damaged file beside the new
 * one, and remembers the loss until the orchestrator has heard of it.
 */
import { existsSync, linkSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isFault } from '../../kernel/fault.js';
import { type JournalContent, journalFile, readJournal, salvageJournal } from './read-journal.js';

/** Present since a journal was first made. */
const MARKER = 'journal.made';
/** The sentence about the loss. */
const NOTE = 'journal.loss';
/** Damaged journals that are kept; the last place is used again. */
const KEPT = 9;
/** What the link takes, in characters. */
const MAX_NOTE = 512;

export interface UsableJournal extends JournalContent {
  /** What was lost; null when nothing was. */
  readonly loss: string | null;
}

/**
 * Reads the journal of a data directory; a damaged one is kept under another name, and read as far as it can be trusted.
 * Throws `journal_corrupt` for one of a newer version, and `data_dir_invalid`.
 */
export function recoverJournal(directory: string): UsableJournal {
  const file = journalFile(directory);
  try {
    const content = readJournal(file);
    if (content.length > 0 || !existsSync(join(directory, MARKER))) return { ...content, loss: null };
    const loss = `the journal ${file} is empty or missing, although this agent has written one`;
    return { ...content, loss: noteLoss(directory, loss) };
  } catch (error) {
    if (!isFault(error, 'journal_corrupt') || error.data?.offset === undefined) throw error;
    const state = salvageJournal(file);
    const kept = keepAside(file);
    return { state, length: 0, size: 0, loss: noteLoss(directory, `${error.message}; it is kept as ${kept}`) };
  }
}

/** Whether a journal can be used as it is. Throws as `recoverJournal`. */
export function isJournalWhole(directory: string): boolean {
  try {
    return readJournal(journalFile(directory)).length > 0 || !existsSync(join(directory, MARKER));
  } catch (error) {
    if (isFault(error, 'journal_corrupt')) return false;
    throw error;
  }
}

/** Notes that there is a journal, so that its absence is seen. */
export function markMade(directory: string): void {
  try {
    writeFileSync(join(directory, MARKER), '', { flag: 'a', mode: 0o600 });
  } catch {
    // The disk is full; the next start does it.
  }
}

/** The loss that the orchestrator has not heard of; null when there is none. */
export function readLoss(directory: string): string | null {
  try {
    return readFileSync(join(directory, NOTE), 'utf8').slice(0, MAX_NOTE);
  } catch {
    return null;
  }
}

export function forgetLoss(directory: string): void {
  rmSync(join(directory, NOTE), { force: true });
}

function noteLoss(directory: string, loss: string): string {
  try {
    writeFileSync(join(directory, NOTE), loss, { mode: 0o600 });
  } catch {
    // The log has it all the same.
  }
  return loss;
}

/** Gives the file another name; a link, so that the file is in its place until another one is. */
function keepAside(file: string): string {
  const names = Array.from({ length: KEPT }, (_, at) => `${file}.damaged-${at + 1}`);
  const kept = names.find((name) => !existsSync(name)) ?? `${file}.damaged-${KEPT}`;
  rmSync(kept, { force: true, recursive: true });
  try {
    linkSync(file, kept);
  } catch {
    renameSync(file, kept);
  }
  return kept;
}
