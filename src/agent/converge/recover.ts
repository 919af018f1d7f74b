/** Tells the truth about an apply whose process died in the middle: what was being changed is looked at, nothing is done again. */
import type { Host } from '../../resources/host.js';
import type { RunItem } from '../../wire/messages.js';
import type { RunContent } from '../../wire/parts.js';
import type { Intent } from './apply-group.js';
import { type Examined, failed } from './examined.js';
import { Run, type RunOptions } from './run.js';
import type { Finding } from './run-item.js';
import { isRemoval, type Target } from './target.js';

export interface Remains {
  /** What was announced and may or may not have happened. */
  readonly intents: readonly Intent[];
  /** Positions of the resources whose results are known. */
  readonly reported: Iterable<number>;
}

/** The results that are missing: of what was announced as it is found now, and of the rest as skipped. */
export async function recover(
  content: RunContent,
  host: Host,
  { intents, reported, ...options }: Remains & Pick<RunOptions, 'clock' | 'ledger'>,
): Promise<readonly RunItem[]> {
  const run = new Run(content, host, { ...options, purpose: 'drift', isIndependent: true });
  const known = new Set(reported);
  run.passOver(known);
  const open = new Map(intents.filter(({ index }) => !known.has(index)).map((intent) => [intent.index, intent]));
  for (const targets of [run.desired, run.removals]) {
    const announced = targets.filter(({ index }) => open.has(index));
    host.tidy?.(announced.flatMap(({ kind, source }) => (kind?.family === 'path' ? [source.identity] : [])));
    const since = run.now();
    const examined = await run.examine(announced);
    const findings = announced.map((target, at) => fateOf(target, examined[at], open.get(target.index)));
    await run.report(findings, since);
  }
  await run.skipRest({ code: 'interrupted', message: 'the agent was interrupted before this resource' });
  return run.results;
}

/** What they have done cannot be seen afterwards. A trigger that was not answered stays owed. */
const MOMENTARY: ReadonlySet<Intent['action']> = new Set<Intent['action']>(['reload', 'restart']);

function unknownFate(target: Target, { action, existed }: Intent): Finding {
  const message = `the agent stopped in the middle of it; the next apply does the ${action} again`;
  return { ...failed(target, { code: 'interrupted', message }, existed), action };
}

function fateOf(target: Target, examined: Examined | undefined, intent: Intent | undefined): Finding {
  const existed = intent?.existed ?? null;
  if (intent && MOMENTARY.has(intent.action)) return unknownFate(target, intent);
  if (examined && 'finding' in examined && examined.finding.status === 'unchanged') {
    const reason = 'found done after the agent was interrupted';
    return { target, action: intent?.action ?? 'update', status: 'changed', reason, existed };
  }
  const what = isRemoval(target.source) ? 'removed' : 'in the desired state';
  const message = `the agent stopped in the middle of it; it is not ${what}`;
  const action = intent?.action ?? 'none';
  return { ...failed(target, { code: 'interrupted', message }, existed), action };
}
