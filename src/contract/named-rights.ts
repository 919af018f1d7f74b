/** Rights that an operator has only through a grant that names them, and an admin by the role. Without imports: every command loads it. */

export const NAMED_RIGHTS: ReadonlySet<string> = new Set(['enroll']);
