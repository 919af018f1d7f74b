/** States of a module that an apply carries as a text, apart from the schemas because the client starts without their library. */

export const SOURCE_STATUSES = ['on_trial', 'published', 'unchanged'] as const;
export type SourceStatus = (typeof SOURCE_STATUSES)[number];
