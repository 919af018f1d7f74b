/** Value of `restores` for an apply that desires nothing. Every command loads it, so it has no schemas. */
export const NOTHING = 'nothing';
/** Value of `replaces` for a module of which no revision is stored. */
export const NO_REVISION = 'none';
/** Pattern of `replaces`. */
export const REPLACES = `^(?:[0-9a-f]{64}|${NO_REVISION})$`;
