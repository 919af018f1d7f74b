/** Connects to the orchestrator that flags, variables and profiles choose. */
import { randomUUID } from 'node:crypto';
import type { ApiClient } from '../client/api-client.js';
import { type Connection, explainConnection } from '../client/connection.js';
import { connect } from '../client/http-api-client.js';
import { openSigner, type Signer } from '../client/login.js';
import { keepsState, profilesPath } from '../client/operator-files.js';
import { loadProfiles, type Profiles, saveProfiles, withProfile } from '../client/profiles.js';
import { hostOf, parseServerUrl, sameServer, urlText } from '../client/server-url.js';
import { wantsPassphrase } from '../identity/private-key.js';
import { Fault, isFault } from '../kernel/fault.js';
import type { Context } from './context.js';
import type { Env } from './env.js';

/** Returns the client of the chosen orchestrator. Asks about its certificate on first contact. The caller closes the client. */
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

/** Like `connectApi`. A login for which the key needs its passphrase throws `unauthenticated` in place of asking for it. */
export const connectWithoutPassphrase = (context: Context): Promise<ApiClient> =>
  connectApi({
    ...context,
    prompt: {
      ...context.prompt,
      secret: () =>
        Promise.reject(
          new Fault('unauthenticated', 'the key has a passphrase, and no session goes on', { hint: 'orch login' }),
        ),
    },
  });

/** Resolves the connection. A URL that a profile contains uses that profile's trust and key. */
export const chooseConnection = async (context: Pick<Context, 'env' | 'globals'>): Promise<Connection> =>
  (await explainChoice(context)).connection;

/** Resolves the connection, and says where each of its members comes from. */
export async function explainChoice({ env, globals }: Pick<Context, 'env' | 'globals'>) {
  const profiles = await loadProfiles(profilesPath(env));
  const { url, profile, tlsFingerprint, ca, keyFile, sshAgent } = globals;
  const address = url ?? (env.ORCH_URL || undefined);
  const known =
    profile === undefined && !env.ORCH_PROFILE && address !== undefined ? profileOf(profiles, address) : null;
  const explained = explainConnection({
    flags: {
      url,
      profile: profile ?? known ?? undefined,
      tlsFingerprint,
      ca,
      keyFile,
      sshAgent,
      allowUnboundLogin: globals.allowUnboundLogin || undefined,
    },
    env,
    profiles,
  });
  if (known === null) return explained;
  const origins = { ...explained.origins, profile: `has the address of ${explained.origins.url}` };
  return { ...explained, origins };
}

/** Returns the name of a profile with that address, preferring the default profile. */
function profileOf({ byName, standard }: Profiles, address: string): string | null {
  const url = parseServerUrl(address, 'the address');
  const names = Object.keys(byName).sort((a, b) => Number(b === standard) - Number(a === standard));
  return names.find((name) => sameServer(url, parseServerUrl(byName[name]?.url ?? '', `profile ${name}`))) ?? null;
}

/** Returns the connection with a pinned certificate: shows the certificate, asks, and remembers it. Throws `tls_unknown` without consent. */
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
  if (keepsState(context.env)) {
    const name = await rememberTrust(context.env, connection, pin);
    context.note(`Remembered as profile ${name}.`);
  }
  return { ...connection, pin };
}

/** Returns the fingerprint that the server shows, or null if it was reached without one, such as over plain HTTP. */
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

/** Stores the pin in the connection's profile, or in a new one. A first profile becomes the default. Returns its name. */
export async function rememberTrust(env: Env, { profile, url }: Connection, pin: string): Promise<string> {
  const profiles = await loadProfiles(profilesPath(env));
  const name = profile ?? freeName(profiles, hostOf(url));
  const before = profiles.byName[name];
  const changed = withProfile(profiles, name, { url: urlText(url), ...before, tls_fingerprint: pin });
  await saveProfiles({ ...changed, standard: profiles.standard ?? name });
  return name;
}

function freeName({ byName }: Profiles, host: string): string {
  const base =
    host
      .replace(/[^A-Za-z0-9._-]/g, '-')
      .replace(/^[^A-Za-z0-9]+/, '')
      .slice(0, 56) || 'orchestrator';
  let name = base;
  for (let number = 2; Object.hasOwn(byName, name); number += 1) name = `${base}-${number}`;
  return name;
}

/** Attempts to type a passphrase. */
const ATTEMPTS = 3;
const INSTEAD = 'use a key without a passphrase for programs: name it with --key-file, ORCH_KEY_FILE or ORCH_KEY';

/** Opens the operator's key, which an ssh-agent may keep, and asks for its passphrase if it has one. */
export async function signerFor({ prompt, warn, env }: Context, { key }: Pick<Connection, 'key'>): Promise<Signer> {
  if (key.kind === 'agent') return (await import('../client/ssh-agent.js')).openAgentSigner(key.wanted, env);
  try {
    return openSigner(key);
  } catch (error) {
    if (!wantsPassphrase(error)) throw error;
  }
  const name = key.kind === 'file' ? key.path : key.from;
  for (let attempt = 1; ; attempt += 1) {
    const passphrase = await prompt.secret(`Passphrase of ${name}:`, INSTEAD);
    try {
      return openSigner(key, passphrase);
    } catch (error) {
      if (attempt === ATTEMPTS || !isWrongPassphrase(error)) throw error;
      warn('that is not its passphrase');
    }
  }
}

const isWrongPassphrase = (error: unknown): boolean =>
  wantsPassphrase(error) || (isFault(error, 'key_invalid') && error.data?.reason === 'passphrase_wrong');

/** Runs a question with exclusive use of the terminal. */
export type WithTerminal = <T>(ask: () => Promise<T>) => Promise<T>;

export interface TerminalApi {
  readonly api: ApiClient;
  /** Routes later questions through `withTerminal`. */
  setQuestionRoute(withTerminal: WithTerminal): void;
}

/**
 * Connects for a session at this terminal. A new login may ask for a passphrase in the middle of the session, and the answer must
 * not go to the agent. The caller closes the client.
 */
export async function terminalApi(context: Context): Promise<TerminalApi> {
  let through: WithTerminal = (ask) => ask();
  const { prompt } = context;
  const api = await connectApi({
    ...context,
    prompt: {
      ...prompt,
      secret: (question, instead) => through(() => prompt.secret(question, instead)),
      confirm: (question, instead) => through(() => prompt.confirm(question, instead)),
    },
  });
  return {
    api,
    setQuestionRoute: (withTerminal) => {
      through = withTerminal;
    },
  };
}
