/**
 * Recovers from a damaged or missing journal: keeps the damaged file beside a new one with what it proves, and remembers the
 * loss until it was reported to the orchestrator.
 */
import { existsSync, linkSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { syncDirectory } from '../../disk/durable.js';
import { isFault } from '../../kernel/fault.js';
import { type JournalContent, journalFile, readJournal, salvageJournal } from './read-journal.js';

/** Marker file that exists since the first journal was created. */
const MARKER = 'journal.made';
/** File with the sentence about the loss. */
const NOTE = 'journal.loss';
/** Maximum damaged journals that are kept; the last name is reused. */
const KEPT = 9;
/** Maximum characters that the link accepts. */
const MAX_NOTE = 512;

interface UsableJournal extends JournalContent {
  /** Sentence about what was lost; null when nothing was. */
  readonly loss: string | null;
}

/**
 * Reads the journal of a data directory; keeps a damaged one under another name and salvages it. Throws `journal_corrupt` for
 * a newer version, and `data_dir_invalid`.
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

/** True when a journal can be used as it is. Throws like `recoverJournal`. */
export function isJournalWhole(directory: string): boolean {
  try {
    return readJournal(journalFile(directory)).length > 0 || !existsSync(join(directory, MARKER));
  } catch (error) {
    if (isFault(error, 'journal_corrupt')) return false;
    throw error;
  }
}

/** Records that a journal exists, so that its absence is detected. */
export function markMade(directory: string): void {
  try {
    writeFileSync(join(directory, MARKER), '', { flag: 'a', mode: 0o600 });
  } catch {
    // The disk is full; the next start tries again.
  }
}

/** Returns the unreported loss, or null. */
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
    // The log has the sentence as well.
  }
  return loss;
}

/** Keeps a copy of the file under another name by a hard link, so that the original stays until it is replaced. */
function keepAside(file: string): string {
  const names = Array.from({ length: KEPT }, (_, at) => `${file}.damaged-${at + 1}`);
  const kept = names.find((name) => !existsSync(name)) ?? `${file}.damaged-${KEPT}`;
  rmSync(kept, { force: true, recursive: true });
  try {
    linkSync(file, kept);
  } catch {
    renameSync(file, kept);
  }
  syncDirectory(dirname(file));
  return kept;
}
