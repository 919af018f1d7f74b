/** Checks of `orch doctor`: the operator's profiles and key. Nothing is sent. */
import type { Connection, KeySource } from '../../client/connection.js';
import { openSigner, type Signer } from '../../client/login.js';
import { type Environment, profilesPath, standardKeyPath } from '../../client/operator-files.js';
import { loadProfiles } from '../../client/profiles.js';
import { openAgentSigner } from '../../client/ssh-agent.js';
import { wantsPassphrase } from '../../identity/private-key.js';
import { isFault, systemCodeOf } from '../../kernel/fault.js';
import { API_PORT } from '../../kernel/ports.js';
import { type DoctorCheck, failure, note, ok, problem } from '../../programs/doctor-check.js';
import { chooseConnection } from '../connect-api.js';
import type { Context } from '../context.js';

export interface OperatorFindings {
  readonly checks: readonly DoctorCheck[];
  /** Null when flags, variables or profiles are wrong. */
  readonly connection: Connection | null;
  /** True if a flag, a variable or a profile names the orchestrator. */
  readonly isChosen: boolean;
  /** Null without a key that opens by itself. */
  readonly signer: Signer | null;
}

export async function examineOperator(context: Context): Promise<OperatorFindings> {
  const { env, globals } = context;
  const profiles = await profileCheck(context);
  let connection: Connection | null = null;
  const broken: DoctorCheck[] = [];
  try {
    connection = await chooseConnection(context);
  } catch (error) {
    // A file that cannot be read was found already.
    if (profiles.state !== 'problem') broken.push(failure('profile', error, profileFix(error)));
  }
  const isChosen = connection?.profile !== null || globals.url !== undefined || Boolean(env.ORCH_URL);
  const path = globals.keyFile ?? (env.ORCH_KEY_FILE || standardKeyPath(env));
  const source = connection?.key ?? ({ kind: 'file', path, from: 'the default' } as const);
  const key =
    source.kind === 'agent'
      ? await agentKeyCheck(source.wanted, env)
      : keyCheck(source, isChosen && connection !== null);
  return { checks: [profiles, ...broken, key.check], connection, isChosen, signer: key.signer };
}

/** Returns the fix of a missing profile; null for an error with a hint of its own. */
const profileFix = (error: unknown): string | null =>
  isFault(error, 'profile_not_found') ? `orch profile use NAME (${error.hint})` : null;

async function profileCheck({ env }: Context): Promise<DoctorCheck> {
  const path = profilesPath(env);
  try {
    const { byName, standard } = await loadProfiles(path);
    const names = Object.keys(byName);
    if (names.length === 0) {
      return note(
        'profiles',
        `there are none in ${path}`,
        `name your orchestrator once: orch profile create NAME --url https://HOST:${API_PORT}`,
      );
    }
    const url = standard === null ? null : byName[standard]?.url;
    return ok('profiles', `${names.length} in ${path}, default: ${url ? `${standard} (${url})` : 'none'}`);
  } catch (error) {
    return failure('profiles', error, `correct ${path}, or move it away and run: orch profile create`);
  }
}

interface KeyFinding {
  readonly check: DoctorCheck;
  readonly signer: Signer | null;
}

async function agentKeyCheck(wanted: string | null, env: Environment): Promise<KeyFinding> {
  try {
    const signer = await openAgentSigner(wanted, env);
    return { check: ok('key', `the ssh-agent keeps the Ed25519 key ${signer.publicKey}`), signer };
  } catch (error) {
    return { check: failure('key', error), signer: null };
  }
}

/** @param isNeeded true when this user has an orchestrator to log in to */
function keyCheck(source: KeySource, isNeeded: boolean): KeyFinding {
  const where = source.kind === 'file' ? source.path : source.from;
  try {
    const signer = openSigner(source);
    return { check: ok('key', `${where} is an Ed25519 key that only you can read`), signer };
  } catch (error) {
    if (wantsPassphrase(error)) return { check: ok('key', `${where} is encrypted with a passphrase`), signer: null };
    const isMissing = isFault(error, 'key_unreadable') && systemCodeOf(error.cause) === 'ENOENT';
    if (!isMissing) return { check: failure('key', error, fixOf(error, where)), signer: null };
    const make = source.from === 'the default' ? 'make one: orch operator init' : `make it, or correct ${source.from}`;
    const found = `there is no operator's key at ${where}`;
    const check = isNeeded ? problem('key', found, make) : note('key', `${found}; only operators need one`, make);
    return { check, signer: null };
  }
}

/** Returns the fix of a key that has no hint of its own. */
function fixOf(error: unknown, where: string): string | null {
  if (isFault(error) && error.hint !== undefined) return error.hint;
  if (isFault(error, 'key_unreadable')) return `let your user read ${where}, or name another key with --key-file`;
  return `name another key with --key-file, or move ${where} away and make a new one: orch operator init`;
}
