/** A place in the hash chain of the audit log. */

/** A place in the chain, such as one recorded in a checkpoint. */
export interface ChainPlace {
  readonly seq: number;
  readonly hash: string;
}
