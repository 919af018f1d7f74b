/** Branded identifiers, so that one kind of id is never passed for another. */
declare const brand: unique symbol;
type Branded<Name extends string> = string & { readonly [brand]: Name };

/** Lower-case hex of the first 16 bytes of SHA-256 of an agent's raw public key. */
export type NodeId = Branded<'NodeId'>;
/** Lower-case hex of the first 16 bytes of SHA-256 of an operator's raw public key. */
export type OperatorId = Branded<'OperatorId'>;
/** Lower-case hex of a raw 32-byte Ed25519 public key. */
export type PublicKeyHex = Branded<'PublicKeyHex'>;

const HEX_32 = /^[0-9a-f]{32}$/;
const HEX_64 = /^[0-9a-f]{64}$/;
const ULID = /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/;

export const isNodeId = (text: string): text is NodeId => HEX_32.test(text);
/** Tells the form only: whether the key is fit for use is for `src/identity` to say. */
export const isPublicKeyHex = (text: string): text is PublicKeyHex => HEX_64.test(text);
export const isUlid = (text: string): boolean => ULID.test(text);

/** Makes ULIDs that never go back, even when the clock does. Handed to whoever needs new ids. */
export type NewId = () => string;
