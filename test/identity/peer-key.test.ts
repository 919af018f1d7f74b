import { constants } from 'node:crypto';
import type { ConnectionOptions, TLSSocket, TlsOptions } from 'node:tls';
import { describe, expect, it } from 'vitest';
import { selfSignedEd25519 } from '../../src/identity/certificate.js';
import { generateKey } from '../../src/identity/private-key.js';
import { peerEd25519Key } from '../../src/identity/proof-of-key.js';
import type { PublicKeyHex } from '../../src/kernel/ids.js';
import { credentialsOf, handshake, newIdentity, SMALL_ORDER_KEYS, serve } from '../support/identity.js';

interface Seen {
  readonly server: PublicKeyHex | null;
  readonly client: PublicKeyHex | null;
}

/** The view that both sides have of each other in one handshake. */
async function meet(serverOptions: TlsOptions, clientOptions: ConnectionOptions): Promise<Seen> {
  let seen: (key: PublicKeyHex | null) => void = () => {};
  const server = new Promise<PublicKeyHex | null>((resolve) => {
    seen = resolve;
  });
  const { port } = await serve(serverOptions, (socket) => seen(peerEd25519Key(socket)));
  const client = await handshake(port, clientOptions, peerEd25519Key);
  return { server: await server, client };
}

const orchestrator = newIdentity();
const agent = newIdentity();
const ours = credentialsOf(orchestrator.privateKey);
const theirs = credentialsOf(agent.privateKey);

describe('peerEd25519Key', () => {
  it('is the key of the certificate, on both sides', async () => {
    expect(await meet(ours, theirs)).toEqual({ server: agent.publicKey, client: orchestrator.publicKey });
  });

  it('tells apart those who connect one after the other', async () => {
    const other = newIdentity();
    const keys: (PublicKeyHex | null)[] = [];
    const { port } = await serve(ours, (socket) => {
      keys.push(peerEd25519Key(socket));
      socket.end('bye');
    });
    for (const { privateKey } of [agent, other, agent]) {
      await handshake(
        port,
        credentialsOf(privateKey),
        (socket) => new Promise((done) => socket.resume().on('end', done)),
      );
    }
    expect(keys).toEqual([agent.publicKey, other.publicKey, agent.publicKey]);
  });

  it('is null for a client without a certificate', async () => {
    expect(await meet(ours, {})).toEqual({ server: null, client: orchestrator.publicKey });
  });

  it('is null for a P-256 certificate, on either side', async () => {
    const p256 = credentialsOf(generateKey('p256'));
    expect(await meet(ours, p256)).toEqual({ server: null, client: orchestrator.publicKey });
    expect(await meet(p256, theirs)).toEqual({ server: agent.publicKey, client: null });
  });

  it('is null below TLS 1.3', async () => {
    expect(await meet({ ...ours, minVersion: 'TLSv1.2' }, { ...theirs, maxVersion: 'TLSv1.2' })).toEqual({
      server: null,
      client: null,
    });
  });

  it('is null for a weak key, whose handshake anyone can fake', async () => {
    const socket = (raw: Buffer): TLSSocket => {
      const publicKey = { asymmetricKeyType: 'ed25519', export: () => Buffer.concat([Buffer.alloc(12), raw]) };
      const look = { getProtocol: () => 'TLSv1.3', isSessionReused: () => false };
      return { ...look, getPeerX509Certificate: () => ({ publicKey }) } as unknown as TLSSocket;
    };
    for (const key of SMALL_ORDER_KEYS) expect(peerEd25519Key(socket(Buffer.from(key, 'hex')))).toBeNull();
    expect(peerEd25519Key(socket(Buffer.from(agent.publicKey, 'hex')))).toBe(agent.publicKey);
    const wasChecked = (key: string) => key === agent.publicKey;
    for (const key of SMALL_ORDER_KEYS) expect(peerEd25519Key(socket(Buffer.from(key, 'hex')), wasChecked)).toBeNull();
  });

  describe('of a client that comes back with the session of another', () => {
    /** The result for a thief of the agent's session, who has no certificate of its own. */
    async function steal(secureOptions: number) {
      const keys: (PublicKeyHex | null)[] = [];
      const { port } = await serve({ ...ours, secureOptions }, (socket) => {
        keys.push(peerEd25519Key(socket));
        socket.write('hello');
      });
      const session = await handshake(
        port,
        theirs,
        (socket) => new Promise<Buffer>((resolve) => socket.resume().once('session', resolve)),
      );
      const thief = await handshake(port, { session }, (socket) => ({
        reused: socket.isSessionReused(),
        key: peerEd25519Key(socket),
      }));
      await expect.poll(() => keys.length).toBe(2);
      return { thief, keys };
    }

    it('is null where sessions are resumed', async () => {
      expect(await steal(0)).toEqual({ thief: { reused: true, key: null }, keys: [agent.publicKey, null] });
    });

    it('is null where they are not', async () => {
      expect(await steal(constants.SSL_OP_NO_TICKET)).toEqual({
        thief: { reused: false, key: orchestrator.publicKey },
        keys: [agent.publicKey, null],
      });
    });
  });

  it('cannot be had with the certificate of another and a key of its own', async () => {
    const { port } = await serve(ours, () => {});
    const stolen = {
      cert: selfSignedEd25519(agent.privateKey).certPem,
      key: credentialsOf(newIdentity().privateKey).key,
    };
    await expect(handshake(port, stolen, peerEd25519Key)).rejects.toThrow(/key values mismatch/);
  });
});
