/** Value of `restores` for an apply that desires nothing. Every command loads it, so it has no schemas. */
export const NOTHING = 'nothing';
