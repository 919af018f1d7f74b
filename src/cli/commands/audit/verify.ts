/** `orch audit verify`. */
import type { AuditVerification } from '../../../contract/audit.js';
import { defineCommand } from '../../define-command.js';
import { EXIT } from '../../exit-status.js';
import { count } from '../../format.js';
import { text } from '../../option.js';
import { type Line, linesOf, styled } from '../../view.js';

export const command = defineCommand({
  examples: ['orch audit verify', 'orch audit verify --since orch-checkpoint-v1.1.4096.…'],
  detail: [
    'Checks that no event was altered, removed or put elsewhere, and prints a checkpoint of the last one. Keep that outside',
    "of the orchestrator's host and hand it in later: with it, a log whose end was cut off, or that was written anew, is",
    'found out. Ends with 1 when something is wrong.',
  ],
  access: 'viewer',
  options: { since: text('CHECKPOINT', 'a checkpoint that was kept elsewhere') },
  run: async (context, { since }) => {
    const api = await context.api();
    const body = await api.call('verifyAudit', { query: { since: since ?? null }, signal: context.signal });
    const names = body.intact && body.checkpoint ? [body.checkpoint.text] : [];
    return { body, names, view: linesOf(report(body)), exitStatus: body.intact ? EXIT.done : EXIT.error };
  },
});

function report(body: AuditVerification): readonly Line[] {
  const { problem, pruned } = body;
  const all: Line[] = [verdict(body)];
  if (pruned !== null) all.push(`Events up to ${pruned.seq} were pruned on ${pruned.pruned_at}.`);
  if (problem === null) all.push(...sinceLines(body), ...checkpointLines(body));
  return all;
}

function verdict({ problem, events, checkpoints, first_seq, last_seq }: AuditVerification): Line {
  const range = first_seq === null ? '' : ` (${first_seq} to ${last_seq})`;
  if (problem === null) {
    return `${count(events, 'event')}${range} and ${count(checkpoints, 'checkpoint')}: everything is as it was written.`;
  }
  const isBefore = last_seq !== null && last_seq < problem.seq;
  const before = isBefore ? ` Before it, ${count(events, 'event')}${range} are as they were written.` : '';
  return [styled('bad', 'The audit log is broken: '), `${problem.detail}.${before}`];
}

function sinceLines({ since }: AuditVerification): readonly Line[] {
  if (since === null) return [];
  if (since.found === 'confirmed') return [`The given checkpoint is of this log: event ${since.seq} is as it was.`];
  return [`The given checkpoint could not be compared: event ${since.seq} has been pruned since.`];
}

const checkpointLines = ({ checkpoint }: AuditVerification): readonly Line[] =>
  checkpoint === null ? [] : [`Checkpoint of event ${checkpoint.seq}, to be kept elsewhere:`, checkpoint.text];
