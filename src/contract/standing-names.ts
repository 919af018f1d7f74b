/** Names of standings, apart from the schemas because the client starts without the library of schemas. */

export const STANDINGS = ['never_applied', 'behind', 'drifted', 'in_sync', 'on_trial', 'unmanaged'] as const;
export type Standing = (typeof STANDINGS)[number];

/** Reasons for which automatic applies of an agent stop until an operator acts. */
export const STOP_CODES = ['repaired_again', 'removal_guard', 'facts_removal', 'cancelled', 'withdrawn'] as const;
export type StopCode = (typeof STOP_CODES)[number];
