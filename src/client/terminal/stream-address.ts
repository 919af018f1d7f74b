/** Where the stream of a session is: always at the server that the client trusts, whatever host the answer names. */
import { Fault } from '../../kernel/fault.js';
import { BASE } from '../calls.js';
import { urlText } from '../server-url.js';

/**
 * @param server the address of the client, whose path is kept: a proxy in front may have put it there
 * @param wsUrl as the server gave it; only its path and its ticket count
 * @throws Fault `unreachable` for what is no address of a stream
 */
export function streamAddress(server: URL, wsUrl: string): URL {
  const given = URL.canParse(wsUrl) ? new URL(wsUrl) : null;
  const at = given?.pathname.indexOf(`${BASE}/terminal/`) ?? -1;
  if (given === null || at < 0) {
    throw new Fault('unreachable', `${urlText(server)} names no address of a terminal`, {
      hint: 'check that it is an orchestrator of this version',
    });
  }
  const address = new URL(server);
  address.protocol = server.protocol === 'https:' ? 'wss:' : 'ws:';
  address.pathname = server.pathname.replace(/\/$/, '') + given.pathname.slice(at);
  address.search = given.search;
  return address;
}
