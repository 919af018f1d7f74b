/** Hashes of the secrets of an apply. */

/** Keyed hashes of values, by secret name: they reveal whether two values are equal, and nothing about the values. */
export type SecretHashes = Readonly<Record<string, string>>;
