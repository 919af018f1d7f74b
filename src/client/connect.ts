/** Makes the client of a connection: transport, login and token cache together. */
import type { Clock } from '../kernel/clock.js';
import type { NewId } from '../kernel/ids.js';
import type { ApiClient } from './api-client.js';
import type { Connection } from './connection.js';
import { HttpApiClient } from './http-api-client.js';
import { logIn } from './login.js';
import { createTransport } from './node-transport.js';
import { Session } from './session.js';
import type { Signer } from './signer.js';
import { tokenCache } from './token-cache.js';

export interface ConnectOptions {
  readonly connection: Connection;
  /** Opens the operator's key; called at the first login, which most calls do not need. */
  signer(): Promise<Signer>;
  readonly clock: Clock;
  /** Makes idempotency keys. */
  readonly newId: NewId;
  /** Told what the operator should know: a login that is not bound to the server, a token that could not be kept. */
  warn(message: string): void;
}

/**
 * Opens nothing yet: the first call connects. Throws `tls_required` for plain HTTP to another machine, `invalid_config`
 * for a CA file that cannot be used.
 */
export function connect({ connection, signer, clock, newId, warn }: ConnectOptions): ApiClient {
  const { url, token, allowUnboundLogin } = connection;
  const transport = createTransport(connection);
  const session = new Session({
    fixed: token,
    cache: tokenCache(connection),
    clock,
    warn,
    logIn: async () => await logIn({ transport, url, signer: await signer(), allowUnbound: allowUnboundLogin, warn }),
  });
  return new HttpApiClient({ url, transport, session, newId });
}
