/** `orch operator init`. */
import type { KeyObject } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { expandHome, standardKeyPath } from '../../../client/directories.js';
import { writeNewKey } from '../../../identity/key-file.js';
import { groupsOfFour, operatorIdOf } from '../../../identity/key-id.js';
import { publicKeyOfKeyObject } from '../../../identity/key-object.js';
import { importOpensshKey } from '../../../identity/openssh.js';
import { generateKey } from '../../../identity/private-key.js';
import { Fault } from '../../../kernel/fault.js';
import type { Context } from '../../context.js';
import { defineCommand } from '../../define-command.js';
import { flag, text } from '../../option.js';
import { fields, lines, stack } from '../../view.js';

export const command = defineCommand({
  examples: ['orch operator init', 'orch operator init --from-ssh ~/.ssh/id_ed25519'],
  detail: [
    'Writes ~/.config/orch/operator.key, or the file that --key-file or ORCH_KEY_FILE names; one that is there is never',
    'replaced. Hand the public key it prints to an admin, who runs: orch operator add',
  ],
  access: 'local',
  options: {
    fromSsh: text('FILE', 'import an Ed25519 key of OpenSSH instead of making one', { completes: 'file' }),
    passphrase: flag('encrypt the file with a passphrase, which is asked for'),
  },
  run: async (context, input) => {
    const path = keyPath(context);
    const key = input.fromSsh === undefined ? generateKey() : importOpensshKey(expandHome(context.env, input.fromSsh));
    const passphrase = input.passphrase ? await newPassphrase(context) : undefined;
    makeDirectory(dirname(path));
    writeNewKey(path, key, { passphrase });
    return describe(path, key);
  },
});

const keyPath = ({ env, globals }: Context): string => globals.keyFile ?? (env.ORCH_KEY_FILE || standardKeyPath(env));

async function newPassphrase({ prompt }: Context): Promise<string> {
  const instead = 'leave out --passphrase for a key that programs use';
  const first = await prompt.secret('New passphrase:', instead);
  if (first === '') throw new Fault('usage', 'the passphrase is empty, so nothing was written');
  const second = await prompt.secret('Once more:', instead);
  if (first !== second) throw new Fault('usage', 'the two passphrases differ, so nothing was written');
  return first;
}

function makeDirectory(path: string): void {
  try {
    mkdirSync(path, { recursive: true, mode: 0o700 });
  } catch (cause) {
    throw new Fault('key_unwritable', `the directory ${path} cannot be made`, { cause });
  }
}

function describe(path: string, key: KeyObject) {
  const publicKey = publicKeyOfKeyObject(key);
  const id = operatorIdOf(publicKey);
  return {
    body: { operator_id: id, public_key: publicKey, key_file: path },
    names: [publicKey],
    view: stack(
      fields(['Key file', path], ['Public key', publicKey], ['Operator ID', groupsOfFour(id)]),
      lines(
        `An admin lets you in with: orch operator add ${publicKey} --username NAME`,
        'An orchestrator that you start yourself takes it as its first: orch serve',
      ),
    ),
  };
}
