/** Proofs that a peer owns an Ed25519 key: a signature, or the certificate of a TLS handshake. */
import { type KeyObject, verify } from 'node:crypto';
import type { TLSSocket } from 'node:tls';
import { promisify } from 'node:util';
import type { PublicKeyHex } from '../kernel/ids.js';
import { keyObjectOf, publicKeyOfRaw, rawKeyOf } from './key-object.js';
import { isAcceptableKey, isForgeableKey } from './public-key.js';

/** Returns true for the form of a signature: 64 bytes in hex. */
export const isSignatureHex = (text: string): boolean => /^[0-9a-fA-F]{128}$/.test(text);

/**
 * Returns true for a canonical signature (RFC 8032: S below the group order, R compared as bytes) by a key whose
 * signatures cannot be forged.
 */
export function verifySignature(key: PublicKeyHex, message: Uint8Array, signatureHex: string): boolean {
  if (!isSignatureHex(signatureHex) || isForgeableKey(rawKeyOf(key))) return false;
  return verify(null, message, keyObjectOf(key), Buffer.from(signatureHex, 'hex'));
}

const verifyInThread = promisify(verify);

/**
 * Returns the test of `verifySignature` for many candidate messages. It runs outside the event loop and checks the key
 * with the first message.
 */
export function signatureTest(key: PublicKeyHex, signatureHex: string): (message: Uint8Array) => Promise<boolean> {
  let keyObject: KeyObject | null | undefined;
  const signature = Buffer.from(signatureHex, 'hex');
  return async (message) => {
    if (keyObject === undefined) {
      const isUsable = isSignatureHex(signatureHex) && !isForgeableKey(rawKeyOf(key));
      keyObject = isUsable ? keyObjectOf(key) : null;
    }
    return keyObject !== null && (await verifyInThread(null, message, keyObject, signature));
  };
}

/**
 * Returns the Ed25519 key that the peer proved in the TLS handshake. Returns null without a certificate, for another or
 * weak key, below TLS 1.3, and in a resumed session, whose certificate is old or missing.
 *
 * Call it once per socket, after the handshake: on the client side of Node 20 a second call returns null.
 * @param wasChecked returns true for a key that passed the check for weak keys before, which takes most of the time
 */
export function peerEd25519Key(
  socket: TLSSocket,
  wasChecked: (key: PublicKeyHex) => boolean = () => false,
): PublicKeyHex | null {
  if (socket.getProtocol() !== 'TLSv1.3' || socket.isSessionReused()) return null;
  const raw = rawPeerKey(socket);
  if (raw?.length !== 32) return null;
  const key = publicKeyOfRaw(raw);
  return wasChecked(key) || isAcceptableKey(raw) ? key : null;
}

function rawPeerKey(socket: TLSSocket): Buffer | null {
  try {
    const key = socket.getPeerX509Certificate()?.publicKey;
    if (key?.asymmetricKeyType !== 'ed25519') return null;
    return key.export({ type: 'spki', format: 'der' }).subarray(-32);
  } catch {
    // A certificate with a key type unknown to this OpenSSL proves nothing.
    return null;
  }
}
