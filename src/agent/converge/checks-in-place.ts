/**
 * Checks files in their places, because some programs cannot check one file alone: the files of a group with one command are written,
 * the command runs once, and if it or one of the files fails, all of them get back what was there.
 */
import { canonicalJson } from '../../kernel/json.js';
import type { KeptPaths, RunStep, Step } from '../../resources/host.js';
import type { Pending } from './examined.js';
import { refusalOf } from './observations.js';
import { type Performed, performSteps } from './perform-steps.js';
import type { Run } from './run.js';
import type { Refusal } from './target.js';

type Perform = (pendings: readonly Pending[]) => Promise<Map<number, Performed>>;

interface CheckStep extends RunStep {
  readonly restores: string;
}

interface Checked {
  readonly pending: Pending;
  readonly step: CheckStep;
}

/** Returns the outcomes of all changes by position. @param perform makes the changes, without the checks */
export async function withChecksInPlace(
  run: Run,
  pendings: readonly Pending[],
  perform: Perform,
): Promise<Map<number, Performed>> {
  const checked = pendings.flatMap((pending): readonly Checked[] => {
    const step = pending.change.steps.find(isCheck);
    return step === undefined ? [] : [{ pending, step }];
  });
  if (checked.length === 0) return perform(pendings);
  let kept: KeptPaths;
  try {
    if (run.host.keep === undefined) throw new Error('this system cannot put files back');
    kept = await run.host.keep(checked.map(({ step }) => step.restores));
  } catch (error) {
    const refusal = refusalOf(error, 'apply_failed');
    const names = new Set(checked.map(({ pending }) => pending.target.index));
    const performed = await perform(pendings.filter(({ target }) => !names.has(target.index)));
    for (const index of names) performed.set(index, { refusal, output: null });
    return performed;
  }
  try {
    const performed = await perform(pendings.map(withoutCheck));
    for (const set of setsOf(checked)) await checkSet(run, set, performed, kept);
    return performed;
  } catch (error) {
    // The agent stops in the middle of a check, which has not succeeded.
    for (const { step } of checked) await kept.restore(step.restores);
    throw error;
  } finally {
    kept.drop();
  }
}

const isCheck = (step: Step): step is CheckStep => step.do === 'run' && step.restores !== undefined;

const withoutCheck = (pending: Pending): Pending => ({
  ...pending,
  change: { ...pending.change, steps: pending.change.steps.filter((step) => !isCheck(step)) },
});

function setsOf(checked: readonly Checked[]): readonly (readonly Checked[])[] {
  const sets = new Map<string, Checked[]>();
  for (const one of checked) {
    const key = canonicalJson(one.step.command);
    const set = sets.get(key);
    if (set) set.push(one);
    else sets.set(key, [one]);
  }
  return [...sets.values()];
}

/** Runs the check of files that are in place, and notes the refusals. */
async function checkSet(
  run: Run,
  set: readonly Checked[],
  performed: Map<number, Performed>,
  kept: KeptPaths,
): Promise<void> {
  const refusalIn = ({ pending }: Checked) => performed.get(pending.target.index)?.refusal ?? null;
  const broken = set.find((one) => refusalIn(one) !== null);
  if (broken === undefined) {
    const outcomes = await performSteps(
      run,
      set.map(({ pending: { target }, step }) => ({ target, step })),
    );
    for (const [at, { pending }] of set.entries()) {
      const outcome = outcomes[at];
      if (outcome !== undefined && outcome.refusal !== null) performed.set(pending.target.index, outcome);
    }
  } else {
    const message = `${broken.step.restores}, which is checked together with it, failed`;
    for (const one of set) {
      if (refusalIn(one) !== null) continue;
      performed.set(one.pending.target.index, { refusal: { code: 'dependency_failed', message }, output: null });
    }
  }
  for (const one of set) {
    const refusal = refusalIn(one);
    if (refusal === null) continue;
    const problem = await kept.restore(one.step.restores);
    performed.set(one.pending.target.index, { refusal: after(one.step.restores, problem, refusal), output: null });
  }
}

const after = (path: string, problem: string | null, { code, message }: Refusal): Refusal => ({
  code,
  message:
    problem === null
      ? `${path} is as before, because ${message}`
      : `${path} may have its new content, because the former one could not be put back (${problem}); ${message}`,
});
