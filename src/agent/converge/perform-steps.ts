/** Executes the steps that are due together: file changes as one commit, equal commands as one command. */
import type { FaultCode } from '../../kernel/fault.js';
import { canonicalJson } from '../../kernel/json.js';
import { type Command, type CommandResult, commandFailure, exitedWith } from '../../resources/command.js';
import type { FileStep, Host, RunStep, Step, StepOutcome } from '../../resources/host.js';
import type { StepVerdict } from '../../resources/kind.js';
import type { Quotable } from './discretion.js';
import { refusalOf } from './observations.js';
import type { Refusal, Target } from './target.js';

/** A step and its resource. */
export interface DueStep {
  readonly target: Target;
  readonly step: Step;
}

/** The outcome of a step. */
export interface Performed {
  /** Null on success. */
  readonly refusal: Refusal | null;
  /** Output of its command, if the step keeps it. */
  readonly output: CommandResult | null;
}

/** Maximum characters of the items of one command; systems accept about two million. */
const MAX_ITEMS_LENGTH = 100_000;

/** Where steps are carried out. */
export interface Workshop {
  readonly host: Host;
  readonly quotable: Quotable;
}

/** Returns the outcomes in the order of the steps. */
export async function performSteps(shop: Workshop, due: readonly DueStep[]): Promise<readonly Performed[]> {
  const performed = new Map<DueStep, Performed>();
  const files = due.filter((one): one is DueStep & { step: FileStep } => one.step.do !== 'run');
  const outcomes = files.length === 0 ? [] : await commit(shop.host, files);
  for (const [at, one] of files.entries()) performed.set(one, { refusal: outcomes[at] ?? null, output: null });
  for (const batch of batchesOf(due)) {
    for (const [one, outcome] of await runBatch(shop, batch)) performed.set(one, outcome);
  }
  return due.map((one) => performed.get(one) ?? { refusal: null, output: null });
}

async function commit(host: Host, files: readonly { readonly step: FileStep }[]): Promise<readonly StepOutcome[]> {
  try {
    return await host.commit(files.map(({ step }) => step));
  } catch (error) {
    const refusal = refusalOf(error, 'apply_failed');
    return files.map(() => refusal);
  }
}

interface DueRun extends DueStep {
  readonly step: RunStep;
}

/** Batches steps whose commands are equal, as far as they fit into one command. */
function batchesOf(due: readonly DueStep[]): readonly (readonly DueRun[])[] {
  const batches: DueRun[][] = [];
  const open = new Map<string, { readonly batch: DueRun[]; length: number }>();
  for (const one of due) {
    if (!isRun(one)) continue;
    const { step } = one;
    const key =
      step.keepsOutput || step.checks ? null : canonicalJson([step.command, step.ok ?? null, step.items === undefined]);
    const length = (step.items ?? []).reduce((sum, item) => sum + item.length + 1, 0);
    const same = key === null ? undefined : open.get(key);
    if (same && same.length + length <= MAX_ITEMS_LENGTH) {
      same.batch.push(one);
      same.length += length;
      continue;
    }
    const batch = [one];
    batches.push(batch);
    if (key !== null) open.set(key, { batch, length });
  }
  return batches;
}

const isRun = (one: DueStep): one is DueRun => one.step.do === 'run';

async function runBatch(shop: Workshop, batch: readonly DueRun[]): Promise<readonly (readonly [DueRun, Performed])[]> {
  const [first, ...others] = batch;
  if (first === undefined) return [];
  return others.length > 0 ? runTogether(shop, first, batch) : [[first, await runAlone(shop, first)]];
}

/** Runs one command for several resources. After a failure, each unfinished step runs alone, so that only the culprit fails. */
async function runTogether(
  shop: Workshop,
  first: DueRun,
  batch: readonly DueRun[],
): Promise<readonly (readonly [DueRun, Performed])[]> {
  const { step } = first;
  const items = [...new Set(batch.flatMap((one) => one.step.items ?? []))];
  const result = await shop.host.run(withItems(step.command, items));
  if (succeeded(step, result)) return batch.map((one) => [one, DONE] as const);
  const targets = batch.map(({ target }) => target);
  const refusal = await explain(shop.host, first, shop.quotable(targets, result, step));
  if (step.items === undefined || result.end.how !== 'exited' || FOR_ALL.has(refusal.code)) {
    return batch.map((one) => [one, { refusal, output: null }] as const);
  }
  const performed: (readonly [DueRun, Performed])[] = [];
  for (const one of batch) {
    const judged = performedBy(await judge(shop.host, one, shop.quotable([one.target], result, step)));
    performed.push([one, judged ?? (await runAlone(shop, one))]);
  }
  return performed;
}

const DONE: Performed = { refusal: null, output: null };

/** Failures of the machine as a whole: they affect every resource of the batch, so none is tried alone. */
const FOR_ALL: ReadonlySet<FaultCode> = new Set([
  'package_manager_locked',
  'package_manager_broken',
  'command_missing',
]);

async function runAlone({ host, quotable }: Workshop, one: DueRun): Promise<Performed> {
  const { step } = one;
  const result = await host.run(withItems(step.command, step.items ?? []), step.checks);
  const output = step.keepsOutput ? result : null;
  if (succeeded(step, result)) return { refusal: null, output };
  const quoted = quotable([one.target], result, step);
  const judged = performedBy(await judge(host, one, quoted));
  return { refusal: judged ? judged.refusal : await explain(host, one, quoted), output };
}

/** Returns null when the outcome is not known yet. */
function performedBy(verdict: StepVerdict): Performed | null {
  if (verdict === 'undone') return null;
  return verdict === 'done' ? DONE : { refusal: verdict, output: null };
}

async function judge(host: Host, { target, step }: DueRun, result: CommandResult): Promise<StepVerdict> {
  try {
    return (await target.kind?.judge?.(host, target.source.body, step, result)) ?? 'undone';
  } catch {
    return 'undone';
  }
}

async function explain(host: Host, { target, step }: DueRun, result: CommandResult): Promise<Refusal> {
  try {
    const refusal = await target.kind?.explain?.(host, target.source.body, step, result);
    return refusal ?? commandFailure(step.command, result);
  } catch {
    return commandFailure(step.command, result);
  }
}

const succeeded = ({ ok = [0] }: RunStep, result: CommandResult): boolean => exitedWith(result, ...ok);

const withItems = (command: Command, items: readonly string[]): Command =>
  items.length === 0 ? command : { ...command, argv: [...command.argv, ...items] };
