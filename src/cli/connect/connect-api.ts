/** From flags, variables and profiles to a client that may be used. */
import { randomUUID } from 'node:crypto';
import type { ApiClient } from '../../client/api-client.js';
import { connect } from '../../client/connect.js';
import type { Connection } from '../../client/connection.js';
import type { Context } from '../context.js';
import { chooseConnection } from './choose-connection.js';
import { signerFor } from './signer-for.js';
import { trustOnFirstContact } from './trust.js';

/** The client of the chosen orchestrator. Asks, the first time, whether its certificate is the right one. */
export async function connectApi(context: Context): Promise<ApiClient> {
  const connection = await chooseConnection(context);
  const open = (to: Connection) =>
    connect({
      connection: to,
      signer: () => signerFor(context, to),
      clock: context.clock,
      newId: randomUUID,
      warn: (message) => context.warn(message),
    });
  const trusted = await trustOnFirstContact(context, connection, open);
  return open(trusted);
}
