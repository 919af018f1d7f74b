/** Default ports, shared by the settings, the programs, the help and the hints. */

/** TCP port of the agent link. */
export const AGENT_PORT = 4747;
/** TCP port of the API. */
export const API_PORT = 4748;
/** UDP port of discovery packets. */
export const DISCOVERY_PORT = 4747;
