/** The shapes of names that people choose, one pattern each, shared by every side that checks them. */

/** Usernames and agent names: 1-64 letters, digits, `-`, `_`, starting with a letter. */
export const NAME_PATTERN = '^\\p{L}[\\p{L}\\p{Nd}_-]{0,63}$';
/** Module and assignment names. */
export const MODULE_NAME_PATTERN = '^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$';
/** Secret names. */
export const SECRET_NAME_PATTERN = '^[A-Za-z_][A-Za-z0-9_.-]{0,127}$';
/** Tag keys: what clauses, selectors, expressions, `KEY=VALUE` and a part of a URL's path can all name. */
export const TAG_KEY_PATTERN = '^[\\p{L}\\p{N}][^\\s\\p{C}"\'`=!,()*<>{}/\\\\]{0,63}$';
export const TAG_KEY_RULE =
  'a key has 1 to 64 characters, begins with a letter or a digit, and has no white space and none of " \' ` = ! , ( ) * < > { } / \\';
/** Tag values: at most 256 characters, none of them a control character. */
export const TAG_VALUE_PATTERN = '^[^\\u0000-\\u001f\\u007f-\\u009f]{0,256}$';
export const TAG_VALUE_RULE = 'a value has at most 256 characters, and no control characters';
/** A raw 32-byte Ed25519 public key in hex. */
export const PUBLIC_KEY_PATTERN = '^[0-9a-fA-F]{64}$';

export const isName = (text: string): boolean => new RegExp(NAME_PATTERN, 'u').test(text);
export const isModuleName = (text: string): boolean => new RegExp(MODULE_NAME_PATTERN).test(text);
export const isSecretName = (text: string): boolean => new RegExp(SECRET_NAME_PATTERN).test(text);
export const isTagKey = (text: string): boolean => new RegExp(TAG_KEY_PATTERN, 'u').test(text);
export const isTagValue = (text: string): boolean => new RegExp(TAG_VALUE_PATTERN, 'u').test(text);
