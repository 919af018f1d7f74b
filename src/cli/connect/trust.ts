/** The first contact with an orchestrator: its certificate is shown, asked about and remembered. */
import type { ApiClient } from '../../client/api-client.js';
import type { Connection } from '../../client/connection.js';
import { urlText } from '../../client/server-url.js';
import { Fault, isFault } from '../../kernel/fault.js';
import type { Context } from '../context.js';
import { rememberTrust } from './remember-trust.js';

/** The connection with a certificate to hold it to. Throws `tls_unknown` or `confirmation_required` without consent. */
export async function trustOnFirstContact(
  context: Context,
  connection: Connection,
  open: (connection: Connection) => ApiClient,
): Promise<Connection> {
  if (connection.url.protocol !== 'https:' || connection.pin !== null || connection.ca !== null) return connection;
  const pin = await fingerprintShown(open(connection), context.signal);
  if (pin === null) return connection;
  const address = urlText(connection.url);
  if (!context.prompt.possible) throw unknownCertificate(address, pin);
  context.note(`This is the first connection to ${address}. Its certificate has the fingerprint`);
  context.note(`  ${pin}`);
  context.note('Compare it with what "orch serve" wrote when it started.');
  if (!(await context.prompt.confirm('Is it the right one?', '--tls-fingerprint'))) {
    throw new Fault('tls_unknown', `the certificate of ${address} was not accepted, so nothing was sent`);
  }
  const name = await rememberTrust(context.env, connection, pin);
  context.note(`Remembered as profile ${name}.`);
  return { ...connection, pin };
}

/** What the server shows, or null when it is trusted without being pinned. */
async function fingerprintShown(client: ApiClient, signal: AbortSignal): Promise<string | null> {
  try {
    await client.call('getStatus', { signal });
    return null;
  } catch (error) {
    const shown = isFault(error, 'tls_unknown') ? error.data?.fingerprint : undefined;
    if (typeof shown === 'string') return shown;
    throw error;
  } finally {
    client.close();
  }
}

const unknownCertificate = (address: string, pin: string): Fault =>
  new Fault('tls_unknown', `the certificate of ${address} is not known yet, so nothing was sent`, {
    hint: `if its fingerprint is the one that "orch serve" wrote, add: --tls-fingerprint ${pin}\nor remember it: orch profile create NAME --url ${address} --tls-fingerprint ${pin}`,
    data: { fingerprint: pin },
  });
