/** The audit log as what something was done to. */
import type { Party } from './domain-event.js';

export const AUDIT_LOG: Party = { id: 'audit', name: 'audit log', type: 'audit' };
