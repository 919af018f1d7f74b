/** Applies one group: announces it, changes it, looks again, and says what became of each resource. */
import type { Host } from '../../resources/host.js';
import type { RunItem } from '../../wire/messages.js';
import type { Pending } from './examined.js';
import { type DueStep, performSteps } from './perform-steps.js';
import type { Run } from './run.js';
import type { Finding } from './run-item.js';
import type { Refusal, Target } from './target.js';

/** What is about to be done to a resource; kept so that its fate can be told after a crash. */
export interface Intent {
  readonly index: number;
  readonly action: RunItem['result']['action'];
  readonly existed: boolean;
}

/** Called before anything is changed; what it was told of must be on the disk when it returns. */
export type Intend = (intents: readonly Intent[]) => void | Promise<void>;

export async function applyGroup(run: Run, group: readonly Target[], intend: Intend | undefined): Promise<void> {
  const since = run.now();
  const examined = await run.examine(group);
  const pendings = examined.flatMap((one) => ('pending' in one ? [one.pending] : []));
  if (pendings.length > 0) {
    await intend?.(
      pendings.map(({ target, change, existed }) => ({ index: target.index, action: change.action, existed })),
    );
  }
  const fates = await changeAll(run, pendings);
  const findings = examined.map((one) =>
    'pending' in one ? fateOf(one.pending, fates.get(one.pending.target.index) ?? null) : settled(one.finding),
  );
  await run.report(findings, since);
}

/** Why each has failed, or null. */
async function changeAll(run: Run, pendings: readonly Pending[]): Promise<ReadonlyMap<number, Refusal | null>> {
  const refusals = await commitAll(run.host, pendings);
  const changed = pendings.filter(({ target }) => !refusals.has(target.index)).map(({ target }) => target);
  return new Map([...refusals, ...(await run.differences(changed))]);
}

/** First steps first; a resource whose step fails goes no further. */
async function commitAll(host: Host, pendings: readonly Pending[]): Promise<ReadonlyMap<number, Refusal>> {
  const refusals = new Map<number, Refusal>();
  const rounds = Math.max(0, ...pendings.map(({ change }) => change.steps.length));
  for (let round = 0; round < rounds; round += 1) {
    const due: DueStep[] = [];
    for (const { target, change } of pendings) {
      const step = change.steps[round];
      if (step && !refusals.has(target.index)) due.push({ target, step });
    }
    const performed = await performSteps(host, due);
    for (const [at, { target }] of due.entries()) {
      const refusal = performed[at]?.refusal;
      if (refusal) refusals.set(target.index, refusal);
    }
  }
  return refusals;
}

function fateOf({ target, change, existed }: Pending, refusal: Refusal | null): Finding {
  const { action, changes, text, reason } = change;
  const seen = { target, action, changes, ...(text ? { text } : {}), reason, existed };
  if (refusal === null) return { ...seen, status: 'changed' };
  return { ...seen, status: 'failed', error: refusal };
}

/** A release is done by no longer looking after it. */
const settled = (finding: Finding): Finding =>
  finding.action === 'release' && finding.status === 'pending' ? { ...finding, status: 'changed' } : finding;
