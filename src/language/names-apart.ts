/** Names two resources so that a message tells them apart. */
import { quoted } from './printable.js';

export interface ResourceName {
  readonly kind: string;
  readonly identity: string;
}

/** Returns both identities in quotes, behind their kinds when they are equal: a user and its group often are. */
export const namesApart = (a: ResourceName, b: ResourceName): readonly [string, string] =>
  a.identity === b.identity
    ? [`${a.kind} ${quoted(a.identity)}`, `${b.kind} ${quoted(b.identity)}`]
    : [quoted(a.identity), quoted(b.identity)];
