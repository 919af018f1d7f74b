/** Branded ids, and the patterns of names that people choose. Each pattern is shared by all sides that check it. */
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
/** Checks the form only; `src/identity` checks that the key is safe to use. */
export const isPublicKeyHex = (text: string): text is PublicKeyHex => HEX_64.test(text);
export const isUlid = (text: string): boolean => ULID.test(text);

/** Makes ULIDs that always increase, even when the clock goes back. */
export type NewId = () => string;

/** Usernames and agent names: 1-64 letters, digits, `-`, `_`, starting with a letter. */
const NAME_PATTERN = '^\\p{L}[\\p{L}\\p{Nd}_-]{0,63}$';
/** Module and assignment names. */
export const MODULE_NAME_PATTERN = '^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$';
/** Secret names. */
export const SECRET_NAME_PATTERN = '^[A-Za-z_][A-Za-z0-9_.-]{0,127}$';
/** Tag keys. The pattern keeps them usable in clauses, selectors, expressions, `KEY=VALUE` and URL paths. */
export const TAG_KEY_PATTERN = '^[\\p{L}\\p{N}][^\\s\\p{C}"\'`=!,()*<>{}/\\\\]{0,63}$';
export const TAG_KEY_RULE =
  'a key has 1 to 64 characters, begins with a letter or a digit, and has no white space and none of " \' ` = ! , ( ) * < > { } / \\';
/** Tag values: at most 256 characters, none of them a control character. */
const TAG_VALUE_PATTERN = '^[^\\u0000-\\u001f\\u007f-\\u009f]{0,256}$';
export const TAG_VALUE_RULE = 'a value has at most 256 characters, and no control characters';
/** A raw 32-byte Ed25519 public key in hex. */
export const PUBLIC_KEY_PATTERN = '^[0-9a-fA-F]{64}$';

export const isName = (text: string): boolean => new RegExp(NAME_PATTERN, 'u').test(text);
export const isModuleName = (text: string): boolean => new RegExp(MODULE_NAME_PATTERN).test(text);
export const isSecretName = (text: string): boolean => new RegExp(SECRET_NAME_PATTERN).test(text);
export const isTagKey = (text: string): boolean => new RegExp(TAG_KEY_PATTERN, 'u').test(text);
export const isTagValue = (text: string): boolean => new RegExp(TAG_VALUE_PATTERN, 'u').test(text);
