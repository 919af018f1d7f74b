/** The engine and the journal of this machine without a link, for `--local`. */
import type { Clock } from '../kernel/clock.js';
import { Fault, type FaultCode, isFault, messageOf } from '../kernel/fault.js';
import { silentLogger } from '../kernel/logger.js';
import type { CheckReport } from '../resources/checks/check.js';
import { maskResource } from '../resources/tainted-body.js';
import type { RunItem } from '../wire/messages.js';
import type { RunContent } from '../wire/parts.js';
import { clearContent, contentPaths } from './content/content-directory.js';
import { ContentDownloads } from './content/content-downloads.js';
import type { Intent } from './converge/apply-group.js';
import type { Notes, Precautions } from './converge/ledger.js';
import { notesOfNewProcess } from './converge/ledger-updates.js';
import { apply, drift, type Outcome, plan } from './converge.js';
import { boundedError } from './engine/apply-run.js';
import type { SourceFiles } from './host/source-files.js';
import { thisHost } from './host/this-host.js';
import { forgetLoss } from './journal/journal-loss.js';
import { Journal } from './journal.js';
import { endWithChecks, modulesWithoutChecks } from './verify/verified-end.js';

interface LocalRunOptions {
  /** Stops the run at the next resource boundary. */
  readonly signal: AbortSignal;
  readonly onResults: (items: readonly RunItem[]) => void;
}

interface LocalApplyOptions extends LocalRunOptions {
  readonly operationId: string;
  /** Paths on this machine of the files beside modules, by SHA-256 in hex. */
  readonly files: ReadonlyMap<string, string>;
  /** `observed` hash of a plan; the apply is refused if the machine has changed since. */
  readonly expect: string | null;
  /** Maximum entries that purges may delete together. */
  readonly mayPurge: number;
  /** Called before the first change is announced. The apply ends without it when this throws. */
  readonly beforeChanges: () => void;
}

/** Opens the engine of a data directory, which the caller must hold. Throws like `Journal`. */
export function openLocalEngine(directory: string, clock: Clock) {
  const journal = new Journal(directory);
  journal.recordNotes(notesOfNewProcess(journal));
  // The caller shows the loss now.
  forgetLoss(directory);
  const own = { clock, ledger: journal };
  const hostOf = ({ signal }: LocalRunOptions) => thisHost({ signal, dataDir: directory });
  return {
    /** Applies that were cut off before their results were stored elsewhere, oldest first; secrets are masked. */
    applies: journal.runs.map(({ id, content, intents, items }) => ({ operationId: id, content, intents, items })),
    /** Sentence about a damaged or missing journal; null if it was intact. */
    loss: journal.loss,
    plan: (content: RunContent, options: LocalRunOptions) => plan(content, hostOf(options), { ...own, ...options }),
    drift: (content: RunContent, options: LocalRunOptions) => drift(content, hostOf(options), { ...own, ...options }),
    /** Each change is in the journal before it is made, and each result before it is passed on. */
    apply: async (content: RunContent, options: LocalApplyOptions): Promise<Verified> => {
      const { operationId, onResults, beforeChanges, files, ...rest } = options;
      const downloads = new ContentDownloads({ dataDir: directory, logger: silentLogger, clock, context: null });
      const { signal } = options;
      signal.addEventListener('abort', () => void downloads.stop(), { once: true });
      const host = thisHost({ signal, dataDir: directory, files: filesHere(files, downloads, directory) });
      const record = new ApplyRecord(journal, operationId, content);
      const applied = await apply(content, host, {
        ...own,
        ...rest,
        runId: operationId,
        intend: (intents, precautions) => {
          if (!record.isAccepted) beforeChanges();
          record.intend(intents, precautions);
        },
        onResults: (items, notes) => {
          record.take(items, notes);
          onResults(items);
        },
      });
      const outcome = await verified(applied, content, { clock, directory, signal: options.signal });
      clearContent(directory, clock.now());
      const error = record.end(outcome);
      for (const { command, items = [] } of applied.deferred ?? []) {
        await host.run({ ...command, argv: [...command.argv, ...items] });
      }
      return error === null || outcome.error !== null ? outcome : { ...outcome, end: 'failed', error };
    },
    /** Removes every apply from the journal. Call it once their results are stored elsewhere. */
    acknowledge: (): void => {
      for (const { id, end } of journal.runs) {
        if (end === null) journal.end(id, 'interrupted', null);
      }
      sync(journal);
      for (const { id } of journal.runs) journal.acknowledge(id);
      sync(journal);
    },
  };
}

