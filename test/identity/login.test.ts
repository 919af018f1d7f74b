import { createHash, randomBytes, sign, verify } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { keyObjectOf } from '../../src/identity/key-object.js';
import { isBoundNonce, makeBoundNonce, signNonce } from '../../src/identity/login-binding.js';
import { isSignatureHex, verifySignature } from '../../src/identity/proof-of-key.js';
import { isPublicKeyHex, type PublicKeyHex } from '../../src/kernel/ids.js';
import { faultOf, NON_CANONICAL_KEYS, newIdentity, SMALL_ORDER_KEYS } from '../support/identity.js';

const { publicKey: operatorKey } = newIdentity();
const spki = (): Buffer => randomBytes(32);
const bytes = (length: number) => fc.uint8Array({ minLength: length, maxLength: length });
const unchecked = (hex: string): PublicKeyHex => {
  if (!isPublicKeyHex(hex)) throw new Error('no key');
  return hex;
};

describe('a bound nonce', () => {
  it('is random bytes and the hash that the specification names', () => {
    const [random16, serverSpki] = [randomBytes(16), spki()];
    const hash = createHash('sha256')
      .update(Buffer.concat([Buffer.from('orch-login-v1'), random16, Buffer.from(operatorKey, 'hex'), serverSpki]))
      .digest();
    expect(makeBoundNonce({ random16, operatorKey, serverSpki })).toEqual(
      Buffer.concat([random16, hash.subarray(0, 16)]),
    );
  });

  it('holds for its own operator and server only', () => {
    const serverSpki = spki();
    const nonce = makeBoundNonce({ random16: randomBytes(16), operatorKey, serverSpki });
    expect(isBoundNonce(nonce, operatorKey, serverSpki)).toBe(true);
    expect(isBoundNonce(nonce, newIdentity().publicKey, serverSpki)).toBe(false);
    expect(isBoundNonce(nonce, operatorKey, spki())).toBe(false);
    expect(isBoundNonce(nonce, operatorKey, null)).toBe(false);
  });

  it('over plain HTTP on loopback is bound to 32 zero bytes', () => {
    const random16 = randomBytes(16);
    const nonce = makeBoundNonce({ random16, operatorKey, serverSpki: null });
    expect(nonce).toEqual(makeBoundNonce({ random16, operatorKey, serverSpki: Buffer.alloc(32) }));
    expect(isBoundNonce(nonce, operatorKey, null)).toBe(true);
  });

  it('is never one that was made up, shortened or changed (property)', () => {
    const serverSpki = spki();
    fc.assert(fc.property(fc.uint8Array({ maxLength: 64 }), (nonce) => !isBoundNonce(nonce, operatorKey, serverSpki)));
    const nonce = makeBoundNonce({ random16: randomBytes(16), operatorKey, serverSpki });
    fc.assert(
      fc.property(fc.nat(255), (bit) => {
        const changed = Buffer.from(nonce);
        changed[bit >> 3] = (changed[bit >> 3] ?? 0) ^ (1 << (bit & 7));
        return !isBoundNonce(changed, operatorKey, serverSpki);
      }),
    );
  });

  it('needs all of its parts in full', () => {
    expect(faultOf(() => makeBoundNonce({ random16: Buffer.alloc(15), operatorKey, serverSpki: null })).message).toBe(
      'the random half of a nonce has to be 16 bytes, not 15',
    );
    expect(
      faultOf(() => makeBoundNonce({ random16: Buffer.alloc(16), operatorKey, serverSpki: Buffer.alloc(91) })).message,
    ).toBe('the SPKI hash of a server has to be 32 bytes, not 91');
  });
});

describe('a signature', () => {
  const { privateKey, publicKey } = newIdentity();

  it('of a nonce verifies with the same key and message only (property)', () => {
    fc.assert(
      fc.property(bytes(32), bytes(32), (nonce, other) => {
        fc.pre(Buffer.compare(nonce, other) !== 0);
        const signature = signNonce(privateKey, nonce);
        expect(isSignatureHex(signature)).toBe(true);
        expect(verifySignature(publicKey, nonce, signature)).toBe(true);
        expect(verifySignature(publicKey, nonce, signature.toUpperCase())).toBe(true);
        expect(verifySignature(publicKey, other, signature)).toBe(false);
        expect(verifySignature(operatorKey, nonce, signature)).toBe(false);
      }),
      { numRuns: 50 },
    );
  });

  it('that was changed in any bit is refused (property)', () => {
    const nonce = randomBytes(32);
    const signature = Buffer.from(signNonce(privateKey, nonce), 'hex');
    fc.assert(
      fc.property(fc.nat(511), (bit) => {
        const changed = Buffer.from(signature);
        changed[bit >> 3] = (changed[bit >> 3] ?? 0) ^ (1 << (bit & 7));
        return !verifySignature(publicKey, nonce, changed.toString('hex'));
      }),
    );
  });

  it('that was made up is refused (property)', () => {
    fc.assert(
      fc.property(bytes(64), bytes(32), (signature, nonce) => {
        return !verifySignature(publicKey, nonce, Buffer.from(signature).toString('hex'));
      }),
    );
  });

  it('that is not canonical is refused: S plus the group order', () => {
    const nonce = randomBytes(32);
    const signature = Buffer.from(signNonce(privateKey, nonce), 'hex');
    const order = 2n ** 252n + 27742317777372353535851937790883648493n;
    const s = BigInt(`0x${Buffer.from(signature.subarray(32)).reverse().toString('hex')}`) + order;
    const malleated = Buffer.concat([
      signature.subarray(0, 32),
      Buffer.from(s.toString(16).padStart(64, '0'), 'hex').reverse(),
    ]);
    expect(verifySignature(publicKey, nonce, malleated.toString('hex'))).toBe(false);
  });

  it.each(['', 'ab', 'z'.repeat(128), 'a'.repeat(127), 'a'.repeat(129)])('%j is none', (text) => {
    expect(isSignatureHex(text)).toBe(false);
    expect(verifySignature(publicKey, randomBytes(32), text)).toBe(false);
  });

  // R = the base point, S = 1 holds for every message whenever the key is the neutral element, and often for the others.
  const forged = `5866666666666666666666666666666666666666666666666666666666666666${'01'.padEnd(64, '0')}`;
  it.each([...SMALL_ORDER_KEYS, ...NON_CANONICAL_KEYS])('forged for the weak key %s is refused', (key) => {
    const messages = Array.from({ length: 50 }, () => randomBytes(32));
    expect(messages.some((message) => verifySignature(unchecked(key), message, forged))).toBe(false);
  });

  const { openssl } = process.versions;
  const accepts = openssl.startsWith('3.0.');
  const reason = accepts ? '' : ` (skipped: OpenSSL ${openssl} refuses it by itself)`;
  it.runIf(accepts)(`forged for a weak key would pass without our check${reason}`, () => {
    const weakest = keyObjectOf(unchecked(SMALL_ORDER_KEYS[0] ?? ''));
    expect(verify(null, randomBytes(32), weakest, Buffer.from(forged, 'hex'))).toBe(true);
  });

  it('is made of 32 bytes and nothing else', () => {
    expect(faultOf(() => signNonce(privateKey, Buffer.from('transfer all the money'))).message).toBe(
      'a login nonce has to be 32 bytes, not 22',
    );
    const nonce = randomBytes(32);
    expect(signNonce(privateKey, nonce)).toBe(sign(null, nonce, privateKey).toString('hex'));
  });
});
