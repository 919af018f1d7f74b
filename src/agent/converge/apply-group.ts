/** Applies one group of resources: announces the changes, makes them, observes again, and reports the result of each. */
import { canonicalJson } from '../../kernel/json.js';
import type { CommandResult } from '../../resources/command.js';
import type { FileStep, RunStep, Step } from '../../resources/host.js';
import { isPurge } from '../../resources/purge.js';
import type { RunItem } from '../../wire/messages.js';
import { withChecksInPlace } from './checks-in-place.js';
import type { Change, Examined, Pending } from './examined.js';
import type { Notes, Precautions } from './ledger.js';
import { type DueStep, type Performed, performSteps } from './perform-steps.js';
import type { Run } from './run.js';
import type { Finding } from './run-item.js';
import type { Refusal, Target } from './target.js';

/** An announced change of a resource; kept so that its outcome can be determined after a crash. */
export interface Intent {
  readonly index: number;
  readonly action: RunItem['result']['action'];
  readonly existed: boolean;
}

/** Called before anything is changed, with the steps by which purges delete. The intents and the ledger's entries must be on the disk when it returns. */
export type Intend = (
  intents: readonly Intent[],
  precautions: Precautions,
  purges: readonly FileStep[],
) => void | Promise<void>;

export async function applyGroup(run: Run, group: readonly Target[], intend: Intend | undefined): Promise<void> {
  const since = run.now();
  const examined = await run.examine(group);
  const pendings = examined.flatMap((one) => ('pending' in one ? [one.pending] : []));
  if (pendings.length > 0) {
    const intents = pendings.map(({ target, change, existed }) => ({
      index: target.index,
      action: change.action,
      existed,
    }));
    const precautions = {
      owed: run.ledgerUpdates.owedBy(pendings),
      memos: run.ledgerUpdates.memosBefore(pendings),
    };
    await intend?.(intents, precautions, pendings.flatMap(purgesOf));
    await run.prepareChange(pendings, group);
  }
  const fates = await changeAll(run, pendings);
  const findings = examined.map((one) =>
    'pending' in one ? fateOf(one.pending, fates.get(one.pending.target.index)) : settled(one.finding),
  );
  const deferring = new Set(pendings.filter(({ change }) => change.steps.some(isDeferred)).map(({ target }) => target));
  for (const { index } of deferring) run.deferring.add(index);
  await run.report(findings, since, () => notesAfter(run, findings, { fates, deferring }));
}

/** Returns the steps by which a resource deletes what nothing declares. */
const purgesOf = ({ target, change }: Pending): readonly FileStep[] =>
  isPurge(target.source)
    ? change.steps.flatMap((step) => (step.do === 'remove-file' || step.do === 'remove-tree' ? [step] : []))
    : [];

/** The outcome of the steps of one resource. */
interface Fate extends Remains {
  readonly refusal: Refusal | null;
  readonly output: CommandResult | null;
}

interface Remains {
  /** True when the resource is found as it was before, so that no trigger follows. */
  readonly isUntouched: boolean;
  /** True when no part of the resource exists. */
  readonly isAbsent: boolean;
}

const UNKNOWN: Remains = { isUntouched: false, isAbsent: false };

async function changeAll(run: Run, pendings: readonly Pending[]): Promise<ReadonlyMap<number, Fate>> {
  const performed = await withChecksInPlace(run, pendings, (changes) => performAll(run, changes));
  const done = pendings.filter(({ target }) => performed.get(target.index)?.refusal === null);
  const failed = pendings.filter((pending) => !done.includes(pending));
  const seen = done.filter(({ change }) => change.isUnseen !== true);
  const differences = await run.differences(seen.map(({ target }) => target));
  const remains = await remainsOf(run, failed);
  return new Map(
    pendings.map(({ target: { index } }) => {
      const { refusal, output } = performed.get(index) ?? NOTHING;
      const why = refusal ?? differences.get(index) ?? null;
      return [index, { refusal: why, output, ...(remains.get(index) ?? UNKNOWN) }];
    }),
  );
}

