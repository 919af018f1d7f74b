/** `orch operator rotate`: replaces the operator's own key. */
import { type KeyObject, randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import type { ApiClient } from '../../client/api-client.js';
import type { Connection } from '../../client/connection.js';
import { connect } from '../../client/http-api-client.js';
import type { Signer } from '../../client/login.js';
import { expandHome, profilesPath, requireState, standardKeyPath } from '../../client/operator-files.js';
import { loadProfiles, type Profiles, requireProfile, saveProfiles, withProfile } from '../../client/profiles.js';
import { urlText } from '../../client/server-url.js';
import { renameDurably } from '../../disk/durable.js';
import { publicKeyOfKeyObject } from '../../identity/key-object.js';
import { proveRotation } from '../../identity/key-rotation.js';
import { signNonce } from '../../identity/login-binding.js';
import { generateKey, loadKey, wantsPassphrase, writeNewKey } from '../../identity/private-key.js';
import { parsePublicKey } from '../../identity/public-key.js';
import { Fault, isFault } from '../../kernel/fault.js';
import { chooseConnection } from '../connect-api.js';
import type { Context } from '../context.js';
import { defineCommand } from '../define-command.js';
import { flag, text } from '../options.js';
import { fields, lines, stack } from '../outcome.js';
import { makeDirectory, newPassphrase } from './operator.js';

export const rotateKey = defineCommand({
  examples: ['orch operator rotate', 'orch operator rotate --passphrase', 'orch operator rotate --out ~/work.key'],
  detail: [
    'Makes a new key (FILE.new), has the orchestrator accept it and retire the old one in one step, and then puts it',
    'in the place of the old one, which stays as FILE.old. If it was interrupted, run it again: it finds out which of',
    'the two keys counts, and goes on. Your name and role stay; your operator ID, the hash of the key, changes. Your',
    'sessions, open terminals and unused enrolment tokens end, and rollouts that you have begun halt. Records and the',
    'audit log keep the earlier ID and your name. With --out the new key goes to another file, and the profile in use',
    'names it. A key that other profiles use, that an ssh-agent keeps, or that ORCH_KEY contains needs it.',
  ],
  access: 'viewer',
  consent: true,
  options: {
    out: text('FILE', 'write the new key to this file, and leave the old one', { completes: 'file' }),
    passphrase: flag('ask for a passphrase and encrypt the new key with it'),
  },
  run: async (context, { out, passphrase }) => {
    // The first contact decides about the certificate, which the login with the new key relies on, too.
    await context.api();
    const connection = await chooseConnection(context);
    if (connection.token !== null) {
      throw new Fault('usage', 'ORCH_TOKEN is a session, and a rotation needs the key itself', { hint: 'unset it' });
    }
    const profiles = await loadProfiles(profilesPath(context.env));
    const target = targetOf(context, { connection, profiles, out });
    const made = await newKey(context, target, passphrase);
    await accept(context, connection, made);
    await putInPlace(context, { connection, profiles, target });
    const publicKey = publicKeyOfKeyObject(made.key);
    return {
      body: { public_key: publicKey, key_file: target.final, former_key_file: target.kept },
      names: [publicKey],
      view: stack(
        fields(['Key file', target.final], ['Public key', publicKey]),
        lines(
          target.kept === null
            ? 'The old key no longer logs in. Its file was left as it is.'
            : `The old key no longer logs in. It is kept as ${target.kept}; delete it once nothing else needs it.`,
        ),
      ),
    };
  },
});

/** Where the new key is written at first and in the end, and where the old one stays; null if it stays where it is. */
interface Target {
  readonly written: string;
  readonly final: string;
  readonly kept: string | null;
}

interface TargetSources {
  readonly connection: Connection;
  readonly profiles: Profiles;
  readonly out: string | undefined;
}

function targetOf({ env }: Context, { connection, profiles, out }: TargetSources): Target {
  const { key, profile } = connection;
  if (out !== undefined) {
    if (profile !== null) requireState(env);
    const path = resolve(expandHome(env, out));
    return { written: path, final: path, kept: null };
  }
  if (key.kind !== 'file') {
    throw new Fault('usage', `your key comes from ${key.from}, which orch cannot replace`, {
      hint: 'write the new key to a file: orch operator rotate --out FILE',
    });
  }
  const path = resolve(key.path);
  const others = Object.keys(profiles.byName).filter((name) => {
    const { url, key_file } = requireProfile(profiles, name);
    const used = key_file === undefined ? standardKeyPath(env) : expandHome(env, key_file);
    return name !== profile && url !== urlText(connection.url) && resolve(used) === path;
  });
  if (others.length === 0) return { written: `${path}.new`, final: path, kept: `${path}.old` };
  throw new Fault('usage', `the key ${path} also logs in elsewhere: profile ${others.join(', ')}`, {
    hint: 'give this orchestrator a key of its own: orch operator rotate --out FILE',
  });
}

interface NewKey {
  readonly key: KeyObject;
  /** True if an interrupted rotation has left it. */
  readonly isLeft: boolean;
}

/** Returns the key of an interrupted rotation, or makes and stores a new one, before the orchestrator hears of it. */
async function newKey(context: Context, { written, kept }: Target, encrypt: boolean): Promise<NewKey> {
  if (existsSync(written)) return { key: await openKey(context, written), isLeft: true };
  if (kept !== null && existsSync(kept)) {
    throw new Fault('usage', `${kept} is already there and is not overwritten`, {
      hint: 'it is the key before your present one: move it away or delete it',
    });
  }
  await context.prompt.consent('Replace your key? Your sessions, open terminals and unused enrolment tokens end.');
  const passphrase = encrypt ? await newPassphrase(context) : undefined;
  const key = generateKey();
  makeDirectory(dirname(written));
  writeNewKey(written, key, { passphrase });
  return { key, isLeft: false };
}

async function openKey({ prompt }: Context, path: string): Promise<KeyObject> {
  try {
    return loadKey(path);
  } catch (error) {
    if (!wantsPassphrase(error)) throw error;
  }
  return loadKey(path, { passphrase: await prompt.secret(`Passphrase of ${path}:`, 'run it on a terminal') });
}

/** Has the orchestrator replace the old key, unless an interrupted rotation has already done so. */
async function accept(context: Context, connection: Connection, { key, isLeft }: NewKey): Promise<void> {
  const publicKey = publicKeyOfKeyObject(key);
  if (isLeft) {
    context.note('An earlier rotation was interrupted, and goes on.');
    if (await logsIn(context, connection, key)) return;
  }
  const api = await context.api();
  const { operator } = await api.call('getSession', { signal: context.signal });
  const former = parsePublicKey(operator.public_key);
  const body = { public_key: publicKey, proof: proveRotation(former, key) };
  await api.call('rotateOperatorKey', { body, signal: context.signal });
  if (await logsIn(context, connection, key)) return;
  throw new Fault('unknown_operator', 'the orchestrator has retired your old key, and does not know the new one', {
    hint: `an admin adds it with: orch operator add ${publicKey} --username ${operator.username}`,
  });
}

/** Returns whether a key logs in. Keeps no token. */
async function logsIn(context: Context, connection: Connection, key: KeyObject): Promise<boolean> {
  const signer: Signer = {
    publicKey: publicKeyOfKeyObject(key),
    sign: async (nonce) => signNonce(key, nonce),
  };
  const client: ApiClient = connect({
    // A key from memory, whose token stays off the disk.
    connection: { ...connection, key: { kind: 'pem', pem: '', from: 'the new key' } },
    signer: async () => signer,
    clock: context.clock,
    newId: randomUUID,
    warn: context.warn,
  });
  try {
    await client.call('getSession', { signal: context.signal });
    return true;
  } catch (error) {
    if (isFault(error, 'unknown_operator')) return false;
    throw error;
  } finally {
    client.close();
  }
}

interface Placing {
  readonly connection: Connection;
  readonly profiles: Profiles;
  readonly target: Target;
}

/** Puts the new key where commands look for it. Each step leaves a state from which the next run goes on. */
async function putInPlace({ warn }: Context, { connection, profiles, target }: Placing): Promise<void> {
  const { written, final, kept } = target;
  if (kept !== null) {
    if (existsSync(final)) renameDurably(final, kept);
    renameDurably(written, final);
    return;
  }
  const { profile } = connection;
  if (profile === null) {
    warn(`no profile names ${final}: use it with --key-file or ORCH_KEY_FILE`);
    return;
  }
  await saveProfiles(withProfile(profiles, profile, { ...requireProfile(profiles, profile), key_file: final }));
}
