/** Headers that requests have in common. */
import { VERSION } from '../kernel/version.js';

export const acceptHeaders: Readonly<Record<string, string>> = {
  accept: 'application/json',
  'user-agent': `orch/${VERSION}`,
};

export const jsonHeaders: Readonly<Record<string, string>> = { ...acceptHeaders, 'content-type': 'application/json' };