/** Observes the failed resources again where triggers or an unfinished creation depend on the answer. */
async function remainsOf(run: Run, failed: readonly Pending[]): Promise<ReadonlyMap<number, Remains>> {
  const asked = failed.filter(({ target, change }) => run.triggers.hasListeners(target) || change.action === 'create');
  if (asked.length === 0) return new Map();
  const now = await run.examineAgain(asked.map(({ target }) => target));
  return new Map(
    asked.map((before, at) => {
      const after = now[at];
      const isAbsent = after !== undefined && 'pending' in after && !after.pending.isThere;
      return [before.target.index, { isUntouched: isSame(before, after), isAbsent }];
    }),
  );
}

function isSame({ change: before }: Pending, now: Examined | undefined): boolean {
  if (now === undefined || !('pending' in now)) return false;
  const { change } = now.pending;
  const seen = ({ action, changes, text }: Change) => canonicalJson([action, changes, text?.before ?? null]);
  return seen(before) === seen(change);
}

/** Runs the first steps of all resources, then the second ones, and so on; a resource stops at its first failed step. */
async function performAll(run: Run, pendings: readonly Pending[]): Promise<Map<number, Performed>> {
  const fates = new Map<number, Performed>(pendings.map(({ target }) => [target.index, NOTHING]));
  const rounds = Math.max(0, ...pendings.map(({ change }) => change.steps.length));
  for (let round = 0; round < rounds; round += 1) {
    const due: DueStep[] = [];
    for (const { target, change } of pendings) {
      const step = change.steps[round];
      if (!step || fates.get(target.index)?.refusal !== null) continue;
      if (isDeferred(step)) run.deferred.push(step);
      else due.push({ target, step });
    }
    for (const [at, { refusal, output }] of (await performSteps(run, due)).entries()) {
      const index = due[at]?.target.index ?? -1;
      fates.set(index, { refusal, output: output ?? fates.get(index)?.output ?? null });
    }
  }
  return fates;
}

const NOTHING: Performed = { refusal: null, output: null };

const isDeferred = (step: Step): step is RunStep => step.do === 'run' && step.isDeferred === true;

interface Outcomes {
  readonly fates: ReadonlyMap<number, Fate>;
  /** Resources whose triggers are answered only by the end of the agent. */
  readonly deferring: ReadonlySet<Target>;
}

function notesAfter(run: Run, findings: readonly Finding[], { fates, deferring }: Outcomes): Notes {
  const well = findings.filter(({ status }) => status === 'unchanged' || status === 'changed');
  const untouched = findings.filter(({ target }) => fates.get(target.index)?.isUntouched === true);
  const absent = findings.filter(({ target }) => fates.get(target.index)?.isAbsent === true);
  const { paid, memos } = run.ledgerUpdates.notesOf(
    well.map(({ target }) => target),
    deferring,
  );
  return {
    paid: [...paid, ...untouched.flatMap(({ target }) => run.triggers.cancelledBy(target))],
    memos: [...memos, ...run.ledgerUpdates.notBegun(absent.map(({ target }) => target))],
  };
}

function fateOf({ target, change, existed }: Pending, fate: Fate | undefined): Finding {
  const { action, changes, text, reason } = change;
  const output = fate?.output ?? undefined;
  const seen = { target, action, changes, ...(text ? { text } : {}), ...(output ? { output } : {}), reason, existed };
  if (!fate?.refusal) return { ...seen, status: 'changed' };
  return { ...seen, status: 'failed', error: fate.refusal, ...(fate.isAbsent ? { existed: null } : {}) };
}

/** Reports a release as done: it takes no step, orch only stops managing the resource. */
const settled = (finding: Finding): Finding =>
  finding.action === 'release' && finding.status === 'pending' ? { ...finding, status: 'changed' } : finding;
