/**
 * Which Ed25519 public keys may be used at all. Node's own verification takes small-order keys, for which anyone can
 * make signatures, so every key that enters from outside is checked here (about 1 ms each).
 */
import { Point } from '@noble/ed25519';

/** Why a raw key must not be used, as the rest of a sentence ("is …"); null when it may. */
export function weaknessOf(raw: Uint8Array): string | null {
  if (raw.length !== 32) return `is ${raw.length} bytes long, not 32`;
  const point = decode(raw);
  if (!point) return 'is not the canonical form of a point on the Ed25519 curve';
  if (point.isSmallOrder()) return 'is of small order, so that anyone could sign in its name';
  if (!point.isTorsionFree()) return 'is not in the prime-order group of Ed25519';
  return null;
}

/** True for a canonical point of the prime-order group. */
export const isAcceptableKey = (raw: Uint8Array): boolean => weaknessOf(raw) === null;

/** True for anything that is not a canonical point of large order; twenty times as fast as `isAcceptableKey`. */
export function isForgeableKey(raw: Uint8Array): boolean {
  return decode(raw)?.isSmallOrder() ?? true;
}

function decode(raw: Uint8Array): Point | null {
  try {
    return Point.fromBytes(raw);
  } catch {
    return null;
  }
}
