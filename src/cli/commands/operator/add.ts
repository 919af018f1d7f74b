/** `orch operator add`. */
import { ROLES } from '../../../contract/operators.js';
import { argument } from '../../argument.js';
import { defineCommand } from '../../define-command.js';
import { operatorNames } from '../../operator-names.js';
import { choice, requiredText } from '../../option.js';
import { readPublicKey } from '../../read-public-key.js';
import { readInlineOrFile } from '../../read-text.js';
import { lines, stack } from '../../view.js';
import { operatorFields } from './operator-view.js';

export const command = defineCommand({
  examples: [
    'orch operator add 3b6a27bc…29 --username ada',
    'orch operator add "ssh-ed25519 AAAAC3…" --username ada --role viewer',
    'orch operator add @ada.pub --username ada',
  ],
  detail: ['Every operator of the roles admin and operator can become root on every machine of the fleet.'],
  access: 'admin',
  args: {
    key: argument('KEY', 'public key: 64 hex digits, an OpenSSH public key line, or @FILE with either'),
  },
  options: {
    username: requiredText('NAME', 'how the operator is called; never changes'),
    role: choice('ROLE', ROLES, 'what the operator may do; operator when left out'),
  },
  run: async (context, { key, username, role }) => {
    const text = await readInlineOrFile(key, context.readInput);
    const publicKey = readPublicKey(text, key.startsWith('@') ? key.slice(1) : 'KEY');
    const api = await context.api();
    const operator = await api.call('addOperator', {
      body: { public_key: publicKey, username, role: role ?? null },
      signal: context.signal,
    });
    const nameOf = await operatorNames(context, api);
    return {
      body: operator,
      names: [operator.operator_id],
      view: stack(lines(`Added ${operator.username} as ${operator.role}.`), operatorFields(operator, nameOf)),
    };
  },
});
