/** Opens the operator's key, asking for its passphrase where there is one. */
import type { Connection } from '../../client/connection.js';
import { openSigner, type Signer } from '../../client/signer.js';
import { wantsPassphrase } from '../../identity/private-key.js';
import { isFault } from '../../kernel/fault.js';
import type { Context } from '../context.js';

const ATTEMPTS = 3;
const INSTEAD = 'use a key without a passphrase for programs: name it with --key-file, ORCH_KEY_FILE or ORCH_KEY';

export async function signerFor({ prompt, warn }: Context, { key }: Pick<Connection, 'key'>): Promise<Signer> {
  try {
    return openSigner(key);
  } catch (error) {
    if (!wantsPassphrase(error)) throw error;
  }
  const name = key.kind === 'file' ? key.path : key.from;
  for (let attempt = 1; ; attempt += 1) {
    const passphrase = await prompt.secret(`Passphrase of ${name}:`, INSTEAD);
    try {
      return openSigner(key, passphrase);
    } catch (error) {
      if (attempt === ATTEMPTS || !isWrongPassphrase(error)) throw error;
      warn('that is not its passphrase');
    }
  }
}

const isWrongPassphrase = (error: unknown): boolean =>
  wantsPassphrase(error) || (isFault(error, 'key_invalid') && error.data?.reason === 'passphrase_wrong');
