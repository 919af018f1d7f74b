/** Secrets whose values this program does not have: a mark stands for each. */
import { maskOf } from '../../kernel/tainted.js';
import type { SecretSource } from '../../language/fill.js';

export const unknownSecrets: SecretSource = (secret) => ({ value: maskOf({ secret, tag: '' }), tag: '0000' });