/** Returns the source of files that are on this machine already, and of downloads. */
const filesHere = (paths: ReadonlyMap<string, string>, downloads: ContentDownloads, dataDir: string): SourceFiles => ({
  bring: async (file) => {
    if (file.url !== undefined) {
      await downloads.fetch(file);
      return contentPaths(dataDir, file.sha256).complete;
    }
    const path = paths.get(file.sha256);
    if (path === undefined) throw new Fault('content_unavailable', 'it is not beside the module');
    return path;
  },
});

/** The outcome of an apply with the reports of its health checks. */
interface Verified extends Outcome {
  readonly checks?: readonly CheckReport[];
}

interface VerifyTools {
  readonly clock: Clock;
  readonly directory: string;
  readonly signal: AbortSignal;
}

/** Runs the health checks of the modules without failures. */
async function verified(
  outcome: Outcome,
  content: RunContent,
  { clock, directory, signal }: VerifyTools,
): Promise<Verified> {
  const { verify = [] } = content;
  const without = modulesWithoutChecks(outcome, content);
  if (without === null) return outcome;
  const { runChecks } = await import('./verify/run-checks.js');
  const createHost = (own: AbortSignal) => thisHost({ signal: own, dataDir: directory });
  const checks = await runChecks(content, { clock, signal, createHost, without });
  return { ...outcome, ...endWithChecks(outcome, verify, checks, signal), checks };
}

/** An apply that enters the journal with its first change. One that changes nothing leaves no trace there. */
class ApplyRecord {
  private readonly journal: Journal;
  private readonly id: string;
  private readonly content: RunContent;
  isAccepted = false;
  /** Results before the first change. */
  private readonly earlier: RunItem[] = [];

  constructor(journal: Journal, id: string, content: RunContent) {
    this.journal = journal;
    this.id = id;
    this.content = content;
  }

  intend(intents: readonly Intent[], precautions: Precautions): void {
    const { journal, id, content } = this;
    if (!this.isAccepted) {
      const { resources, removals } = content;
      const masked = { resources: resources.map(maskResource), removals: removals.map(maskResource) };
      journal.accept({ id, epoch: 0, generation: 0, content: masked });
      this.isAccepted = true;
      journal.record(id, this.earlier);
    }
    journal.intend(id, intents, precautions);
  }

  /** Results that cannot be written stay pending. The next change is then not announced, and so not begun. */
  take(items: readonly RunItem[], notes: Notes): void {
    const kept = items.map(withoutTexts);
    if (this.isAccepted) this.journal.record(this.id, kept, notes);
    else {
      this.earlier.push(...kept);
      this.journal.recordNotes(notes);
    }
    const hasChanged =
      notes.paid.length + notes.memos.length > 0 || items.some(({ result }) => result.status !== 'unchanged');
    if (hasChanged) sync(this.journal);
  }

  /** Records the end of the apply. Returns the error of the journal, or null. */
  end({ end, error }: Outcome): { readonly code: FaultCode; readonly message: string } | null {
    if (this.isAccepted) this.journal.end(this.id, end, error && boundedError(error.code, error.message));
    return sync(this.journal);
  }
}

/** Returns the result without what only its reader needs, to keep the journal small. */
const withoutTexts = ({ index, existed, result }: RunItem): RunItem => ({
  index,
  existed,
  result: { ...result, changes: [], diff: null },
});

/** Flushes the journal and returns its error, or null. */
function sync(journal: Journal): { readonly code: FaultCode; readonly message: string } | null {
  try {
    journal.sync();
    return null;
  } catch (error) {
    return { code: isFault(error) ? error.code : 'internal', message: messageOf(error) };
  }
}
