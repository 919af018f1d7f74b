/** The version of this program; a test holds it equal to the one in `package.json`. */
export const VERSION = '0.1.0';
/** The agent link's protocol version that this program speaks; its history is in `src/wire/version.ts`. */
export const PROTOCOL_VERSION = 2;
/**
 * Rises with each change of the link's messages that older programs of the same protocol version pass over: a new message, a
 * new member of a message.
 */
export const PROTOCOL_REVISION = 1;
