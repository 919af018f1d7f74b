/** Who is at the other end of a TLS connection: the key that the handshake proved, never a name or a CA. */
import type { TLSSocket } from 'node:tls';
import type { PublicKeyHex } from '../kernel/ids.js';
import { isAcceptableKey } from './acceptable-key.js';
import { publicKeyOfRaw } from './key-object.js';

/**
 * The peer's Ed25519 key, or null when it proved none: no certificate, another kind of key, a weak key, less than
 * TLS 1.3, or a resumed session (in which the certificate is one of long ago, or missing).
 *
 * Call it once per socket, after the handshake, and keep the answer: on the client side Node 20 gives the certificate
 * away with the first look, and a second call returns null.
 */
export function peerEd25519Key(socket: TLSSocket): PublicKeyHex | null {
  if (socket.getProtocol() !== 'TLSv1.3' || socket.isSessionReused()) return null;
  const raw = rawPeerKey(socket);
  return raw && isAcceptableKey(raw) ? publicKeyOfRaw(raw) : null;
}

function rawPeerKey(socket: TLSSocket): Buffer | null {
  try {
    const key = socket.getPeerX509Certificate()?.publicKey;
    if (key?.asymmetricKeyType !== 'ed25519') return null;
    return key.export({ type: 'spki', format: 'der' }).subarray(-32);
  } catch {
    // A certificate whose key this OpenSSL does not know proves nothing to us.
    return null;
  }
}
