/** Value of `restores` for an apply that desires nothing. Every command loads it, so it has no schemas. */
export const NOTHING = 'nothing';
/** Value of `replaces` for a module of which no revision is stored. */
export const NO_REVISION = 'none';
/** Limits of one-off values. Texts of `set` are read on the thread that answers requests, so each is short. */
export const ONE_OFF_LIMITS = { words: 100, wordLength: 8192, files: 10, fileLength: 262_144 } as const;
/** Pattern of `replaces`. */
export const REPLACES = `^(?:[0-9a-f]{64}|${NO_REVISION})$`;
