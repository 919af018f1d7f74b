/** Which events raise a notification, which only once something holds, and which end what was going on. */
import type { RecordedEvent } from '../core/audit-log.js';
import type { EventType } from '../core/domain-event.js';
import type { Queryable } from '../database/schema.js';
import { deleteAgentAbsence, putAgentAbsence } from './absence-store.js';
import { loginFailed, loginSucceeded } from './login-rules.js';
import { deleteLoginAddresses } from './login-watch.js';
import { deleteReadMarks } from './notification-store.js';

/** What is to be told of an event. */
export interface Raised {
  readonly summary: string;
  /** Channels that it goes to: all, none, or all but one. */
  readonly channels: 'all' | 'none' | { readonly except: string };
}

/** Null raises nothing. Runs in the transaction of the event. */
export type Rule = (tx: Queryable, event: RecordedEvent) => Promise<Raised | null>;

const asItIs: Rule = async (_tx, { summary }) => ({ summary, channels: 'all' });

export const RULES: Readonly<Partial<Record<EventType, Rule>>> = {
  'agent.pending': asItIs,
  'agent.refused': asItIs,
  'agent.duplicate_identity': asItIs,
  'agent.journal_lost': asItIs,
  'agent.connected': async (tx, { target, timestamp }) => {
    await putAgentAbsence(tx, { node_id: target.id, connected_at: timestamp, away_since: null, event_json: null });
    return null;
  },
  // Told after some time, when it has not come back: see `Absences`.
  'agent.disconnected': async (tx, event) => {
    const { target, timestamp } = event;
    const absence = { node_id: target.id, connected_at: null, away_since: timestamp };
    await putAgentAbsence(tx, { ...absence, event_json: JSON.stringify(event) });
    return null;
  },
  'agent.rejected': forgetAgent,
  'agent.removed': forgetAgent,
  'drift.detected': asItIs,
  'drift.resolved': asItIs,
  'state.apply_failed': asItIs,
  'state.apply_interrupted': asItIs,
  'operator.added': asItIs,
  'operator.removed': async (tx, event) => {
    await deleteReadMarks(tx, event.target.id);
    await deleteLoginAddresses(tx, event.target.id);
    return asItIs(tx, event);
  },
  'operator.login': loginSucceeded,
  'operator.login_failed': loginFailed,
  'secret.expired': asItIs,
  'orchestrator.restored': asItIs,
  'orchestrator.store_damaged': asItIs,
  'audit.events_lost': asItIs,
  'orchestrator.clock_jumped': asItIs,
  'channel.delivery_failed': async (_tx, { summary, target, metadata }) => {
    // A channel that goes on failing is told of once; and what fails while telling that is told to nobody, else two broken
    // channels would tell of each other for ever.
    if (metadata.repeated === true) return null;
    return { summary, channels: metadata.of_delivery_failure === true ? 'none' : { except: target.id } };
  },
};

async function forgetAgent(tx: Queryable, { target }: RecordedEvent): Promise<null> {
  await deleteAgentAbsence(tx, target.id);
  return null;
}
