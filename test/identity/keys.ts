import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { Point } from '@noble/ed25519';
import { publicKeyOfKeyObject } from '../../src/identity/key-object.js';
import type { PublicKeyHex } from '../../src/kernel/ids.js';

export interface Identity {
  readonly privateKey: KeyObject;
  readonly publicKey: PublicKeyHex;
}

export function newIdentity(): Identity {
  const { privateKey } = generateKeyPairSync('ed25519');
  return { privateKey, publicKey: publicKeyOfKeyObject(privateKey) };
}

/** All points of order 1, 2, 4 and 8 in canonical form. */
export const SMALL_ORDER_KEYS: readonly string[] = [
  '0100000000000000000000000000000000000000000000000000000000000000',
  'ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
  '0000000000000000000000000000000000000000000000000000000000000000',
  '0000000000000000000000000000000000000000000000000000000000000080',
  '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05',
  '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85',
  'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a',
  'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa',
];

/** Other encodings of small-order points: y not below the prime, or a sign on x = 0. */
export const NON_CANONICAL_KEYS: readonly string[] = [
  '0100000000000000000000000000000000000000000000000000000000000080',
  'ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff',
  'edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
  'edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff',
  'eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
  'eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff',
];

/** A good key plus a point of order 8: on the curve, of large order, outside the prime-order group. */
export const withTorsion = (key: PublicKeyHex): string =>
  Point.fromHex(key)
    .add(Point.fromHex(SMALL_ORDER_KEYS[4] ?? ''))
    .toHex();
