/** `orch serve recover-admin`. */
import { argument } from '../../argument.js';
import { defineCommand } from '../../define-command.js';
import { text } from '../../option.js';
import { readPublicKey } from '../../read-public-key.js';
import { readInlineOrFile } from '../../read-text.js';
import type { RecoveredAdmin } from '../../store-programs.js';
import { lines } from '../../view.js';
import { storeFlags, storeOptions } from './store-options.js';

export const command = defineCommand({
  examples: ['orch serve recover-admin @ada.pub', 'orch serve recover-admin 3b6a27bc…29 --username ada'],
  detail: [
    'For when no admin has their key any more. While the orchestrator is stopped, on its host and as its user: adds the',
    'key as an admin, or makes the operator of that key one. It is in the audit log, and every channel is told.',
  ],
  access: 'local',
  consent: true,
  args: {
    key: argument('PUBLIC_KEY', '64 hex digits, an OpenSSH public key line, or @FILE with either'),
  },
  options: {
    username: text('NAME', 'how the operator is called; the name that the key had before, else admin'),
    ...storeOptions,
  },
  run: async ({ programs, prompt, readInput }, { key, username, ...which }) => {
    const publicKey = readPublicKey(
      await readInlineOrFile(key, readInput),
      key.startsWith('@') ? key.slice(1) : 'PUBLIC_KEY',
    );
    const confirm = (found: RecoveredAdmin) => prompt.consent(question(found));
    const found = await programs.store.recoverAdmin({ flags: storeFlags(which), publicKey, username, confirm });
    const done = found.change === 'none' ? 'is an admin already; nothing was changed' : 'is an admin now';
    return {
      body: found,
      names: [found.operator_id],
      view: lines(`${found.username} ${done}. Start orch serve, then log in with that key: orch login`),
    };
  },
});

const question = ({ username, public_key, change, former_role }: RecoveredAdmin): string =>
  change === 'added'
    ? `Add ${username} with the key ${public_key} as an admin?`
    : `Make ${username}, who is ${former_role}, an admin?`;
