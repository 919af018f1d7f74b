/** A decision, and what became of it, as the result that is reported. */

import { unreachable } from '../../kernel/exhaustive.js';
import type { FaultCode } from '../../kernel/fault-code.js';
import { mask } from '../../kernel/tainted.js';
import type { Decision } from '../../resources/kind.js';
import type { ResourceResult } from '../../resources/result.js';
import type { RunItem } from '../../wire/messages.js';
import type { Decided } from './decide.js';
import { type Item, isSensitive } from './item.js';
import { textDiff } from './text-diff.js';

/** What became of a decision: shown only, done, or not done. */
export type Fate =
  | { readonly kind: 'shown' }
  | { readonly kind: 'done' }
  | { readonly kind: 'failed'; readonly code: FaultCode; readonly message: string }
  | { readonly kind: 'skipped'; readonly code: FaultCode; readonly message: string };

/** @param durationMs whole milliseconds */
export function present({ item, decision, existed }: Decided, fate: Fate, durationMs = 0): RunItem {
  const result = { ...base(item), duration_ms: durationMs };
  if (fate.kind === 'failed' || fate.kind === 'skipped') {
    const error = { code: fate.code, message: fate.message };
    return {
      index: item.index,
      existed,
      result: { ...result, ...shown(item, decision), status: fate.kind, error, reason: fate.message },
    };
  }
  const done = fate.kind === 'done' ? 'changed' : 'pending';
  switch (decision.action) {
    case 'none':
      return { index: item.index, existed, result };
    case 'fail': {
      const error = { code: decision.code, message: decision.message };
      return { index: item.index, existed, result: { ...result, status: 'failed', error, reason: decision.message } };
    }
    case 'release':
    case 'create':
    case 'update':
    case 'remove':
      return { index: item.index, existed, result: { ...result, ...shown(item, decision), status: done } };
    default:
      return unreachable(decision);
  }
}

function base(item: Item): ResourceResult {
  const { module, kind, identity, id, name } = item.resource;
  return {
    module,
    kind,
    identity,
    id: id ?? null,
    name: name ?? null,
    action: 'none',
    status: 'unchanged',
    changes: [],
    diff: null,
    sensitive: isSensitive(item),
    reason: null,
    error: null,
    duration_ms: 0,
  };
}

function shown(item: Item, decision: Decision): Pick<ResourceResult, 'action' | 'changes' | 'diff' | 'reason'> {
  if (decision.action === 'none' || decision.action === 'fail')
    return { action: 'none', changes: [], diff: null, reason: null };
  if (decision.action === 'release') return { action: 'release', changes: [], diff: null, reason: decision.reason };
  const taint = item.purpose === 'desire' ? item.resource.taint : undefined;
  const changes = decision.changes.map((change) => {
    const spans = taint?.[`/${change.field}`];
    const { before, after } = change;
    if (!spans?.length) return { ...change };
    return {
      field: change.field,
      before: before === null ? null : '‹masked›',
      after: after === null ? null : mask(after, spans),
    };
  });
  const diff = decision.text
    ? textDiff({ label: item.resource.identity, ...decision.text, spans: taint?.['/content'] })
    : null;
  return { action: decision.action, changes, diff, reason: decision.reason ?? null };
}
