/** How the retention of the audit log is told. */
import { count } from '../../../format.js';
import type { Outcome } from '../../../outcome.js';
import { lines } from '../../../view.js';

export const retentionOutcome = (body: { readonly retention_days: number | null }): Outcome => ({
  body,
  view: lines(
    body.retention_days === null
      ? 'Audit events are kept for ever.'
      : `Audit events are kept for ${count(body.retention_days, 'day')}.`,
  ),
});
