/** The environment of the program. */

export type Env = Readonly<Record<string, string | undefined>>;
