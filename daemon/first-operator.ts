/** Adds the first operator, without whom no login would be possible. */
import { parsePublicKey } from '../src/identity/public-key.js';
import { Fault } from '../src/kernel/fault.js';
import type { Auth } from './auth/auth.js';
import type { Core } from './core/core.js';

export interface BootstrapOperator {
  readonly publicKey: string;
  readonly username: string;
}

interface NamedOperatorOptions extends Pick<Core, 'settings'> {
  /** Returns the first operator when the settings name none. */
  readonly ownOperator: () => BootstrapOperator | null;
}

interface FirstOperatorOptions extends NamedOperatorOptions, Pick<Core, 'newId'> {
  readonly operators: Auth['operators'];
}

/**
 * Adds the first operator when there has never been one. Returns the operator it added, or null. Throws
 * `bootstrap_required` when no operator is configured, and `invalid_public_key`.
 */
export async function addFirstOperator(options: FirstOperatorOptions): Promise<BootstrapOperator | null> {
  const { operators, newId } = options;
  if (!(await operators.isEmpty())) return null;
  const { publicKey, username } = namedOperator(options);
  await operators.bootstrap({ publicKey, username }, newId());
  return { publicKey, username };
}

/**
 * Returns the operator that a first start adds. Throws `bootstrap_required` when no operator is configured, and
 * `invalid_public_key`.
 */
export function namedOperator({ settings, ownOperator }: NamedOperatorOptions): BootstrapOperator {
  const { bootstrap_key: key, bootstrap_username: username } = settings();
  const first = key === '' ? ownOperator() : { publicKey: key, username: username || 'admin' };
  if (first === null) {
    throw new Fault('bootstrap_required', 'there is no operator yet, so no login is possible', {
      hint: 'make your key with "orch operator init" and start again, or name the first operator with --bootstrap-key and --bootstrap-username',
    });
  }
  return { publicKey: parsePublicKey(first.publicKey, 'bootstrap_key'), username: first.username };
}
