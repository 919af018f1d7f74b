/** The version of this program. A test compares it with `package.json`. */
export const VERSION = '0.1.0';
/** Version of the agent link's protocol; its history is in `src/wire/version.ts`. */
export const PROTOCOL_VERSION = 2;
