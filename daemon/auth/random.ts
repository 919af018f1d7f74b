/** Randomness as a port: that many bytes from a cryptographic source. */
export type RandomBytes = (length: number) => Uint8Array;
