/** The ids that follow from a public key, so that every side can compute them. */
import { createHash } from 'node:crypto';
import type { NodeId, OperatorId, PublicKeyHex } from '../kernel/ids.js';
import { rawKeyOf } from './key-object.js';

export const nodeIdOf = (key: PublicKeyHex): NodeId => idOf(key) as NodeId;

export const operatorIdOf = (key: PublicKeyHex): OperatorId => idOf(key) as OperatorId;

/** An id or key in groups of four characters, for reading aloud. */
export const groupsOfFour = (hex: string): string => hex.match(/.{1,4}/g)?.join(' ') ?? '';

const idOf = (key: PublicKeyHex): string =>
  createHash('sha256').update(rawKeyOf(key)).digest().subarray(0, 16).toString('hex');
