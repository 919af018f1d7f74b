/** What a finding means when the question is not what to do, but whether anything has changed. */
import type { FaultCode } from '../../kernel/fault-code.js';
import type { Finding } from './run-item.js';

/** What keeps an apply from its work and is itself a change of the machine. */
const CHANGED: ReadonlySet<FaultCode> = new Set([
  'wrong_type',
  'parent_missing',
  'unknown_owner',
  'unknown_group',
  'unit_missing',
  'unit_masked',
]);

/** A file that has become a directory, or whose owner is gone, has drifted; it has not failed to be looked at. */
export function inDrift(finding: Finding): Finding {
  const { error, ...rest } = finding;
  if (!error || !CHANGED.has(error.code)) return finding;
  return { ...rest, action: 'update', status: 'pending', reason: error.message };
}
