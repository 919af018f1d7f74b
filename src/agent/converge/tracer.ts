/** Traces of drift: a hash of what is there now instead, and the time of the change. */
import { createHash } from 'node:crypto';
import { canonicalJson } from '../../kernel/json.js';
import type { FileStamp, Host } from '../../resources/host.js';
import { isTainted } from '../../resources/tainted-body.js';
import type { AgentMessageOf } from '../../wire/messages.js';
import type { Examined } from './examined.js';
import { digestOf } from './fingerprint.js';
import { Masking } from './masking.js';
import type { Target } from './target.js';

export type Trace = NonNullable<AgentMessageOf<'run_finished'>['traces']>[number];

/** Maximum number of traces of one run, which travel in one message. */
export const MAX_TRACES = 1_000;

export class Tracer {
  readonly traces: Trace[] = [];
  private readonly host: Host;

  constructor(host: Host) {
    this.host = host;
  }

  /** Adds the trace of a drifted resource. */
  add(examined: Examined): void {
    if (this.traces.length >= MAX_TRACES) return;
    const target = 'finding' in examined ? examined.finding.target : examined.pending.target;
    const { kind, source, index } = target;
    const stamp = kind?.family === 'path' ? (this.host.stamp?.(source.identity) ?? null) : null;
    // New entries change the time of a directory, too, so it says nothing about its owner or mode.
    const changedAt = stamp === null || stamp.isDirectory ? null : Math.round(stamp.changedAt);
    this.traces.push({ index, observed: observedOf(examined, target, stamp), changed_at: changedAt });
  }
}

/**
 * Returns a hash that stays the same only while the resource stays exactly as it is. Returns null when nothing tells that: secrets
 * are masked, and content that is no text is not compared, so the time of the last change has to tell instead.
 */
function observedOf(examined: Examined, target: Target, stamp: FileStamp | null): string | null {
  const isMasked = isTainted(target.source) || target.hadSecrets === true;
  const isCoarse = isMasked || isUnread(examined);
  if (isCoarse && stamp === null && !isMissing(examined)) return null;
  const seen = { digest: digestOf(examined), why: reasonOf(examined, target), ...(isCoarse ? { stamp } : {}) };
  return createHash('sha256').update(canonicalJson(seen)).digest('hex');
}

/** True for a file whose content is no text, or too large to be compared. */
const isUnread = (examined: Examined): boolean =>
  'pending' in examined &&
  examined.pending.existed &&
  examined.pending.change.text !== undefined &&
  examined.pending.change.text.before === null;

const isMissing = (examined: Examined): boolean => 'pending' in examined && !examined.pending.existed;

function reasonOf(examined: Examined, target: Target): string | null {
  const reason = 'finding' in examined ? examined.finding.error?.message : examined.pending.change.reason;
  return reason === undefined ? null : new Masking(target).sentence(reason);
}
