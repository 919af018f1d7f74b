/** Signs logins with a key that an ssh-agent keeps: the private half never reaches this process. */
import { connect } from 'node:net';
import { SSH_ED25519, SshReader } from '../identity/openssh.js';
import { parsePublicKey } from '../identity/public-key.js';
import { Fault, messageOf } from '../kernel/fault.js';
import type { PublicKeyHex } from '../kernel/ids.js';
import type { Signer } from './login.js';
import type { Environment } from './operator-files.js';

/** Numbers of messages (the agent protocol of OpenSSH, draft-ietf-sshm-ssh-agent). */
const REQUEST_IDENTITIES = 11;
const IDENTITIES_ANSWER = 12;
const SIGN_REQUEST = 13;
const SIGN_RESPONSE = 14;

/** Milliseconds in which the agent has to answer. It may ask its owner first. */
const PATIENCE = 60_000;
/** Largest answer that is read. */
const MAX_ANSWER = 256 * 1024;

interface AgentKey {
  readonly publicKey: PublicKeyHex;
  /** Key in SSH's own format. */
  readonly blob: Buffer;
  readonly comment: string;
}

/**
 * Opens the signer of a key in the ssh-agent of `SSH_AUTH_SOCK`. `wanted` is a public key, or the comment of one; null takes the
 * only Ed25519 key. Throws `key_unreadable` without an agent or a fitting key, and `usage` if several fit.
 */
export async function openAgentSigner(wanted: string | null, env: Environment): Promise<Signer> {
  const socket = env.SSH_AUTH_SOCK;
  if (!socket) {
    throw new Fault('key_unreadable', 'there is no ssh-agent: SSH_AUTH_SOCK is not set', {
      hint: 'start one, and add your key: eval "$(ssh-agent)" && ssh-add',
    });
  }
  const { publicKey, blob } = chooseKey(await listKeys(socket), wanted);
  return { publicKey, sign: (nonce) => signWith(socket, blob, nonce) };
}

async function listKeys(socket: string): Promise<readonly AgentKey[]> {
  const answer = await ask(socket, Buffer.from([REQUEST_IDENTITIES]), IDENTITIES_ANSWER);
  const keys: AgentKey[] = [];
  for (let left = answer.uint32(); left > 0; left -= 1) {
    const blob = answer.string();
    const comment = answer.string().toString('utf8');
    const inside = new SshReader(blob, cutShort);
    if (inside.text() !== SSH_ED25519) continue;
    keys.push({ publicKey: parsePublicKey(inside.string().toString('hex')), blob, comment });
  }
  return keys;
}

function chooseKey(keys: readonly AgentKey[], wanted: string | null): AgentKey {
  const publicKey = wanted === null ? null : publicKeyIn(wanted);
  const fitting = keys.filter((key) => wanted === null || key.publicKey === publicKey || key.comment === wanted);
  const [first, ...others] = fitting;
  if (first === undefined) {
    const what = wanted === null ? 'no Ed25519 key' : `no Ed25519 key "${wanted}"`;
    throw new Fault('key_unreadable', `the ssh-agent has ${what}`, {
      hint: keys.length === 0 ? 'add one: ssh-add ~/.ssh/id_ed25519' : `it has:\n${listOf(keys)}`,
    });
  }
  if (others.length === 0) return first;
  throw new Fault('usage', `the ssh-agent has ${fitting.length} Ed25519 keys that fit:\n${listOf(fitting)}`, {
    hint: `choose one: --ssh-agent=${first.publicKey}`,
  });
}

const listOf = (keys: readonly AgentKey[]): string =>
  keys.map(({ publicKey, comment }) => `  ${publicKey}  ${comment}`).join('\n');

/** Returns the public key that a text spells, in hex or as a line of OpenSSH; null for other texts, such as a comment. */
function publicKeyIn(text: string): PublicKeyHex | null {
  try {
    return parsePublicKey(text);
  } catch {
    return null;
  }
}

async function signWith(socket: string, blob: Buffer, nonce: Uint8Array): Promise<string> {
  const flags = Buffer.alloc(4);
  const request = Buffer.concat([Buffer.from([SIGN_REQUEST]), sshString(blob), sshString(nonce), flags]);
  const signature = new SshReader((await ask(socket, request, SIGN_RESPONSE)).string(), cutShort);
  if (signature.text() !== SSH_ED25519) throw unusable('signed with another kind of key');
  const bytes = signature.string();
  if (bytes.length !== 64) throw unusable('sent a signature of a wrong length');
  return bytes.toString('hex');
}

/** Sends one message, and returns the content of the answer. Throws `key_unreadable` for another answer than the expected one. */
async function ask(socket: string, message: Uint8Array, expected: number): Promise<SshReader> {
  const answer = await exchange(socket, sshString(message));
  if (answer[0] === expected) return new SshReader(answer.subarray(1), cutShort);
  throw unusable(expected === SIGN_RESPONSE ? 'refused to sign' : 'refused to list its keys');
}

function exchange(path: string, request: Buffer): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const received: Buffer[] = [];
    const socket = connect({ path });
    const fail = (fault: Fault) => {
      socket.destroy();
      reject(fault);
    };
    socket.setTimeout(PATIENCE, () => fail(unusable(`did not answer for ${PATIENCE / 1000} s`)));
    socket.on('connect', () => socket.write(request));
    socket.on('error', (error) => fail(unusable(`cannot be reached at ${path}: ${messageOf(error)}`)));
    socket.on('close', () => fail(unusable('closed the connection')));
    socket.on('data', (chunk: Buffer) => {
      received.push(chunk);
      const bytes = Buffer.concat(received);
      if (bytes.length < 4) return;
      const length = bytes.readUInt32BE();
      if (length > MAX_ANSWER) return fail(unusable('sent an answer that is too long'));
      if (bytes.length < 4 + length) return;
      socket.destroy();
      resolve(bytes.subarray(4, 4 + length));
    });
  });
}

function sshString(bytes: Uint8Array): Buffer {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(bytes.length);
  return Buffer.concat([length, bytes]);
}

const unusable = (what: string): Fault => new Fault('key_unreadable', `the ssh-agent ${what}`);

const cutShort = (why: string): Fault => unusable(`sent an answer that ${why}`);
