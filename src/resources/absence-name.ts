/**
 * The names of absences. A module writes `absent: {KIND: …}`; on the link and in reports, an absence is a kind of its own, such as
 * `absent-file-unix`.
 */

const ABSENT = 'absent-';

/** Returns the name of the absence of a kind. */
export const absenceOf = (kind: string): string => ABSENT + kind;

export const isAbsence = (kind: string): boolean => kind.startsWith(ABSENT);

/** Returns the kind of which something is absent; a kind that is no absence unchanged. */
export const kindOfAbsence = (kind: string): string => (isAbsence(kind) ? kind.slice(ABSENT.length) : kind);

/** Reason of the removal of a directory that is not empty. */
export const WITH_CONTENT = 'with everything in it';
